"""Hints at what may have been meant, for messages that refuse a name."""

import difflib
from collections.abc import Collection


def nearest(name: str, known: Collection[str], *, prefix: str = "") -> str:
    """The known name that comes nearest, as a question; all of them where none comes near.

    `prefix` is where the names live, and is shown before each.

    >>> nearest("prot", ["host", "port"])
    "Did you mean 'port'?"
    >>> nearest("zzz", ["rate", "burst"], prefix="limits.")
    'Known are limits.rate, limits.burst.'
    """
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    if close:
        return f"Did you mean {prefix + close[0]!r}?"
    return f"Known are {', '.join(prefix + one for one in known)}."
