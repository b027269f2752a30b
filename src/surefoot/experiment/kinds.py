"""What differs between policies over rows, over plain arms, and over pairs of actions; everything else asks the kind.

A kind reads a request, asks the policy, writes and recalls its rounds, gives rewards to it, and tells answers. It
follows from the policy that an experiment was created with, and holds nothing that changes.
"""

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np

from surefoot.arrays import LARGEST, Matrix, real_array
from surefoot.core import native
from surefoot.errors import ConfigError, InputError, JournalCorruptedError
from surefoot.experiment.beliefs import NO_BELIEFS, Beliefs, arm_means, coordinates
from surefoot.experiment.configuration import Configuration, configuration_in
from surefoot.experiment.reading import (
    read_action,
    read_actions,
    read_baseline,
    read_baseline_reward,
    read_context,
    read_id,
    read_ids,
    read_number,
    read_prediction,
)
from surefoot.experiment.sealing import PairText, RowsText, check_unsealed, person_of, unit_reference
from surefoot.experiment.status import (
    Earnings,
    GuardStatus,
    Lift,
    arm_estimates,
    guard_lift,
    guard_status,
    ledger_earnings,
    ledger_estimates,
    ledger_lift,
)
from surefoot.ids import new_id
from surefoot.journal import Event, View
from surefoot.journal.events import check_text, encode_sorted
from surefoot.journal.private_text import PrivateText, by_alias, new_salt
from surefoot.linear.actions import ActionSet, Catalogue
from surefoot.policies import Decision, Guard, GuardDecision, Policy
from surefoot.policies.arm_policy import ArmPolicy
from surefoot.policies.baseline_forecast import predicted_metrics
from surefoot.policies.by_name import policy_class
from surefoot.policies.guard_settings import is_same
from surefoot.policies.linear_certificate import certify
from surefoot.policies.linear_policy import LinearPolicy
from surefoot.policies.safe_lucb import SafeLUCB
from surefoot.policies.units import LONGEST_UNIT
from surefoot.rounds import Answer, Record, decode, encode, events, number
from surefoot.rounds.answers import EventHead
from surefoot.rounds.events import (
    METRIC,
    Created,
    PairHanded,
    PairRequest,
    PairRound,
    RowsHanded,
    RowsRequest,
    RowsRound,
    Voided,
)
from surefoot.rounds.format import encode_finite
from surefoot.safety.certificate import explain_gate
from surefoot.safety.gates import safe_proof
from surefoot.safety.guard_certificate import GuardCertificate, explain_share
from surefoot.safety.likelihood import LIKELIHOOD
from surefoot.sharing.pots import PairPot, RowsPot, proof_record
from surefoot.values import Value

if TYPE_CHECKING:
    from surefoot.experiment.state import State
    from surefoot.experiment.turn import Turn


PAIR = "must be the baseline and the proposal of a guard"
NUMBER_BYTES = 25  # of a float and the comma after it, at most


class Ask(Value, frozen=True):
    """A request that was read: as the policy takes it and, but for the rows, as the journal keeps it.

    key:      what the decision is found by in the journal
    by:       who books a round
    forecast: of a guard's round that is repeated, as it was recorded
    """

    decision_id: str
    key: str
    request: Any
    rows: Matrix | None = None
    catalogue: Catalogue | None = None
    is_fallback: bool = False
    confirms: tuple[str, ...] = ()
    by: str = ""
    forecast: dict[str, float] | msgspec.UnsetType | None = msgspec.UNSET

    @property
    def size(self) -> int:
        """Bytes that it may take in a journal, of its rows or of two actions; never too few."""
        rows = self.rows if self.catalogue is None else self.catalogue.rows
        return NUMBER_BYTES * rows.size if rows is not None else len(encode(self.request))


class Kind(ABC):
    """What one kind of policy takes and gives."""

    takes: ClassVar[str]  # the arguments of `decide`, in words
    has_rows: ClassVar[bool]  # actions are rows or arms, and what was learned of them is of use to another experiment
    fields: ClassVar[frozenset[str]]
    round: ClassVar[type[events.RowsRound | events.PairRound]]
    records: ClassVar[dict[str, type[Record]]]  # what events hold, by their kind
    text: ClassVar[type[RowsText | PairText]]
    pot: ClassVar[type[RowsPot | PairPot]]
    stays_put: ClassVar[bool]  # a round counts as assigned, whatever was played
    draws: ClassVar[bool]  # by a coin whose probability is logged
    learns_in_order: ClassVar[bool]  # so that a round which is reported later teaches nothing

    def __init__(self, created: Created) -> None:
        self._created = created
        #: After how many rounds one is settled by what came: a guard takes one of the two, and others only the first.
        self.closes_after: int | None = created.settings.get("settle_after") or created.settings.get("unit_window")
        self.metrics: tuple[str, ...] = (METRIC,)
        #: How contexts become rows, where the experiment was made by a configuration.
        self.configuration: Configuration | None = None

    @classmethod
    @abstractmethod
    def check_settings(cls, policy: Any, **settings: Any) -> None:
        """Refuse what an experiment of this kind cannot be created with."""

    def read(self, arguments: Mapping[str, Any], *, is_fallback: bool = False, by: str = "") -> Ask:
        """Check the form of a request, before anything is locked; the policy checks its content."""
        if not self.fields.issuperset(arguments):
            others = ", ".join(sorted(map(str, set(arguments) - self.fields)))
            raise InputError(f"{self._created.policy} takes {self.takes}, but got {others}.")
        decision_id = arguments.get("decision_id")
        if decision_id is None and is_fallback:
            raise InputError("A fallback must have the caller's own `decision_id`, so that it is never booked twice.")
        known = new_id() if decision_id is None else read_id(decision_id)
        key = by_alias(known) if self._created.is_sealed else f"d:{known}"
        return self._read(arguments, known, key, is_fallback, by)

    @abstractmethod
    def _read(self, arguments: Mapping[str, Any], decision_id: str, key: str, is_fallback: bool, by: str) -> Ask:
        """The rest of `read`."""

    @abstractmethod
    def same(self, request: Any, ask: Ask) -> bool:
        """Whether a request that was recorded, in the caller's own words, is what is asked again."""

    @abstractmethod
    def seal(self, ask: Ask, view: View) -> tuple[Any, PrivateText | None]:
        """The request as the chain holds it, and what is kept beside; None where nothing is sealed."""

    @abstractmethod
    def decide(self, turn: "Turn", ask: Ask, request: Any, *, hold: bool) -> Any:
        """Ask the policy; an error of its own has changed nothing."""

    @abstractmethod
    def write(
        self, turn: "Turn", decision: Any, ask: Ask, request: Any, reference: str, *, hold: bool
    ) -> tuple[Any, bytes]:
        """The round as far as its answer tells it, and the payload of its event."""

    @abstractmethod
    def recall(self, state: "State", record: Any, view: View) -> None:
        """Count a recorded round again."""

    @abstractmethod
    def answer(
        self, record: Any, ask: Ask | None, *, voided: Voided | None, time: float, head: Any, **extra: Any
    ) -> Answer:
        """What the caller is told of a round, in its own words."""

    @abstractmethod
    def read_rewards(self, value: Any) -> dict[str, float]:
        """Rewards by metric, finite or not."""

    @abstractmethod
    def accepts(self, policy: Any, values: Mapping[str, float]) -> bool:
        """Whether rewards can be taken; others are refused as out of range."""

    def takes_parts(self, policy: Any, round_: int) -> bool:
        """Whether further metrics of a decision may come after its first; all of a unit's visit come at once."""
        return True

    def is_of_unit(self, record: Any) -> bool:
        """Whether the reward of a decision is only a part of what a unit brings."""
        return False

    @abstractmethod
    def settle(self, policy: Any, round_: int, values: Mapping[str, float] | None, *, is_closed: bool = False) -> float:
        """Give rewards to the policy, or the default where none came until its window closed; what the total gains."""

    @abstractmethod
    def replace(self, policy: Any, round_: int, values: Mapping[str, float]) -> float:
        """Replace rewards that wait for an earlier round; what the total gains."""

    @abstractmethod
    def examine(self, policy: Any, round_: int, values: Mapping[str, float]) -> None:
        """Raise the alarm where rewards that are learned later contradict what was declared."""

    def differs(self, request: Any) -> bool:
        """Whether a proposal that the caller makes is another action than the baseline's."""
        return False

    def lose(self, policy: Any, rounds: int) -> None:
        """Have a policy pay for rounds that are lost; of rows nobody knows what they were worth."""
        return

    def standing(self, policy: Any, counts: Any) -> GuardStatus | None:
        """How a guard stands; None of others."""
        return None

    def lift(self, policy: Any, decisions: int) -> Lift | None:
        """What so many decisions of the learner earned beyond the baseline, on average, as far as that is known."""
        return None

    def estimates(self, policy: Any) -> tuple[float, float]:
        """What was earned, and what the baseline would have earned, by the newest estimate; nan if unknown."""
        return math.nan, math.nan

    def earnings(self, policy: Any) -> Earnings:
        """What is known for certain of the sums over the ledger."""
        return Earnings()

    def beliefs(self, policy: Any) -> Beliefs:
        """What the policy believes, where it has a model."""
        return NO_BELIEFS

    @abstractmethod
    def handed(self, record: Any, time: float, rows: Any) -> Any:
        """A round as a shard hands it in."""

    def rows(self, state: "State", request: Any, view: View) -> Matrix | None:
        """What a recorded request offered; None where there are no rows."""
        return None

    @abstractmethod
    def played(self, state: "State", record: Any, action: Any, view: View) -> tuple[Any, bool]:
        """What was played, as `Voided` keeps it, and whether that is what was decided."""

    @abstractmethod
    def move(self, state: "State", record: Any, voided: Voided, view: View) -> None:
        """Count a round as it was played."""

    def opened(self, event: Event, view: View) -> Any:
        """The round of an event, in the caller's own words as far as they are there."""
        record: Any = decode(event, self.round)
        private = view.private(event.number)
        if private is None:
            return record
        text = msgspec.json.decode(private.text, type=self.text)
        request = msgspec.structs.replace(record.request, **text.words())
        return msgspec.structs.replace(record, decision_id=text.decision_id, request=request)


class Rows(Kind):
    """Policies that choose among feature rows, or plain arms: any that is not surefoot's own."""

    takes, has_rows = "`features`, and no `proposal`", True
    fields = frozenset(("decision_id", "context", "features", "baseline", "baseline_reward", "actions", "confirms"))
    round, text, pot, stays_put, draws, learns_in_order = RowsRound, RowsText, RowsPot, False, False, True
    records = events.ROWS_RECORDS

    def __init__(self, created: Created) -> None:
        super().__init__(created)
        self._arms: int | None = created.settings.get("arms")
        self._with_sets = created.settings.get("radius") == "dual"  # others are determined by their observations
        if created.configuration is not None:
            self.configuration = configuration_in(created.configuration)

    @classmethod
    def check_settings(cls, policy: Policy, **settings: Any) -> None:
        actions, seconds = settings["actions"], settings["confirm_within"]
        if actions is not None:
            raise ConfigError(f"`actions` {PAIR}, but got {actions!r:.80} for a {type(policy).__name__}.")
        if seconds is not None and not isinstance(policy, SafeLUCB):
            raise ConfigError(
                f"`confirm_within` is for SafeLUCB, but got {type(policy).__name__}: only that one can count a round "
                "at its worst."
            )

    def _read(self, arguments: Mapping[str, Any], decision_id: str, key: str, is_fallback: bool, by: str) -> Ask:
        if self.configuration is not None and arguments.get("features") is None:
            arguments = self.configuration.arguments(arguments)
        rows, catalogue = _read_features(arguments.get("features"))
        offered = rows if catalogue is None else catalogue.rows
        count = self._arms if offered is None else offered.shape[0]
        if count is None:
            raise InputError("`features` must be given: one row per action. Only policies over plain arms need none.")
        actions = read_actions(arguments.get("actions"), count)
        request = RowsRequest(
            catalogue=None if catalogue is None else catalogue.digest,
            actions=actions,
            baseline=read_baseline(arguments.get("baseline"), actions, count),
            baseline_reward=read_baseline_reward(arguments.get("baseline_reward")),
            context=read_context(arguments.get("context")),
        )
        confirms = arguments.get("confirms") or ()
        confirmed = read_ids("confirms", confirms) if confirms else ()
        return Ask(decision_id, key, request, rows, catalogue, is_fallback, confirmed, by)

    def same(self, request: RowsRequest, ask: Ask) -> bool:
        rows = None if ask.rows is None else ask.rows.tolist()
        return bool(request == msgspec.structs.replace(ask.request, features=rows))

    def seal(self, ask: Ask, view: View) -> tuple[RowsRequest, PrivateText | None]:
        if not self._created.is_sealed:
            return ask.request, None
        check_unsealed(ask.decision_id)
        request: RowsRequest = ask.request
        text = RowsText(ask.decision_id, request.actions, request.context)
        private = PrivateText(ask.decision_id, person_of(request.context), new_salt(), encode_sorted(text))
        return msgspec.structs.replace(request, actions=None, context=None), private

    def decide(self, turn: "Turn", ask: Ask, request: RowsRequest, *, hold: bool) -> Decision:
        features: Any = ask.rows if ask.catalogue is None else ask.catalogue
        policy: Policy = turn.state.policy
        return policy.decide(features, baseline=request.baseline, baseline_reward=request.baseline_reward, hold=hold)

    def write(
        self, turn: "Turn", decision: Decision, ask: Ask, request: RowsRequest, reference: str, *, hold: bool
    ) -> tuple[RowsRound, bytes]:
        draw = None if math.isnan(decision.draw) else decision.draw
        evidence = None if self._with_sets else _evidence(decision)
        common: dict[str, Any] = {
            "decision_id": reference, "round": decision.round, "mode": turn.state.mode, "source": decision.source,
            "is_held": hold, "is_fallback": ask.is_fallback, "draw": draw, "action": decision.action,
        }  # fmt: skip
        if evidence is not None:
            certificate = events.GateCertificate(
                guaranteed=evidence.guaranteed, required=evidence.required, proposal=evidence.action,
                optimism=evidence.optimism,
            )  # fmt: skip
            light = RowsRound(request=ask.request, certificate=certificate, **common)
            # Bytes, where the core has made the proof: as objects it would take longer than all the rest of a decision.
            payload = self._written(light, decision, evidence, ask, request)
            if payload is not None:
                return light, payload
        certificate = _certificate(decision, self._with_sets)
        rows = None if ask.rows is None else ask.rows.tolist()
        record = RowsRound(request=msgspec.structs.replace(request, features=rows), certificate=certificate, **common)
        return msgspec.structs.replace(record, request=ask.request), encode(record)

    def _written(
        self, light: RowsRound, decision: Decision, evidence: Any, ask: Ask, request: RowsRequest
    ) -> bytes | None:
        """The payload, with rows and certificate by the core; None where one of their numbers is not finite."""
        certificate = native.certificate_json(evidence, float(decision._evidence[1].theta_bound), 0.0, LIKELIHOOD)
        rows = None if ask.rows is None else native.rows_json(ask.rows)
        if certificate is None or (rows is None) != (ask.rows is None):
            return None
        features: Any = None if rows is None else msgspec.Raw(rows)
        request = msgspec.structs.replace(request, features=features)
        raw: Any = msgspec.Raw(certificate)
        return encode_finite(msgspec.structs.replace(light, request=request, certificate=raw))

    def recall(self, state: "State", record: RowsRound, view: View) -> None:
        request, policy = record.request, state.policy
        again = policy.recall(
            self.features(state, request, view),
            baseline=request.baseline,
            baseline_reward=request.baseline_reward,
            action=record.action,
            source=record.source,
            **self._memory(record),
        )
        if again.round != record.round:
            raise JournalCorruptedError(f"Round {again.round} must come next, but got round {record.round}.")

    def _memory(self, record: RowsRound) -> dict[str, Any]:
        """What the policy has to know of a round beside request and answer, to recall it."""
        return {}

    def features(self, state: "State", request: RowsRequest, view: View) -> Any:
        """What a recorded request offered, as the policy takes it."""
        if request.catalogue is not None:
            return state.catalogue(request.catalogue, view)
        return None if request.features is None else np.array(request.features, dtype=np.float64)

    def rows(self, state: "State", request: RowsRequest, view: View) -> Matrix | None:
        features: Matrix | Catalogue | None = self.features(state, request, view)
        return features.rows if isinstance(features, Catalogue) else features

    def answer(
        self, record: RowsRound, ask: Ask | None, *, voided: Voided | None, time: float, head: Any, **extra: Any
    ) -> Answer:
        words = record.request if ask is None else ask.request
        decision_id = record.decision_id if ask is None else ask.decision_id
        gate, names = record.certificate, words.actions
        action = record.action if voided is None else int(voided.action)
        source = record.source if voided is None else "baseline" if action == words.baseline else "learner"
        guaranteed, required, margin = float(gate.guaranteed), float(gate.required), gate.margin
        held_out = record.draw is not None and record.source == "baseline"
        proposal_id = None if names is None or gate.proposal < 0 else names[gate.proposal]
        reason = explain_gate(
            guaranteed, required, gate.proposal, float(gate.optimism), is_held=record.is_held, is_held_out=held_out,
            name=proposal_id,
        )  # fmt: skip
        if voided is not None:
            reason = f"{reason} But the caller played {names[action] if names else f'row {action}'}."
        return Answer(
            decision_id=decision_id,
            round=record.round,
            action=action,
            action_id=None if names is None else names[action],
            source=source,
            mode=record.mode,
            margin=margin if math.isfinite(margin) else None,
            guaranteed=guaranteed if math.isfinite(guaranteed) else None,
            required=required if math.isfinite(required) else None,
            proposal=gate.proposal,
            proposal_id=proposal_id,
            explanation=reason,
            is_held=record.is_held,
            is_fallback=record.is_fallback,
            is_voided=voided is not None,
            time=time,
            head=EventHead(*head),
            **extra,
        )

    def read_rewards(self, value: Any) -> dict[str, float]:
        if isinstance(value, Mapping):
            if set(value) != {METRIC}:
                raise InputError(f"`value` must be a number, but got {value!r:.80}. Only a guard has several metrics.")
            value = value[METRIC]
        return {METRIC: read_number("value", value)}

    def accepts(self, policy: Policy, values: Mapping[str, float]) -> bool:
        return math.isfinite(values[METRIC]) and abs(values[METRIC]) <= LARGEST

    def settle(
        self, policy: Policy, round_: int, values: Mapping[str, float] | None, *, is_closed: bool = False
    ) -> float:
        value = (self._created.default_reward or 0.0) if values is None else values[METRIC]
        policy.observe(round_, value)
        return value

    def replace(self, policy: Policy, round_: int, values: Mapping[str, float]) -> float:
        waiting, value = policy.settlement.rewards, values[METRIC]
        gained = value - float(waiting[round_])  # type: ignore[arg-type]
        waiting[round_] = value
        return gained

    def examine(self, policy: Policy, round_: int, values: Mapping[str, float]) -> None:
        policy.examine(round_, values[METRIC])

    def handed(self, record: RowsRound, time: float, rows: Any) -> RowsHanded:
        request = record.request
        return RowsHanded(
            number=record.round, moment=time, is_learner=record.source == "learner",
            played=rows[record.action].tolist(), displaced=rows[request.baseline].tolist(),
            baseline_reward=request.baseline_reward,
        )  # fmt: skip

    def played(self, state: "State", record: RowsRound, action: Any, view: View) -> tuple[int, bool]:
        request = record.request
        rows = self.rows(state, request, view)
        count = (self._arms or 0) if rows is None else len(rows)
        row = request.baseline if action is None else action
        names = request.actions
        if isinstance(row, str) and names is not None and row in names:
            row = names.index(row)
        if isinstance(row, bool) or not isinstance(row, int) or not 0 <= row < count:
            offered = "a row that was offered" if names is None else f"a row, or one of {names!r:.80}"
            raise InputError(
                f"`action` must be {offered} (0 <= action < {count}), but got {row!r:.80}. It is what was played; left "
                "out, the baseline."
            )
        return row, row == record.action

    def move(self, state: "State", record: RowsRound, voided: Voided, view: View) -> None:
        request, policy = record.request, state.policy
        policy.void(
            record.round,
            self.features(state, request, view),
            baseline=request.baseline,
            baseline_reward=request.baseline_reward,
            action=record.action,
            source=record.source,
            played=voided.action,
        )


class LinearRows(Rows):
    """Policies that know theta by a confidence set."""

    def _memory(self, record: RowsRound) -> dict[str, Any]:
        memory: dict[str, Any] = {"draw": record.draw}
        if self._created.shard is not None:
            # The proposal that was refused where the shard's own rewards made it: it claims no bound.
            is_tried = not record.is_held and float(record.certificate.optimism) == math.inf
            memory["tried"] = record.certificate.proposal if is_tried else None
        return memory

    def lift(self, policy: LinearPolicy, decisions: int) -> Lift | None:
        return ledger_lift(policy)

    def estimates(self, policy: LinearPolicy) -> tuple[float, float]:
        return ledger_estimates(policy)

    def earnings(self, policy: LinearPolicy) -> Earnings:
        return ledger_earnings(policy)

    def beliefs(self, policy: LinearPolicy) -> Beliefs:
        return coordinates(policy)


class ArmRows(Rows):
    """Policies that know plain arms by their means."""

    def estimates(self, policy: ArmPolicy) -> tuple[float, float]:
        return arm_estimates(policy)

    def beliefs(self, policy: ArmPolicy) -> Beliefs:
        return arm_means(policy)


class Pair(Kind):
    """Guards, whose coin chooses between a baseline and a proposal, any two JSON values."""

    takes, has_rows = "`baseline` and `proposal`", False
    fields = frozenset(("decision_id", "context", "baseline", "proposal", "unit", "prediction"))
    round, text, pot, stays_put, draws, learns_in_order = PairRound, PairText, PairPot, True, True, False
    records = events.PAIR_RECORDS

    def __init__(self, created: Created) -> None:
        super().__init__(created)
        self.metrics = tuple(created.settings.get("metrics") or (METRIC,))
        self._has_seed = created.settings.get("seed") is not None
        self._actions = created.actions

    @classmethod
    def check_settings(cls, policy: Guard, **settings: Any) -> None:
        if type(policy) is not Guard:
            raise ConfigError(
                f"An experiment takes a plain Guard, which its audit can check, but got {type(policy).__name__}."
            )
        if any(settings[name] is not None for name in ("default_reward", "reward_bounds", "history")):
            raise ConfigError(
                "`default_reward`, `reward_bounds` and `history` are not for a guard: give bounds and defaults to it "
                "or to each of its metrics."
            )
        windows = (settings["reward_window"], policy.settings["settle_after"], policy.settings["unit_window"])
        if sum(one is not None for one in windows) > 1:
            raise ConfigError(
                f"A window must be one of reward_window, settle_after and unit_window, but got {windows}. "
                "A unit's rewards are added up for unit_window rounds, and it is settled by their sum."
            )
        actions = settings["actions"]
        if actions is not None and (isinstance(actions, str) or len(actions) != 2):
            raise ConfigError(f"`actions` {PAIR}, but got {actions!r:.80} for a Guard.")
        if settings["confirm_within"] is not None:
            raise ConfigError(
                "`confirm_within` is for SafeLUCB, but got Guard: a guard compares what was assigned, whatever was "
                "played, and needs none."
            )

    def _read(self, arguments: Mapping[str, Any], decision_id: str, key: str, is_fallback: bool, by: str) -> Ask:
        baseline, proposal = arguments.get("baseline"), arguments.get("proposal")
        if baseline is None and proposal is None and self._actions is not None:
            baseline, proposal = self._actions
        unit = arguments.get("unit")
        if isinstance(unit, str) and unit:
            check_text("unit", unit, LONGEST_UNIT)  # before the coin: what cannot be written must not draw one
        request = PairRequest(
            baseline=read_action("baseline", baseline),
            proposal=read_action("proposal", proposal),
            unit=unit,
            prediction=read_prediction(arguments.get("prediction"), self.metrics),
            context=read_context(arguments.get("context")),
        )
        return Ask(decision_id, key, request, is_fallback=is_fallback, by=by)

    def same(self, request: PairRequest, ask: Ask) -> bool:
        return bool(request == ask.request)

    def seal(self, ask: Ask, view: View) -> tuple[PairRequest, PrivateText | None]:
        if not self._created.is_sealed:
            return ask.request, None
        check_unsealed(ask.decision_id)
        request: PairRequest = ask.request
        person = person_of(request.context)
        if request.unit is not None and person not in (None, request.unit):
            raise InputError(
                f"`person` of a context must be the unit, {request.unit!r:.80}, where there is one, but got "
                f"{person!r:.80}. A decision is about one person, by whom it can be erased."
            )
        text = PairText(ask.decision_id, request.context, request.unit, request.baseline, request.proposal)
        private = PrivateText(ask.decision_id, request.unit or person, new_salt(), encode_sorted(text))
        # Salted hashes, by which one can tell whether the two were the same, and nothing else.
        sealed = PairRequest(
            baseline=_sealed_action(private.salt, request.baseline),
            proposal=_sealed_action(private.salt, request.proposal),
            unit=None if request.unit is None else unit_reference(request.unit, view),
            prediction=request.prediction,
        )
        return sealed, private

    def decide(self, turn: "Turn", ask: Ask, request: PairRequest, *, hold: bool) -> GuardDecision:
        guard: Guard = turn.state.policy
        turn.forecast = self._forecast(turn, ask, hold)
        prediction = request.prediction if turn.forecast is None else turn.forecast
        return guard.decide(
            baseline=request.baseline, proposal=request.proposal, unit=request.unit, prediction=prediction, hold=hold,
            coin=None if self._has_seed else partial(turn.coins.draw, turn),
        )  # fmt: skip

    def _forecast(self, turn: "Turn", ask: Ask, hold: bool) -> dict[str, float] | None:
        """What is predicted of the baseline's rewards where nobody else did, and something is at stake."""
        request: PairRequest = ask.request
        is_idle = hold or request.context is None or request.prediction is not None
        is_idle = is_idle or is_same(request.baseline, request.proposal)
        if ask.forecast is msgspec.UNSET:
            return None if is_idle else turn.state.forecast(turn.transaction).predict(request.context)
        recorded = ask.forecast
        if recorded is not None and (is_idle or not recorded.keys() <= {*predicted_metrics(turn.state.policy)}):
            raise InputError(f"nothing may be predicted of this round, but {recorded!r:.80} is recorded")
        return recorded

    def write(
        self, turn: "Turn", decision: GuardDecision, ask: Ask, request: PairRequest, reference: str, *, hold: bool
    ) -> tuple[PairRound, bytes]:
        # Another visit of an open unit makes no round: its coin fell before, and does not count where it is held.
        is_visit = decision.round <= turn.state.rounds
        is_coinless = (is_visit and hold) or math.isnan(decision.draw)
        is_drawn = not (is_visit or is_coinless or self._has_seed)
        record = PairRound(
            decision_id=reference,
            round=decision.round,
            mode=turn.state.mode,
            source=decision.source,
            is_held=hold,
            is_fallback=ask.is_fallback,
            draw=None if is_coinless else decision.draw,
            coins=turn.coins.block if is_drawn else 0,
            request=request,
            share=0.0 if is_visit and hold else decision.share,
            certificate=None if is_visit else _bank_certificate(decision.certificate),
            forecast=turn.forecast,
        )
        turn.state.await_baseline(record, ask.request.context)
        return record, encode(record)

    def recall(self, state: "State", record: PairRound, view: View) -> None:
        request, guard = record.request, state.policy
        again = guard.recall(
            baseline=request.baseline,
            proposal=request.proposal,
            share=record.share,
            draw=math.nan if record.draw is None else record.draw,
            source=record.source,
            unit=request.unit,
            prediction=record.prediction,
            hold=record.is_held,
        )
        if again.round != record.round:
            raise JournalCorruptedError(f"Round {again.round} must come next, but got round {record.round}.")
        state.await_baseline(record, request.context)

    def answer(
        self, record: PairRound, ask: Ask | None, *, voided: Voided | None, time: float, head: Any, **extra: Any
    ) -> Answer:
        words: PairRequest = record.request if ask is None else ask.request
        action = words.proposal if record.source == "learner" else words.baseline
        if voided is not None:
            action = words.baseline if voided.action is None else voided.action
        bank, share = record.certificate, record.share
        margin = None
        if bank is None:
            side = "the baseline, as asked," if record.is_held else f"the {record.source}'s side"
            reason = f"Another visit of unit {words.unit!r}: {side}, in its round {record.round}."
        else:
            margin = bank.margin
            is_one = share == 0.0 and not self.differs(record.request)
            reason = explain_share(share, bank.allowed, bank.binds, margin, record.is_held, is_one, record.source)
        return Answer(
            decision_id=record.decision_id if ask is None else ask.decision_id,
            round=record.round,
            action=action,
            source=record.source,
            mode=record.mode,
            probability=share if record.source == "learner" else 1.0 - share,
            share=share,
            unit=words.unit,
            margin=margin,
            allowed=None if bank is None else bank.allowed,
            binds=None if bank is None else bank.binds,
            explanation=reason,
            is_held=record.is_held,
            is_fallback=record.is_fallback,
            is_visit=bank is None,
            is_voided=voided is not None,
            time=time,
            head=EventHead(*head),
            **extra,
        )

    def read_rewards(self, value: Any) -> dict[str, float]:
        if not isinstance(value, Mapping):
            if len(self.metrics) > 1:
                raise InputError(
                    f"A reward must name its metrics, {', '.join(self.metrics)}, but got {value!r:.80}. "
                    'Give a mapping such as {"quality": 0.9, "cost": 0.2}.'
                )
            value = {self.metrics[0]: value}
        if not value:
            raise InputError(f"A reward must name at least one metric of {', '.join(self.metrics)}, but got none.")
        for name in value:
            if name not in self.metrics:
                raise InputError(f"The metrics of this experiment are {', '.join(self.metrics)}, but got {name!r:.80}.")
        return {str(name): read_number(name, one) for name, one in value.items()}

    def accepts(self, policy: Guard, values: Mapping[str, float]) -> bool:
        bounds = policy.metrics
        return all(bounds[name].low <= value <= bounds[name].high <= LARGEST for name, value in values.items())

    def takes_parts(self, policy: Guard, round_: int) -> bool:
        return not policy.units.holds(round_)

    def is_of_unit(self, record: PairRound) -> bool:
        return record.request.unit is not None

    def settle(
        self, policy: Guard, round_: int, values: Mapping[str, float] | None, *, is_closed: bool = False
    ) -> float:
        if is_closed:
            policy.observe(round_, values or {})
        else:
            policy.observe_part(round_, values or {})
        return 0.0  # sums over both sides mean nothing: the status has means by side

    def replace(self, policy: Guard, round_: int, values: Mapping[str, float]) -> float:
        if round_ in policy.settlement.parts:
            policy.settlement.parts[round_] |= values
            return 0.0
        waiting = policy.settlement.rewards
        known = dict(zip(self.metrics, waiting[round_], strict=True))  # type: ignore[arg-type]
        high = {name: metric.high for name, metric in policy.metrics.items()}
        known |= {name: value / high[name] for name, value in values.items()}
        waiting[round_] = tuple(known.values())
        return 0.0

    def examine(self, policy: Guard, round_: int, values: Mapping[str, float]) -> None:
        """Nothing: rewards beyond a guard's bounds were refused."""

    def lose(self, policy: Guard, rounds: int) -> None:
        policy.lose(rounds)

    def standing(self, policy: Guard, counts: Any) -> GuardStatus | None:
        return guard_status(policy, counts)

    def lift(self, policy: Guard, decisions: int) -> Lift | None:
        return guard_lift(policy, decisions)

    def differs(self, request: PairRequest) -> bool:
        return not is_same(request.baseline, request.proposal)

    def handed(self, record: PairRound, time: float, rows: Any) -> PairHanded:
        request = record.request
        return PairHanded(
            number=record.round, moment=time, is_learner=record.source == "learner", share=record.share,
            draw=record.draw, teaches=self.differs(request), prediction=record.prediction,
        )  # fmt: skip

    def played(self, state: "State", record: PairRound, action: Any, view: View) -> tuple[Any, bool]:
        baseline = record.request.baseline
        played = baseline if action is None else read_action("action", action)
        return None if played == baseline else played, played == record.action

    def move(self, state: "State", record: PairRound, voided: Voided, view: View) -> None:
        """Nothing: banks compare what was assigned, whatever came of it (intention to treat)."""


KINDS: dict[type[Any], type[Kind]] = {Guard: Pair, LinearPolicy: LinearRows, ArmPolicy: ArmRows, Policy: Rows}


def kind_of(created: Created) -> Kind:
    """The kind of an experiment's policy."""
    return kind_for(policy_class(created.policy))(created)


def kind_for(policy: type[Any]) -> type[Kind]:
    """The kind that a class of policies has."""
    return next(kind for base, kind in KINDS.items() if issubclass(policy, base))


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
    # A copy, since the caller may reuse its array before this request's turn comes.
    return rows.copy() if rows is features else rows, None


def _evidence(decision: Decision) -> Any:
    """What the core writes the proof of a decision from; None where it is made of objects."""
    if decision._certify is not certify:
        return None
    prover, _, evidence, proposal, _, method, gap = decision._evidence
    is_of_rows = method == "rows" and gap == 0.0 and evidence.action == proposal
    return evidence if prover is safe_proof and is_of_rows else None


def _certificate(decision: Decision, with_sets: bool) -> events.GateCertificate:
    """The certificate and its whole proof; `with_sets` writes out ellipsoids that their count does not determine."""
    certificate = decision.certificate
    return events.GateCertificate(
        guaranteed=number(certificate.guaranteed),
        required=number(certificate.required),
        proposal=certificate.proposal,
        optimism=number(certificate.optimism),
        proof=proof_record(certificate.proof, with_sets=with_sets),
        method=certificate.method,
        gap=float(certificate.gap),
    )


def _bank_certificate(certificate: GuardCertificate) -> events.BankCertificate:
    banks = [
        events.BankRecord(
            metric=bank.metric, log_wealth=list(bank.log_wealth), bound=bank.bound, owed=bank.owed,
            carried=bank.available, cost=bank.cost, coins=bank.coins,
        )
        for bank in certificate.proof.banks
    ]  # fmt: skip
    return events.BankCertificate(allowed=certificate.allowed, binds=certificate.binds, banks=banks)


def _sealed_action(salt: bytes, action: Any) -> str:
    """A guard's action as the chain holds it: equal for equal actions of one decision."""
    return hashlib.sha256(salt + b"action" + encode_sorted(action)).hexdigest()
