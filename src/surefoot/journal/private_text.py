"""Private text: what must be able to go, kept beside the chain, which holds only a salted commitment to it.

An event may have one. Its payload should hold the `commitment`, so that the chain vouches for the text as long as it is
there, and says nothing of it once it is erased: without the salt no guess can be checked. An alias is a name that the
event is found by (`View.find`), as by its key; it goes with the text.

>>> private = PrivateText(alias="visit-1", person="user-17", salt=b"0123456789abcdef", text=b'{"age":41}')
>>> private.commitment()[:16]
'14a5083f829c7d22'
"""

import hashlib
import os
import secrets
from collections import deque

import msgspec

ALIAS = "\x1f"  # before an alias, where a key is asked for: no key begins with it, for keys are printable
SALT_BYTES = 16
AT_ONCE = 256  # salts
_drawn = deque[bytes]()
os.register_at_fork(after_in_child=_drawn.clear)  # or parent and child would use the same


class PrivateText(msgspec.Struct, frozen=True, gc=False):
    """What is kept beside an event.

    Attributes
    ----------
    alias : str or None
        What the event is found by, unique within the experiment; None if nobody looks for it.
    person : str or None
        Whom it is about, so that all of it can be found and erased.
    salt, text : bytes
        Random bytes, and the text.

    Examples
    --------
    >>> PrivateText(None, None, b"salt", b"text").commitment()[:8]
    '8f40d2c1'
    """

    alias: str | None
    person: str | None
    salt: bytes
    text: bytes

    def commitment(self) -> str:
        """What the event holds in place of the text: SHA-256 of salt and text."""
        return hashlib.sha256(self.salt + self.text).hexdigest()


def new_salt() -> bytes:
    """A salt that nobody can guess.

    Returns
    -------
    bytes
        16 of them.

    Examples
    --------
    >>> len(new_salt())
    16
    """
    try:
        return _drawn.pop()
    except IndexError:
        drawn = secrets.token_bytes(SALT_BYTES * AT_ONCE)
    # Many at once: each call of the system would let other threads in, and cost more than the rest of a text.
    _drawn.extend(drawn[at : at + SALT_BYTES] for at in range(SALT_BYTES, len(drawn), SALT_BYTES))
    return drawn[:SALT_BYTES]


def by_alias(alias: str) -> str:
    """What `View.find` is asked for an event by its alias.

    Parameters
    ----------
    alias : str
        The alias.

    Returns
    -------
    str
        A key that no event can carry.

    Examples
    --------
    >>> by_alias("visit-1").isprintable()
    False
    """
    return ALIAS + alias
