"""A first pass over a table: its actions, the ranges of its columns, its propensities and the rows that are no use.

All of these are counts, unions and extremes, which do not depend on the order of rows. So a large file, or many, are
looked at span by span by as many workers as there are, to the same bits; only ids that must not repeat need one reader.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from surefoot.errors import LogError
from surefoot.linear.encoding import Encoder
from surefoot.replay.batch import BadRows, span
from surefoot.replay.column_ranges import ColumnRanges, sort_labels
from surefoot.replay.logged_rounds import LoggedRounds, RowReader
from surefoot.replay.shared_file import WHOLE, Span
from surefoot.simulation.workers import VersionedTask, Where, check_version, completed, workers_on

MOST_ACTIONS = 1_000


@dataclass(slots=True)
class TableSurvey:
    """What was found so far."""

    reader: RowReader
    rows: int = 0
    longest: float = 0.0
    last_line: int = 0
    propensity_range: tuple[float, float] = (np.inf, -np.inf)
    labels: set[str] = field(default_factory=set)
    ranges: ColumnRanges = field(init=False)

    def __post_init__(self) -> None:
        self.ranges = ColumnRanges(self.reader.columns.hashed)

    def look_at(self, rounds: LoggedRounds) -> None:
        """Take in some rows."""
        self.rows += len(rounds.rewards)
        self.last_line = rounds.last_line
        if len(rounds.rewards):
            self._widen(span(rounds.propensities))
        self.labels.update(rounds.actions.unique().to_list())
        if rounds.baselines is not None:
            self.labels.update(rounds.baselines.unique().to_list())
        self._check_actions()
        if rounds.offered is not None:
            self.labels.update(rounds.offered.explode().drop_nulls().unique().to_list())
        self.ranges.look_at(rounds.contexts)
        if rounds.features is not None and rounds.features.size:
            self.longest = max(self.longest, float(np.linalg.norm(rounds.features, axis=2).max()))

    def join(self, other: "TableSurvey") -> None:
        """Take in what another worker found in the rows that follow."""
        self.rows += other.rows
        self._widen(other.propensity_range)
        self.labels |= other.labels
        self._check_actions()
        self.ranges.join(other.ranges)
        self.longest = max(self.longest, other.longest)

    def _widen(self, found: tuple[float, float]) -> None:
        low, high = self.propensity_range
        # NaN in one place is NaN in all: where chances are logged, a row without one is refused.
        self.propensity_range = (min(found[0], low), max(found[1], high)) if found[0] > 0 else found

    def _check_actions(self) -> None:
        if len(self.labels) > MOST_ACTIONS:
            raise LogError(
                f"`{self.reader.columns.action}` must name at most {MOST_ACTIONS:,} actions, but `{self.reader.path}` "
                "has more. Is it the right column?"
            )

    @property
    def actions(self) -> tuple[str, ...]:
        """All that were played, offered or today's; where features are logged, one for each row of them."""
        shape = self.reader.features_shape
        return tuple(sort_labels(self.labels if shape is None else {str(i) for i in range(shape[0])}))

    @property
    def encoder(self) -> Encoder:
        """How contexts become numbers."""
        return self.ranges.encoder()


@dataclass(frozen=True, eq=False)
class SurveyTask(VersionedTask):
    """One span of a table to look at."""

    reader: RowReader
    labels: Sequence[str]
    span: Span
    code: str | None = None

    def __call__(self) -> tuple[TableSurvey, BadRows]:
        """What was found, and the rows that are no use; whether they are too many, all spans together decide."""
        check_version(self.code)
        found, bad = TableSurvey(self.reader), BadRows(limit=None)
        for rounds in self.reader.rounds(bad, self.labels, self.span):
            found.look_at(rounds)
        return found, bad


def survey(reader: RowReader, labels: Sequence[str], bad: BadRows, on: Where) -> TableSurvey:
    """Look at the whole table, on several workers where it can be split; bad rows are counted in `bad`."""
    found = TableSurvey(reader)
    spans = reader.spans() if on is not None else [WHOLE]
    if len(spans) == 1:
        for rounds in reader.rounds(bad, labels):
            found.look_at(rounds)
    else:
        reader.prepare()
        with workers_on(on) as executor:
            parts = dict(completed(executor, [SurveyTask(reader, labels, span) for span in spans]))
        _join(found, bad, spans, [parts[place] for place in range(len(spans))])
    if found.rows == 0:
        raise LogError(f"`{reader.path}` must have at least one usable row, but it has none.")
    return found


def _join(
    found: TableSurvey, bad: BadRows, spans: Sequence[Span], parts: Sequence[tuple[TableSurvey, BadRows]]
) -> None:
    before = last = 0
    for place, (part, unusable) in enumerate(parts):
        if place and spans[place].file != spans[place - 1].file:
            before, last = before + last, 0
        last = max(last, part.last_line)
        found.join(part)
        bad.join(unusable, before, found.reader.path)
