"""Heads that were kept outside of the journal: each must still be the hash of its event.

A receipt of a client, a line of a server's head file or of its log, and a head that the journal's own chain has noted
are all the same: an experiment, a number, and the hash that the event of that number had.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from surefoot.audit.findings import Findings
from surefoot.errors import ConfigError
from surefoot.journal.events import Event, Head
from surefoot.journal.journal_chain import GivenUp
from surefoot.journal.signatures import PublicKey, head_message


class ExpectedHead(msgspec.Struct, frozen=True, omit_defaults=True):
    """A head that an experiment once had.

    Attributes
    ----------
    experiment, number, hash : str, int and str
        The event, and what its hash was.
    time, signature : float and str
        When a server gave it out, and its Ed25519 signature over all of this; "" where there is none.

    Examples
    --------
    >>> ExpectedHead("shop", 1, "0" * 64).number
    1
    """

    experiment: str
    number: int
    hash: str
    time: float = 0.0
    signature: str = ""

    def is_signed_by(self, *keys: PublicKey) -> bool:
        """Whether it has a signature, by one of these keys.

        Parameters
        ----------
        keys : PublicKey
            The server's keys, of now and of before.

        Returns
        -------
        bool
            Whether it has.
        """
        message = head_message(self.experiment, Head(self.number, self.hash), self.time)
        return any(key.has_signed(self.signature, message) for key in keys)


class HeadSearch:
    """Looks for heads, and for hashes of any number, while the events of one experiment go by."""

    def __init__(self, heads: Iterable[Head] = (), hashes: Iterable[str] = ()) -> None:
        self.found, self._hashes = 0, set(hashes)
        self._heads: dict[int, set[str]] = {}
        for number, hash_ in heads:
            self._heads.setdefault(number, set()).add(hash_)

    def take(self, event: Event, findings: Findings) -> None:
        """Compare an event with what is known of its number."""
        if event.hash in self._hashes:
            self._hashes.discard(event.hash)
            self.found += 1
        for hash_ in self._heads.pop(event.number, ()):
            self.found += hash_ == event.hash
            if hash_ != event.hash:
                text = f"it once had the hash {hash_}: it or an event before it was rewritten"
                findings.add(event.number, "expected", text)

    def end(self, last: int, findings: Findings) -> None:
        """Name what never came."""
        for hash_ in self._hashes:
            findings.add(0, "expected", f"no event has the hash {hash_}, which the chain once had")
        for number in sorted(self._heads):
            findings.add(number, "expected", f"it was there, and is gone: the chain ends with event {last}")


def read_expected(path: Path) -> list[ExpectedHead]:
    """The heads of a file of JSON lines: receipts of a client, heads of a server, or its log."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ConfigError(
            f"`--expect` must be a hash or a file of heads, but {path} cannot be read: {error}."
        ) from None
    found = list(_heads(lines))
    if not found:
        raise ConfigError(
            f"`--expect` must be a hash or a file of JSON lines with `experiment`, `number` and `hash`, but {path} "
            "has none of these."
        )
    return found


def newest_heads(expected: Iterable[ExpectedHead], *, given_up: GivenUp | None = None) -> dict[str, Head]:
    """The furthest head of each experiment that no restore has given up.

    By number, and not by time: whoever writes an old head down late would hide a newer one.
    """
    newest: dict[str, Head] = {}
    for one in expected:
        head = Head(one.number, one.hash)
        if given_up is None or not given_up.covers(one.experiment, head, one.time):
            newest[one.experiment] = max(head, newest.get(one.experiment, head))
    return newest


def _heads(lines: Iterable[bytes]) -> Iterator[ExpectedHead]:
    for line in lines:
        try:
            entry: dict[str, Any] = msgspec.json.decode(line, type=dict[str, Any])
            # In a log, `time` is that of the line.
            entry["time"] = entry.pop("head_time", entry.get("time", 0.0))
            yield msgspec.convert(entry, ExpectedHead)
        except msgspec.MsgspecError:  # a log has other lines, too
            continue
