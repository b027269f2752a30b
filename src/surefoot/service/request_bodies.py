"""Bodies whose shape depends on the experiment: actions for most policies, a baseline and a proposal for a guard."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import msgspec
from litestar import Request

from surefoot.errors import InputError
from surefoot.experiment import GuardQuestion
from surefoot.service import request_models
from surefoot.service.problems import Fault, ProblemError

T = TypeVar("T")
AnyDecide: TypeAlias = request_models.Decide | request_models.GuardDecide

# For actions, and for a guard.
DECIDE = (request_models.Decide, request_models.GuardDecide)
FALLBACK = (request_models.Fallback, request_models.GuardFallback)
BATCH = (request_models.DecideBatch, request_models.GuardDecideBatch)
_decoders: dict[type[Any], Callable[[bytes], Any]] = {}
DEEPEST = 60
ACTIONS_ONLY = ("actions", "catalogue", "baseline_reward", "context_features")
GUARD_ONLY = ("proposal", "unit", "prediction")
GUARD_ADVICE = "This experiment has a guard: send `baseline` and `proposal`, any JSON values, and none of {other}."
ACTIONS_ADVICE = (
    "This experiment decides between actions: send `actions` or a `catalogue`, and none of {other}. "
    "To choose between a baseline and a proposal, create an experiment with the policy Guard."
)


def read_body(decode: Callable[[bytes], Any], body: bytes) -> Any:
    """A body as its struct, or the problem that it is malformed."""
    try:
        return decode(body)
    except msgspec.ValidationError as error:
        raise _malformed(error) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProblemError("malformed", f"The body must be JSON: {error}.") from None
    except RecursionError:
        raise too_deep() from None


def decoder(kind: type[T]) -> Callable[[bytes], T]:
    """The decoder of a kind of body, which is made once."""
    if kind not in _decoders:
        _decoders[kind] = msgspec.json.Decoder(kind).decode
    found: Callable[[bytes], T] = _decoders[kind]
    return found


async def body_of(request: Request[Any, Any, Any], kind: type[T]) -> T:
    """The body of a request as its struct, or the problem that it is malformed."""
    found: T = read_body(decoder(kind), await request.body())
    return found


def too_deep() -> ProblemError:
    """The answer to a body whose nesting would exhaust the stack."""
    rule = "JSON must be nested less deeply"
    return ProblemError("invalid", f"{rule}.", [Fault("body", rule)])


def read_question_body(kinds: tuple[type[Any], type[Any]], body: bytes, *, is_guard: bool) -> Any:
    """A question as the experiment takes it; one of the other kind is refused in words that say what to send."""
    try:
        return read_body(decoder(kinds[is_guard]), body)
    except ProblemError:
        # Only a body that was refused is read once more.
        refuse_other_kind(body, is_guard=is_guard)
        raise


def refuse_other_kind(body: bytes, *, is_guard: bool) -> None:
    """Raise if the body, or an entry of the batch, is meant for the other kind of experiment."""
    try:
        told = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # Then the first error says what is wrong.
        return
    batch = told.get("decisions") if isinstance(told, dict) else None
    for index, entry in enumerate(batch if isinstance(batch, list) else [told]):
        other = [
            name for name in (ACTIONS_ONLY if is_guard else GUARD_ONLY) if isinstance(entry, dict) and name in entry
        ]
        if other:
            rule = (GUARD_ADVICE if is_guard else ACTIONS_ADVICE).format(other=", ".join(other))
            place = other[0] if batch is None else f"decisions[{index}].{other[0]}"
            raise ProblemError("invalid", rule, [Fault(place, rule)])


def guard_question(asked: request_models.GuardDecide) -> GuardQuestion:
    """What an experiment with a guard is asked."""
    refuse_depth("baseline", asked.baseline)
    refuse_depth("proposal", asked.proposal)
    return GuardQuestion(asked.baseline, asked.proposal, asked.decision_id, asked.unit, asked.prediction, asked.context)


def refuse_depth(name: str, action: Any) -> None:
    """Refuse an action nested so deeply that a journal which holds it might not be read again."""
    # Level by level, since recursion is what such an action would break.
    level = [action]
    for _ in range(DEEPEST):
        level = [inner for one in level if isinstance(one, dict | list) for inner in _within(one)]
        if not level:
            return
    raise InputError(f"`{name}` must be nested at most {DEEPEST} deep.")


def _within(one: dict[str, Any] | list[Any]) -> Any:
    return one.values() if isinstance(one, dict) else one


def _malformed(error: msgspec.ValidationError) -> ProblemError:
    rule, _, place = str(error).partition(" - at `")
    field = place.rstrip("`").removeprefix("$").removeprefix(".") or "body"
    return ProblemError("malformed", f"`{field}`: {rule}.", [Fault(field, rule)])
