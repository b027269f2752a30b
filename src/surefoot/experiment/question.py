"""What a caller asks of an experiment, read and checked once, before anything is locked."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Matrix, finite, real_array
from surefoot.errors import InputError
from surefoot.ids import new_id
from surefoot.journal import canonical
from surefoot.journal.events import check_text
from surefoot.journal.private_text import by_alias
from surefoot.linear.actions import ActionSet, Catalogue
from surefoot.records import Asked
from surefoot.values import Value

LONGEST_ID = 200
LONGEST_TEXT = 2000
MOST_IDS = 400  # named in one call


class Question(Value, frozen=True, eq=True):
    """One decision of a batch, with the fields of `Experiment.decide`.

    Parameters
    ----------
    features, baseline, baseline_reward, decision_id, actions, context, confirms
        As in `Experiment.decide`.

    Examples
    --------
    >>> import surefoot
    >>> shop = surefoot.Experiment.create(surefoot.open_journal("memory:"), "shop", surefoot.UCB(arms=2))
    >>> [answer.round for answer in shop.decide_all([Question(baseline=0), Question(baseline=0)])]
    [1, 2]
    """

    features: ArrayLike | Catalogue | None = None
    baseline: int | str | None = None
    baseline_reward: float | Sequence[float] | None = None
    decision_id: str | None = None
    actions: Sequence[str] | None = None
    context: Mapping[str, Any] | None = None
    confirms: Sequence[str] = ()


class Read(Value, frozen=True):
    """A question as the policy takes it (rows, or the catalogue) and, but for the rows, as the journal keeps it."""

    decision_id: str
    key: str  # what the decision is found by in the journal
    rows: Matrix | None
    catalogue: Catalogue | None
    told: Asked  # without `features`
    is_fallback: bool = False
    confirms: tuple[str, ...] = ()
    by: str = ""  # who books a round

    @property
    def features(self) -> list[list[float]] | None:
        """The rows as the journal keeps them: made when they are written, for questions may wait in great numbers."""
        return None if self.rows is None else self.rows.tolist()

    @property
    def asked(self) -> Asked:
        """The question as the journal keeps it."""
        return msgspec.structs.replace(self.told, features=self.features)


def read(question: Question, *, is_fallback: bool = False, sealed: bool = False) -> Read:
    """Check the form of a question; the policy checks its content."""
    if not isinstance(question, Question):
        raise InputError(f"Questions must be `surefoot.experiment.Question`s, but got {question!r:.80}.")
    rows, catalogue = _read_features(question.features)
    shown = rows if catalogue is None else catalogue.rows
    actions = read_actions(question.actions, None if shown is None else shown.shape[0])
    told = Asked(
        catalogue=None if catalogue is None else catalogue.digest,
        actions=actions,
        baseline=read_baseline(question.baseline, actions, None if shown is None else shown.shape[0]),
        baseline_reward=read_baseline_reward(question.baseline_reward),
        context=read_context(question.context),
    )
    if question.decision_id is None and is_fallback:
        raise InputError("A fallback must have the caller's own `decision_id`, so that it is never booked twice.")
    chosen = new_id() if question.decision_id is None else read_id(question.decision_id)
    confirms = read_ids("confirms", question.confirms) if question.confirms else ()
    return Read(chosen, key_of(chosen, sealed=sealed), rows, catalogue, told, is_fallback, confirms)


def key_of(decision_id: str, *, sealed: bool) -> str:
    """What the decision of a caller's id is found by."""
    return by_alias(decision_id) if sealed else f"d:{decision_id}"


def read_id(decision_id: str) -> str:
    """A decision's id, if it is valid."""
    check_text("decision_id", decision_id, LONGEST_ID)
    return decision_id


def read_ids(name: str, decision_ids: Sequence[str]) -> tuple[str, ...]:
    """A list of decisions' ids, if they are valid."""
    if isinstance(decision_ids, str):
        raise InputError(f"`{name}` must be a list of ids, but got {decision_ids!r:.80}: put it in brackets.")
    if len(decision_ids) > MOST_IDS:
        raise InputError(f"`{name}` must name at most {MOST_IDS} decisions at once, but got {len(decision_ids)}.")
    return tuple(read_id(decision_id) for decision_id in decision_ids)


def read_text(name: str, text: str) -> str:
    """A reason or a person's name: a text that a journal can keep."""
    try:
        # Encoded, since a journal cannot keep an unpaired surrogate.
        is_fine = len(text) <= LONGEST_TEXT and isinstance(text.encode(), bytes)
    except (AttributeError, TypeError, UnicodeEncodeError):
        is_fine = False
    if not is_fine or not isinstance(text, str):
        raise InputError(f"`{name}` must be a text of at most {LONGEST_TEXT:,} characters, but got {text!r:.80}.")
    return text


def _read_features(features: Any) -> tuple[Matrix | None, Catalogue | None]:
    if features is None:
        return None, None
    if type(features) is not np.ndarray:
        if isinstance(features, Catalogue):
            return None, features
        if isinstance(features, ActionSet):
            raise InputError(
                f"An experiment decides over rows or a Catalogue, but got a {type(features).__name__}: a decision over "
                "a set without rows cannot be recalled from a journal."
            )
    rows = real_array("features", features, ndim=2)
    # A copy, since the caller may reuse its array before this question's turn comes.
    return rows.copy() if rows is features else rows, None


def read_actions(actions: Sequence[str] | None, rows: int | None) -> list[str] | None:
    """The names of a question's actions, if they are valid."""
    if actions is None:
        return None
    try:
        names = list(actions)
        "".join(names).encode()
    except (TypeError, ValueError):  # not texts, or an unpaired surrogate
        names = [""]
    lengths = [len(name) for name in names]
    if lengths and not 0 < min(lengths) <= max(lengths) <= LONGEST_ID:
        raise InputError(f"`actions` must be texts of 1 to {LONGEST_ID} characters, but got {actions!r:.80}.")
    if len(set(names)) < len(names) or (rows is not None and len(names) != rows):
        raise InputError(f"`actions` must hold a different name for each of {rows} rows, but got {actions!r:.80}.")
    return names


def read_baseline(baseline: int | str | None, actions: list[str] | None, rows: int | None) -> int | None:
    """The row of the baseline, if it is one."""
    if baseline is None:
        return None
    if isinstance(baseline, str):
        if actions is None or baseline not in actions:
            raise InputError(f"`baseline` must be a row index, or one of `actions`, but got {baseline!r:.80}.")
        return actions.index(baseline)
    if isinstance(baseline, bool) or not isinstance(baseline, (int, np.integer)):
        raise InputError(f"`baseline` must be a row index, but got {baseline!r}: the action you would play today.")
    if rows is not None and not 0 <= baseline < rows:
        raise InputError(
            f"`0 <= baseline < {rows}` must hold for {rows} actions, but got baseline={baseline}. "
            "It is the row of the action you would play today."
        )
    return int(baseline)


def read_baseline_reward(reward: float | Sequence[float] | None) -> float | list[float] | None:
    """What is known of the baseline's mean, if that is a number or two."""
    hint = "It is the mean reward of the baseline's action, or (low, high)."
    if reward is None:
        return None
    if isinstance(reward, (tuple, list, np.ndarray)) and np.ndim(reward) > 0:
        return [finite("baseline_reward", value, hint=hint) for value in reward]
    return finite("baseline_reward", reward, hint=hint)


def read_context(context: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What the caller wants kept, as JSON gives it back."""
    if context is None:
        return None
    try:
        # Through JSON and back, so that a repeated question compares equal to what was kept.
        kept: dict[str, Any] = msgspec.json.decode(canonical(dict(context)), type=dict[str, Any])
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"`context` must be plain JSON data under text keys: {error}.") from None
    return kept
