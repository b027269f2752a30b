"""What callers send, read and checked once, before anything is locked: ids, texts, actions, numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from surefoot.arrays import finite
from surefoot.errors import InputError
from surefoot.journal import canonical
from surefoot.journal.events import check_text

LONGEST_ID, LONGEST_TEXT = 200, 2000
DEEPEST = 60  # levels of an action
MOST_IDS = 400  # named in one call


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
        is_valid = len(text) <= LONGEST_TEXT and isinstance(text.encode(), bytes)
    except (AttributeError, TypeError, UnicodeEncodeError):
        is_valid = False
    if not is_valid or not isinstance(text, str):
        raise InputError(f"`{name}` must be a text of at most {LONGEST_TEXT:,} characters, but got {text!r:.80}.")
    return text


def read_reason(reason: str, why: str) -> str:
    """A reason that must not be empty, for an auditor will ask."""
    if not read_text("reason", reason).strip():
        raise InputError(f"`reason` must say why {why}: an auditor will ask.")
    return reason


def read_actions(actions: Sequence[str] | None, rows: int) -> list[str] | None:
    """The names of a request's actions, if they are valid."""
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
    if len(set(names)) < len(names) or len(names) != rows:
        raise InputError(f"`actions` must hold a different name for each of {rows} rows, but got {actions!r:.80}.")
    return names


def read_baseline(baseline: int | str | None, actions: list[str] | None, rows: int) -> int | None:
    """The row of the baseline, if it is one."""
    if baseline is None:
        return None
    if isinstance(baseline, str):
        if actions is None or baseline not in actions:
            raise InputError(f"`baseline` must be a row index, or one of `actions`, but got {baseline!r:.80}.")
        return actions.index(baseline)
    if isinstance(baseline, bool) or not isinstance(baseline, (int, np.integer)):
        raise InputError(f"`baseline` must be a row index, but got {baseline!r}: the action you would play today.")
    if not 0 <= baseline < rows:
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
        # Through JSON and back, so that a repeated request compares equal to what was kept.
        kept: dict[str, Any] = msgspec.json.decode(canonical(dict(context)), type=dict[str, Any])
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"`context` must be plain JSON data under text keys: {error}.") from None
    _check_depth("context", kept)
    return kept


def read_action(name: str, action: Any) -> Any:
    """An action of a guard, as JSON gives it back: so a repeated request compares equal to what was kept."""
    if type(action) is str and action.isascii() and action.isprintable():  # the usual case, which is its own copy
        return action
    if action is None:
        raise InputError(f"`{name}` must be given to a guard: any JSON value but null.")
    _check_depth(name, action)
    try:
        return msgspec.json.decode(canonical(action))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(f"`{name}` must be plain JSON data: {error}.") from None


def _check_depth(name: str, value: Any) -> None:
    """Refuse what is nested so deeply that a journal which holds it might not be read again."""
    # Level by level, since recursion is what such a value would break.
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for one in level if isinstance(one, dict | list) for inner in _within(one)]
        if not level:
            return
    raise InputError(f"`{name}` must be nested at most {DEEPEST} deep.")


def _within(one: dict[str, Any] | list[Any]) -> Any:
    return one.values() if isinstance(one, dict) else one


def read_prediction(prediction: Any, metrics: tuple[str, ...]) -> float | dict[str, float] | None:
    """What is predicted of the baseline, as plain data."""
    hint = "It is the reward that you expect of the baseline in this round."
    if prediction is None:
        return None
    if isinstance(prediction, Mapping):
        for name in prediction:
            if name not in metrics:
                raise InputError(f"The metrics of this experiment are {', '.join(metrics)}, but got {name!r:.80}.")
        return {str(name): finite("prediction", one, hint=hint) for name, one in prediction.items()}
    if len(metrics) > 1:
        raise InputError(f"`prediction` must name its metrics, {', '.join(metrics)}, but got {prediction!r:.80}.")
    return finite("prediction", prediction, hint=hint)


def read_number(name: Any, value: Any) -> float:
    """A reward as a number, finite or not: one that is not is refused as out of range, and recorded."""
    try:
        # float() alone would take a text, and True for 1.
        number = None if isinstance(value, bool | str) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None:
        raise InputError(f"`{name}` must be a number, but got {value!r:.80}.")
    return number
