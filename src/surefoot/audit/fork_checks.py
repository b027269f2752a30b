"""Where a fork says that its history came from: the other experiment's events must have taught just that."""

from collections.abc import Iterator

from surefoot.audit.auditor import Auditor
from surefoot.audit.compensated_sums import Vector
from surefoot.audit.findings import AuditCounts, Findings
from surefoot.audit.rows_checks import RowsChecks
from surefoot.errors import JournalCorruptedError, JournalNotFoundError
from surefoot.journal import Head, Journal
from surefoot.journal.events import Event
from surefoot.journal.journal_chain import tombstone
from surefoot.rounds import events


class _Teacher(RowsChecks):
    """Follows an experiment, and notes what its newest set was made of."""

    def __init__(self, created: events.Created, findings: Findings, tally: AuditCounts) -> None:
        super().__init__(created, findings, tally)
        self.history = list[tuple[list[float], float]]()
        self.learned = list[tuple[list[float], float]]()

    def learn_history(self, event: Event, history: events.History) -> None:
        """Note what the experiment began with, too."""
        super().learn_history(event, history)
        self.history = list(zip(history.features, history.rewards, strict=False))

    def _book_in(self, features: Vector, reward: float, is_learner: bool, declared: float | None) -> None:
        super()._book_in(features, reward, is_learner, declared)
        self.learned.append((features.tolist(), reward))

    def _answer(self, event: Event, answer: events.Acknowledged) -> None:
        super()._answer(event, answer)
        if answer.response != "stay":
            self.history.clear()
            self.learned.clear()


def fork_faults(journal: Journal, created: events.Created | None) -> Iterator[str]:
    """What a fork says otherwise than the experiment that it came from; of one that is gone only that it was there."""
    origin = None if created is None else created.origin
    if created is None or origin is None:
        return
    try:
        view = journal.view(origin.experiment)
        if not view.follows(Head(origin.number, origin.hash)):
            yield f"it was forked from {origin.experiment!r} at event {origin.number}, whose hash was another"
            return
        auditor = Auditor(view, rows=_Teacher)
        for event in view.read(limit=origin.number, verify=False):
            auditor.take(event)
    except JournalNotFoundError:
        gone = tombstone(journal, origin.experiment)
        if gone is None or not gone.covers(Head(origin.number, origin.hash)):
            yield (
                f"it was forked from {origin.experiment!r} at event {origin.number}, which this journal neither has, "
                "nor has a tombstone for: audit it where both are"
            )
        return
    except JournalCorruptedError as error:
        yield f"the experiment that it was forked from cannot be read: {error}"
        return
    teacher = auditor.checks
    if not isinstance(teacher, _Teacher):
        yield f"it was forked from {origin.experiment!r}, which learned no rows"
        return
    if auditor.tally.is_refuted:
        yield f"it was forked from {origin.experiment!r} while the alarm was on"
    history = (
        [] if created.history is None else list(zip(created.history.features, created.history.rewards, strict=False))
    )
    if origin.rounds != len(teacher.learned):
        yield f"it says to begin with {origin.rounds} rounds, but {len(teacher.learned)} were learned until then"
    if not _correct(teacher.learned, origin.corrections):
        yield "it corrects rewards of rounds that were not learned, or one of them twice"
        return
    known = [*teacher.history, *teacher.learned]
    if not origin.is_encoded and history != known:
        yield "its history is not what the experiment that it was forked from had learned"
    # Rows of another feature map cannot be made again here; rounds that are left out can be found by their rewards.
    if origin.is_encoded and [reward for _, reward in history] != [reward for _, reward in teacher.learned]:
        yield "its rewards are not those of every round that the experiment it was forked from had learned"


def _correct(learned: list[tuple[list[float], float]], corrections: tuple[tuple[int, float], ...]) -> bool:
    """Put the rewards in place that a person has said; false where there is no place for one."""
    positions = [position for position, _ in corrections]
    if len({*positions}) < len(positions) or not all(0 <= position < len(learned) for position in positions):
        return False
    for position, value in corrections:
        learned[position] = learned[position][0], value
    return True
