"""The coin of a guard: from the system, so that nobody can foresee it, or from a seed for simulations.

In an experiment it follows from a secret, so that whoever is shown that one can tell whether a coin was drawn again.
"""

import random
from hashlib import blake2b
from numbers import Integral

from surefoot.errors import ConfigError

SYSTEM = random.SystemRandom()
BITS = 53
ULP = 2.0**-BITS


def read_seed(seed: int | None) -> int | None:
    """A seed for coins that can be repeated, or None for the system's own."""
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, (int, Integral))):
        raise ConfigError(f"`seed` must be a whole number or None, but got {seed!r:.80}. None draws from the system.")
    return None if seed is None else int(seed)


def draw_coin(seed: int | None, round_: int) -> float:
    """A number uniform in [0, 1) with 53 bits.

    A seed gives the same coin for the same round, whatever was drawn before: nothing has to be kept between rounds.

    >>> draw_coin(7, 1) == draw_coin(7, 1), draw_coin(7, 1) == draw_coin(7, 2)
    (True, False)
    """
    if seed is None:
        return SYSTEM.random()
    return _uniform(blake2b(f"{seed}:{round_}".encode(), digest_size=8).digest())


def coin_of(secret: bytes, round_: int) -> float:
    """The coin of a round, of the same kind, which nobody can tell without the secret (16 to 64 bytes).

    Of nothing that may be chosen once the secret is known, such as an id.

    >>> coin_of(bytes(32), 1) == coin_of(bytes(32), 1), coin_of(bytes(32), 1) == coin_of(bytes(32), 2)
    (True, False)
    """
    return _uniform(blake2b(round_.to_bytes(8), key=secret, digest_size=8).digest())


def _uniform(digest: bytes) -> float:
    # The top bits alone: a float holds no more, and rounding must not make it 1.
    return (int.from_bytes(digest) >> (64 - BITS)) * ULP
