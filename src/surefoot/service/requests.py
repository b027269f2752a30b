"""What callers send: the bodies of the API, with the rules that can be told without knowing the experiment."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec
from litestar import Request
from msgspec import Meta

from surefoot.experiment.creation import LONGEST_NAME, NAME_PATTERN, NAME_RULE
from surefoot.experiment.reading import LONGEST_ID
from surefoot.policies.by_name import PolicyName
from surefoot.rounds.events import History, ModeName, Response
from surefoot.service.problems import Fault, ProblemError

T = TypeVar("T")
_decoders: dict[type[Any], Callable[[bytes], Any]] = {}
ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:@=+~-]*$"
Identifier: TypeAlias = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=LONGEST_ID,
        pattern=ID_PATTERN,
        description="Letters, digits and . _ : @ = + ~ -, beginning with a letter or digit.",
    ),
]
Name: TypeAlias = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=LONGEST_NAME,
        pattern=NAME_PATTERN,
        description=NAME_RULE,
    ),
]
ActionName: TypeAlias = Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)]
Digest: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$", description="The SHA-256 that names a catalogue.")]
Text: TypeAlias = Annotated[str, Meta(max_length=2000)]
RewardValue: TypeAlias = float | dict[str, float]


class Wire(msgspec.Struct, forbid_unknown_fields=True):
    """A request."""


class Action(Wire, kw_only=True):
    """One thing that may be played. Policies over plain arms need no features."""

    id: ActionName
    features: list[float] | None = None


class Decide(Wire, kw_only=True):
    """Decide one round. Asking again with the same `decision_id` gives the same answer, and of a guard the same coin.

    Of a policy over rows or arms: give `actions`, or the `catalogue` that they were registered as, with
    `context_features` where it has a feature map. The `baseline` is the id or the row of the action that would be
    played today, by convention the first, and `baseline_reward` its mean reward, if known, or [low, high]. An
    experiment that was created by a `configuration` makes the rows of the `context`; `actions` without features are
    then those that are offered. `confirms` are earlier decisions that were played as decided, where the experiment asks
    for that (`confirm_within`).

    Of a guard: `baseline` is what would be played today and `proposal` what is to be let in, any JSON value but null.
    `unit` is whom the reward belongs to, if that is more than this visit, for a guard with `unit_window`. `prediction`
    is the reward that a model of your own expects of the baseline, of several metrics by name.

    `context` is kept beside the decision.
    """

    decision_id: Identifier | None = None
    context: dict[str, Any] | None = None
    baseline: Any = None
    actions: Annotated[list[Action], Meta(min_length=1)] | None = None
    catalogue: Digest | None = None
    context_features: list[float] | None = None
    baseline_reward: float | Annotated[list[float], Meta(min_length=2, max_length=2)] | None = None
    confirms: Annotated[list[Identifier], Meta(max_length=100)] | None = None
    proposal: Any = None
    unit: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    prediction: RewardValue | None = None

    def arguments(self) -> dict[str, Any]:
        """What was sent, by name."""
        sent = {}
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None:
                sent[name] = value
        return sent


class SendReward(Wire, kw_only=True):
    """The reward of a decision: a number, or of a guard with several metrics a number for each, by name."""

    value: RewardValue


class NamedReward(SendReward, kw_only=True):
    """The reward of the decision that is named."""

    # Its length is checked entry by entry, so that a bad one refuses no other.
    decision_id: str


class DecideBatch(Wire, kw_only=True):
    """Many rounds, decided in order and made durable together."""

    decisions: Annotated[list[Decide], Meta(min_length=1)]


class RewardBatch(Wire, kw_only=True):
    """Many rewards, each accepted or refused on its own."""

    rewards: Annotated[list[NamedReward], Meta(min_length=1)]


class FeatureMapSettings(Wire, kw_only=True):
    """How actions and a context become feature rows: `surefoot.Shared` or `surefoot.Interactions`."""

    kind: Literal["shared", "interactions"]
    context_dim: Annotated[int, Meta(ge=1, le=10_000)]
    context_bound: Annotated[float, Meta(gt=0)]


class RegisterCatalogue(Wire, kw_only=True):
    """Actions that stay the same from round to round."""

    actions: Annotated[list[Action], Meta(min_length=1)]
    feature_map: FeatureMapSettings | None = None


class CreateExperiment(Wire, kw_only=True):
    """Begin an experiment; its settings never change.

    `policy` and its `settings` are those of the library, such as `SafeLUCB` with dim, alpha, delta, noise, theta_bound
    and feature_bound. With `reward_window` (seconds) a reward is learned when its window closes, and `default_reward`
    where none came; without one rewards are learned in the order of the decisions, as they come. A reward outside of
    `reward_bounds` raises the alarm.

    With `confirm_within` (seconds) callers of a SafeLUCB say of every learner's action that it was played, by their
    next question, by its reward or by `void`; a round that nobody confirms counts at its worst. It excludes windows,
    whose defaults would be learned of actions that perhaps nobody played.

    With `ledger` "sharded" the floor, or the bank of a guard, is shared by the servers that meet at the hub; `skew` is
    by how many seconds their clocks may differ. Such an experiment is not sealed and has no history.

    Unless `sealed` is false, ids, names and contexts are kept beside the chain, so that they can be erased.

    A `Guard` takes its bounds and defaults in `settings`, for one reward or by `metrics`, and no `seed`: its coins come
    from the system.

    `feature_names` are what the page calls the features of a row, or the arms; `reward_unit` is what it counts rewards
    in: a plural such as "clicks", or a currency by its code, such as "EUR"; where metrics have names, a unit for each,
    such as {"cost": "EUR"}.

    With `actions`, the baseline and the proposal, a `Guard` is a flag: requests need not name them.

    A `configuration` is the text of an experiment.toml, in place of `policy` and `settings`. Where its log spoke
    against a linear model, guarded mode needs `despite_doubt`.
    """

    name: Name
    policy: PolicyName = "SafeLUCB"
    settings: dict[str, Any] = {}
    configuration: str | None = None
    despite_doubt: bool = False
    mode: ModeName = "shadow"
    reward_window: Annotated[float, Meta(gt=0)] | None = None
    default_reward: float | None = None
    reward_bounds: Annotated[list[float], Meta(min_length=2, max_length=2)] | None = None
    history: History | None = None
    actions: Annotated[list[Any], Meta(min_length=2, max_length=2)] | None = None
    description: Text = ""
    sealed: bool = True
    confirm_within: Annotated[float, Meta(gt=0)] | None = None
    ledger: Literal["one", "sharded"] = "one"
    skew: Annotated[float, Meta(ge=0)] = 1.0
    feature_names: list[str] | None = None
    reward_unit: Text | dict[str, Text] = ""


class ForkExperiment(Wire, kw_only=True):
    """Begin a new experiment with what this one has learned from its settled rounds.

    `settings` are those in which the new policy differs, such as {"alpha": 0.2}. A `configuration` is the text of an
    experiment.toml, in place of them: the rows are made again from the contexts. `reward_window`, `default_reward` and
    `confirm_within` are the old one's where they are left out. `corrections` are rewards that were learned wrongly, by
    the decision's id, as they should have been sent.
    """

    name: Name
    settings: dict[str, Any] = {}
    configuration: str | None = None
    corrections: dict[str, float] = {}
    mode: ModeName = "shadow"
    reward_window: Annotated[float, Meta(gt=0)] | None = None
    default_reward: float | None = None
    confirm_within: Annotated[float, Meta(gt=0)] | None = None
    description: Text | None = None
    reason: Annotated[str, Meta(min_length=1, max_length=2000, pattern=r"\S")]


class ChangeMode(Wire, kw_only=True):
    """Go over to another mode."""

    mode: ModeName
    reason: Text = ""
    despite_doubt: bool = False


class LoseShard(Wire, kw_only=True):
    """Stop waiting for a shard that is gone, and say why.

    Its lease stays charged, and its open rounds are not learned. That is valid only if nothing that its open rewards
    can have influenced has led to it: a machine that broke is fine.
    """

    reason: Annotated[str, Meta(min_length=1, max_length=2000)]


class Abandon(Wire, kw_only=True):
    """Say that a decision's reward will never be learned, so that no other waits for it.

    Nothing may have led to this that the reward can have influenced: neither the reward, nor what came after it.
    """

    reason: Text = ""


class Void(Wire, kw_only=True):
    """Say what was really played, where that is not what was decided; until a reward of the round has come.

    `action` is the name of what was played, or its index; of a guard the action itself. Left out it is the baseline.
    """

    action: Any = None
    reason: Text = ""


class Correct(Wire, kw_only=True):
    """Replace a reward that was measured wrongly, as long as nothing was learned from it.

    Of a guard with several metrics `value` may name only those that were wrong.
    """

    value: RewardValue
    reason: Annotated[str, Meta(min_length=1, max_length=2000, pattern=r"\S")]


class Confirm(Wire, kw_only=True):
    """Say of decisions that they were played as decided; those that do not wait for it are passed over."""

    decision_ids: Annotated[list[Identifier], Meta(min_length=1, max_length=400)]


class Erase(Wire, kw_only=True):
    """Erase what is about people: of decisions by id, of a person, or of all decisions before a time.

    `person` is the `unit` of a guard's decisions, or the `person` of their context. Features, proofs and rewards stay.
    """

    decision_ids: Annotated[list[Identifier], Meta(max_length=400)] = []
    person: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    before: float | None = None
    reason: Annotated[str, Meta(min_length=1, max_length=2000, pattern=r"\S")]


class Acknowledge(Wire, kw_only=True):
    """Answer the alarm.

    `stay` on the baseline; `relearn` from here under the same promise, with the rounds spent charged at their worst,
    which may never be repaid; or `renew`: a new promise, with a new ledger. `alarm_round` is that of the alarm which is
    meant, so that no other one is answered by mistake, and asking again is safe.
    """

    response: Response
    reason: Annotated[str, Meta(min_length=1, max_length=2000, pattern=r"\S")]
    alarm_round: int | None = None


def read_body(decode: Callable[[bytes], T], body: bytes) -> T:
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
    decode: Callable[[bytes], T] = _decoders[kind]
    return decode


async def body_of(request: Request[Any, Any, Any], kind: type[T]) -> T:
    """The body of a request as its struct."""
    return read_body(decoder(kind), await request.body())


def too_deep() -> ProblemError:
    """The answer to a body whose nesting would exhaust the stack."""
    rule = "JSON must be nested less deeply"
    return ProblemError("invalid", f"{rule}.", [Fault("body", rule)])


def _malformed(error: msgspec.ValidationError) -> ProblemError:
    rule, _, place = str(error).partition(" - at `")
    field = place.rstrip("`").removeprefix("$").removeprefix(".") or "body"
    return ProblemError("malformed", f"`{field}`: {rule}.", [Fault(field, rule)])


READ_DECIDE, READ_BATCH, READ_REWARD = decoder(Decide), decoder(DecideBatch), decoder(SendReward)
