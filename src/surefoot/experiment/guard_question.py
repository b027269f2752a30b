"""What a caller asks of an experiment with a guard, and the rewards it sends: read and checked before any lock."""

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from surefoot.arrays import finite
from surefoot.errors import InputError
from surefoot.experiment.question import key_of, read_context, read_id
from surefoot.ids import new_id
from surefoot.journal import canonical
from surefoot.policies.guard_settings import REWARD
from surefoot.records import AskedGuard, Created
from surefoot.values import Value


class GuardQuestion(Value, frozen=True, eq=True):
    """One decision of a batch for a guard, with the fields of `Experiment.decide`.

    Parameters
    ----------
    baseline, proposal, decision_id, unit, prediction, context
        As in `Experiment.decide`.

    Examples
    --------
    >>> import surefoot
    >>> guard = surefoot.Guard(alpha=0.1, delta=0.05)
    >>> models = surefoot.Experiment.create(surefoot.open_journal("memory:"), "models", guard)
    >>> [answer.action for answer in models.decide_all([GuardQuestion("big", "small")])]
    ['big']
    """

    baseline: Any
    proposal: Any
    decision_id: str | None = None
    unit: str | None = None
    prediction: float | Mapping[str, float] | None = None
    context: Mapping[str, Any] | None = None


class ReadGuarded(Value, frozen=True):
    """A question for a guard as the journal keeps it."""

    decision_id: str
    key: str
    asked: AskedGuard
    is_fallback: bool = False
    by: str = ""  # who books a round


def metric_names(created: Created) -> tuple[str, ...]:
    """The metrics of an experiment with a guard, in their order."""
    return tuple(created.settings.get("metrics") or (REWARD,))


def read_guarded(
    question: Any, metrics: tuple[str, ...], *, is_fallback: bool = False, sealed: bool = False
) -> ReadGuarded:
    """Check the form of a question; the guard checks the unit."""
    if not isinstance(question, GuardQuestion):
        raise InputError(
            f"An experiment with a guard takes `surefoot.experiment.GuardQuestion`s, but got {question!r:.80}."
        )
    if question.decision_id is None and is_fallback:
        raise InputError("A fallback must have the caller's own `decision_id`, so that it is never booked twice.")
    asked = AskedGuard(
        baseline=read_action("baseline", question.baseline),
        proposal=read_action("proposal", question.proposal),
        unit=question.unit,
        prediction=plain_prediction(question.prediction, metrics),
        context=read_context(question.context),
    )
    chosen = new_id() if question.decision_id is None else read_id(question.decision_id)
    return ReadGuarded(chosen, key_of(chosen, sealed=sealed), asked, is_fallback)


def read_metrics(decision_id: str, value: Any, metrics: tuple[str, ...]) -> tuple[str, dict[str, float]]:
    """A decision's id and its rewards by metric, finite or not."""
    if not isinstance(value, Mapping):
        if len(metrics) > 1:
            raise InputError(
                f"A reward must name its metrics, {', '.join(metrics)}, but got {value!r:.80}. "
                'Give a mapping such as {"quality": 0.9, "cost": 0.2}.'
            )
        value = {metrics[0]: value}
    return read_id(decision_id), {_known(name, metrics): _number(name, one) for name, one in value.items()}


def read_action(name: str, action: Any) -> Any:
    """An action of a guard, as JSON gives it back: so a repeated question compares equal to what was kept."""
    return msgspec.json.decode(write_action(name, action))


def write_action(name: str, action: Any) -> bytes:
    """An action of a guard as JSON."""
    if action is None:
        raise InputError(f"`{name}` must be given to a guard: any JSON value but null.")
    try:
        return canonical(action)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(f"`{name}` must be plain JSON data: {error}.") from None


def plain_prediction(prediction: Any, metrics: tuple[str, ...]) -> float | dict[str, float] | None:
    """What is predicted of the baseline, as plain data."""
    hint = "It is the reward that you expect of the baseline in this round."
    if prediction is None:
        return None
    if isinstance(prediction, Mapping):
        return {_known(name, metrics): finite("prediction", one, hint=hint) for name, one in prediction.items()}
    if len(metrics) > 1:
        raise InputError(f"`prediction` must name its metrics, {', '.join(metrics)}, but got {prediction!r:.80}.")
    return finite("prediction", prediction, hint=hint)


def _known(name: Any, metrics: tuple[str, ...]) -> str:
    if name not in metrics:
        raise InputError(f"The metrics of this experiment are {', '.join(metrics)}, but got {name!r:.80}.")
    return str(name)


def _number(name: Any, value: Any) -> float:
    try:
        # NaN is refused as out_of_range, and recorded; float("0.5") would accept a text.
        return math.nan if isinstance(value, bool | str) else float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"`{name}` must be a number, but got {value!r:.80}.") from None
