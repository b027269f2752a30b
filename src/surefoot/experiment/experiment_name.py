"""What a new experiment may be called: a name that fits into an address, a file name and a shell alike.

Journals from before this rule hold others, which are opened as they are.
"""

import re

from surefoot.errors import InputError

LONGEST_NAME = 100
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*$(?!\n)"
NAME_RULE = "Letters, digits and . _ -, beginning with a letter or digit."


def check_new_name(name: str) -> None:
    """Raise unless a new experiment may have this name.

    >>> check_new_name("shop-2")
    >>> check_new_name("a/b")
    Traceback (most recent call last):
    surefoot.errors.InputError: `name` must be 1 to 100 letters, digits and . _ -, beginning with a letter or ...
    """
    if not isinstance(name, str) or len(name) > LONGEST_NAME or re.search(NAME_PATTERN, name) is None:
        raise InputError(
            f"`name` must be 1 to {LONGEST_NAME} letters, digits and . _ -, beginning with a letter or digit, but got "
            f"{name!r:.80}: an experiment's name is a part of addresses. Choose another, such as 'shop-2'."
        )
