"""What every check begins with: an experiment, some events, and a call that must be refused."""

from collections.abc import Callable

from surefoot.journal.contract import Journal, Transaction
from surefoot.journal.events import Event, canonical

# Quotes, placeholders and letters beyond ASCII: what a careless statement trips over.
NAME = "shop — büro 'one'; %s ?"
CHECKS: list[Callable[[Journal], None]] = []


def check(rule: Callable[[Journal], None]) -> Callable[[Journal], None]:
    """Add a rule to `CHECKS`."""
    CHECKS.append(rule)
    return rule


def append(journal: Journal, count: int = 1, *, kind: str = "decision", name: str = NAME) -> list[Event]:
    """Append events in one transaction."""

    def work(transaction: Transaction) -> list[Event]:
        return [transaction.append(kind, canonical({"n": n}), time=float(n)) for n in range(count)]

    return journal.transact(name, work)


def begin(journal: Journal, name: str = NAME) -> Event:
    """Create an experiment."""
    return journal.create(name, b'{"alpha":0.05}', time=1.0)


def refused(error: type[Exception], call: Callable[[], object]) -> None:
    """The call must raise this error."""
    try:
        call()
    except error:
        return
    raise AssertionError(f"{error.__name__} must be raised, but nothing was")
