"""Pots: what a promise can be spent on by many who do not wait for each other, and what a round may cost of it.

A linear policy has a proof that <theta, Q> >= G over all rounds handed in, and leases amounts that add up to G at most;
each shard keeps its own rounds above minus its lease. A guard's banks are money: shares of them simply add up, a round
is paid for at its worst, which needs no data, and what its rewards prove is earned where all rounds are merged.
"""

import math
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import msgspec
import numpy as np

from surefoot.arrays import Vector
from surefoot.core.native import Bank, GuardBooks, available
from surefoot.errors import ConfigError, InputError, ProofError
from surefoot.linear.ellipsoid import EPS, Ball, Ellipsoid
from surefoot.policies import Guard, SafeLUCB
from surefoot.policies.guard_settings import check_coin, read_prediction, read_rewards
from surefoot.policies.linear_policy import CONTRADICTION
from surefoot.policies.settlement import Settlement
from surefoot.rounds import events, number
from surefoot.rounds.events import METRIC, HandIn, PairHanded, PairHandIn, RowsHanded, RowsHandIn
from surefoot.safety.constraints import Cumulative, Reserve, read_constraint
from surefoot.safety.facts import Fact, Linear
from surefoot.safety.likelihood import Tangent
from surefoot.safety.proof import Proof, assemble
from surefoot.safety.prove import prove
from surefoot.sharing.merging import Member

Amounts = tuple[float, ...]
CUSHION = 1e-9  # kept back from every lease, for what later sums round away
ROUNDING = 1e-9  # of the size of what a hand-in adds up: sums are made in different orders
SPENDING = 1e-12  # of what a lease holds: a shard subtracts its rounds from it one by one


class Pot(ABC):
    """What one policy can be leased of, and what its shards hand in."""

    hand_in: ClassVar[type[RowsHandIn | PairHandIn]]
    handed: ClassVar[type[RowsHanded | PairHanded]]
    shard_policy: ClassVar[str]  # by which a shard decides
    policy: Any

    @staticmethod
    def units(policy: Any) -> dict[str, float]:
        """What amounts are told in, by metric."""
        return {METRIC: 1.0}

    @abstractmethod
    def totals(self) -> Amounts:
        """What may be leased in all, those out included."""

    @abstractmethod
    def amounts(self, part: float, leased: Amounts) -> Amounts:
        """What to lease to a shard whose share is `part`, where so much is leased already."""

    @abstractmethod
    def frozen(self, amounts: Amounts) -> dict[str, Any]:
        """The state of a policy that knows what this one does, has nothing open, and may spend the amounts alone."""

    @abstractmethod
    def learned(self) -> int:
        """How many rounds what is frozen now rests on."""

    @abstractmethod
    def check(self, hand_in: Any, member: Member) -> None:
        """Raise unless every value can be worked with, and the shard kept to its lease."""

    @abstractmethod
    def receive(self, hand_in: Any, member: Member) -> None:
        """Take in what is known of rounds before they are merged."""

    def merged(self, hand_in: Any, member: Member) -> None:
        """Give the lease back, once the rounds are merged as far as they can be."""
        member.amounts = ()

    @abstractmethod
    def recall(self, shard: str, handed: Any) -> int:
        """Count a round of a shard as it was played; its number in the policy."""

    @abstractmethod
    def observe(self, round_: int, values: Mapping[str, float]) -> None:
        """Give the policy the rewards of a round."""

    def grant(self, member: Member) -> None:
        """Note what a lease that is granted now knows."""
        member.frozen = None

    def complete(self, hand_in: Any) -> Any:
        """A hand-in with what is proved after it."""
        return hand_in

    def plain(self, hand_in: Any) -> Any:
        """The same as the shard said it."""
        return hand_in

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """What it knows beside the policy."""

    @abstractmethod
    def restore(self, policy: Any, state: Mapping[str, Any]) -> None:
        """Go on from what `state` gave."""


class RowsPot(Pot):
    """The proof of a linear policy over all rounds handed in."""

    hand_in, handed, shard_policy = RowsHandIn, RowsHanded, "LeasedLUCB"

    def __init__(self, policy: SafeLUCB) -> None:
        _check_linear(policy)
        self.policy = policy
        self._ball = Ball(policy.settings["theta_bound"])
        self._question = [Fraction(0)] * policy.dim  # of all rounds handed in, exactly
        self._carried = Linear(np.zeros(policy.dim), 0.0, "earlier proof over all shards")
        self.proof = Proof(self._carried.normal, (), 0.0)  # since the last hand-in; `surefoot.check` verifies it
        self.spent = 0.0  # leases that will never be handed in

    @property
    def proved(self) -> float:
        """G: what <theta, Q> is at least over all rounds handed in."""
        return self._carried.level

    def totals(self) -> Amounts:
        reserve: float = read_constraint(self.policy.settings["constraint"]).amount
        return (self.proved + reserve - self.spent,)

    def amounts(self, part: float, leased: Amounts) -> Amounts:
        settings, (total,) = self.policy.core.settings, self.totals()
        free = total - math.fsum(leased) - CUSHION * settings.theta_bound * settings.feature_bound
        if self.policy.alarm is not None or free <= 0:
            return (0.0,)
        # A pot that is cut into pieces too small for one round would be of no use to anybody.
        return (float(min(free, max(part * (total + self.spent), self.policy.worst_of_round))),)

    def frozen(self, amounts: Amounts) -> dict[str, Any]:
        granted = Reserve(amounts[0]) if amounts[0] > 0 else Cumulative()
        known = self.policy.state().items()
        kept = {key: value for key, value in known if not key.startswith(("pending_drawn", "catalogue"))}
        leased = SafeLUCB.from_state(
            {
                **kept,
                **Settlement(None, 0.0).state(),
                "id": secrets.token_hex(8),
                "rounds": 0,
                "settings": {**self.policy.settings, "constraint": granted.plain()},
            }
        )
        leased.core.begin_ledger()
        return leased.state()

    def learned(self) -> int:
        return int(self.policy.ridge.count)

    def check(self, hand_in: RowsHandIn, member: Member) -> None:
        dim, settings = self.policy.dim, self.policy.settings
        numbers = (*hand_in.question, hand_in.level, hand_in.moved)
        if len(hand_in.question) != dim or not all(map(math.isfinite, numbers)):
            raise _refused(hand_in, "its question or level is not finite or has another dimension")
        if not all(_is_round(one, dim) for one in hand_in.rounds):
            raise _refused(hand_in, "a round has values that are not finite, or another dimension")
        if not all(values is None or _is_reward(values) for _, values in hand_in.rewards):
            raise _refused(hand_in, "a reward is not finite, or of no round")
        (leased,) = member.amounts or (0.0,)
        bound = float(settings["theta_bound"])
        most = 4.0 * bound * float(settings["feature_bound"]) * len(hand_in.rounds)
        if not 0.0 <= hand_in.moved <= most:
            raise _refused(hand_in, f"rounds that were moved cost 0 to {most!r}, and not {hand_in.moved!r}")
        if hand_in.level < -leased - hand_in.moved:
            raise _refused(hand_in, f"its level of {hand_in.level!r} is below minus the lease of {leased!r}")
        if hand_in.alarm is not None:  # from then on a shard carries no proof on
            return
        total, size = _question_of(hand_in.rounds, float(settings["alpha"]), dim)
        rounding = ROUNDING * (size + 1.0)
        if float(np.linalg.norm(total - np.array(hand_in.question))) > rounding:
            raise _refused(hand_in, "its rounds add up to another question")
        if hand_in.level > bound * (float(np.linalg.norm(total)) + rounding):
            raise _refused(hand_in, f"its level of {hand_in.level!r} is more than any theta allows")

    def receive(self, hand_in: RowsHandIn, member: Member) -> None:
        if hand_in.alarm is not None:
            kind: Any = hand_in.alarm[0]
            self.policy.report_breach(kind, f"Shard {hand_in.shard!r}: {hand_in.alarm[1]}")

    def merged(self, hand_in: RowsHandIn, member: Member) -> None:
        """The certificate of the shard is one more fact about all rounds; with the alarm on, its lease is spent."""
        if self.policy.alarm is None:
            self._prove(Linear(np.array(hand_in.question), hand_in.level, f"certificate of shard {hand_in.shard}"))
        else:
            self.spent += math.fsum(member.amounts)
        member.amounts = ()

    def _prove(self, certificate: Linear) -> None:
        """Carry the proof on to all rounds handed in: at least by this fact, at best by everything that is known."""
        handed = certificate.normal.tolist()
        whole = [before + Fraction(now) for before, now in zip(self._question, handed, strict=True)]
        question = np.array([float(entry) for entry in whole])
        pieces = [(self._carried, self._carried.normal), (certificate, certificate.normal)]
        proof = assemble(question, pieces, self._ball)
        try:
            facts = [fact for fact in (self._carried, certificate) if fact.normal.any()]
            known = [self.policy.confidence_set, self._ball, *facts]
            proof = max(proof, prove(question, known), key=lambda one: one.value)
        except ProofError:
            self.policy.report_breach("contradiction", CONTRADICTION)
        rounded = self._ball.radius * EPS * float(np.linalg.norm(question))  # from whole to question
        self._question, self.proof = whole, proof
        self._carried = Linear(question, proof.value - 2.0 * rounded, self._carried.name)

    def recall(self, shard: str, handed: RowsHanded) -> int:
        return recall_row(self.policy, handed)

    def observe(self, round_: int, values: Mapping[str, float]) -> None:
        self.policy.observe(round_, float(values[METRIC]))

    def complete(self, hand_in: RowsHandIn) -> RowsHandIn:
        """With what is proved of all rounds since; nothing, once the alarm is on."""
        if self.policy.alarm is not None:
            return msgspec.structs.replace(hand_in, refuted=True)
        with_sets = self.policy.settings.get("radius") == "dual"
        proof = proof_record(self.proof, with_sets=with_sets)
        return msgspec.structs.replace(hand_in, proof=proof, proved=self.proved)

    def plain(self, hand_in: RowsHandIn) -> RowsHandIn:
        return msgspec.structs.replace(hand_in, proof=None, proved=None, refuted=False)

    def state(self) -> dict[str, Any]:
        return {
            "question": [str(entry) for entry in self._question],
            "carried": [self._carried.normal, self._carried.level],
            "spent": self.spent,
        }

    def restore(self, policy: SafeLUCB, state: Mapping[str, Any]) -> None:
        """Its `proof` is what it carried, until the next hand-in."""
        self.policy, self.spent = policy, state["spent"]
        self._question = [Fraction(entry) for entry in state["question"]]
        normal, level = state["carried"]
        self._carried = Linear(normal, level, self._carried.name)
        self.proof = assemble(normal, [(self._carried, normal)], self._ball)


class PairPot(Pot):
    """The banks of a guard."""

    hand_in, handed, shard_policy = PairHandIn, PairHanded, "LeasedGuard"

    @staticmethod
    def units(policy: Any) -> dict[str, float]:
        return {name: metric.high for name, metric in policy.metrics.items()}

    def __init__(self, guard: Guard) -> None:
        _check_guard(guard)
        self.policy = guard
        # What rounds that are handed in and not merged yet will be settled by, as their lease fixed it.
        self._plans: dict[tuple[str, int], bytes] = {}

    def totals(self) -> Amounts:
        """What each bank holds beyond the rounds that wait to be merged."""
        waiting = [_costs(plan) for plan in self._plans.values()]
        banks = zip(self.policy.step_settings.metrics, self.policy.bank_records, strict=True)
        return tuple(
            available(settings, bank) - math.fsum(costs[i] for costs in waiting)
            for i, (settings, bank) in enumerate(banks)
        )

    def amounts(self, part: float, leased: Amounts) -> Amounts:
        totals = self.totals()
        free = (total - out - CUSHION for total, out in zip(totals, leased, strict=True))
        return tuple(max(0.0, min(left, part * total)) for left, total in zip(free, totals, strict=True))

    def frozen(self, amounts: Amounts) -> dict[str, Any]:
        """All that the bank holds beyond the lease counts as owed: no bound of the coordinator's pays for a round."""
        known, banks = self.policy.state(), list[Vector]()
        for row, settings, amount in zip(known["banks"], self.policy.step_settings.metrics, amounts, strict=True):
            bank = Bank()
            bank.load(row)
            bank.carried, bank.owed = amount, max(0.0, bank.bound + settings.reserve - amount)
            banks.append(bank.save())
        fresh = Guard(**self.policy.settings).state()
        return {**fresh, "alarm": known["alarm"], "lifts": known["lifts"], "banks": np.stack(banks)}

    def learned(self) -> int:
        return int(self.policy.bank_records[0].entered)

    def grant(self, member: Member) -> None:
        member.frozen = self.policy.state()["banks"].tolist()

    def check(self, hand_in: PairHandIn, member: Member) -> None:
        most = 1.0 - float(self.policy.settings["min_holdout"])
        for one in hand_in.rounds:
            draw = math.nan if one.draw is None else one.draw
            check_coin(one.share, draw, "learner" if one.is_learner else "baseline", most=most, is_drawn=one.teaches)
        for _, values in hand_in.rewards:
            if values is not None:
                read_rewards(values, self.policy.metrics)
        left, books = list(member.amounts), self._frozen(member)
        for one in hand_in.rounds:
            for i, cost in enumerate(_costs(self._plan(books, one))):
                if cost > left[i] + SPENDING * (1.0 + member.amounts[i]):
                    share = f"round {one.number} has a share of {one.share!r}"
                    raise _refused(hand_in, f"{share}, which may cost {cost!r} where {left[i]!r} is left of the lease")
                left[i] -= cost

    def receive(self, hand_in: PairHandIn, member: Member) -> None:
        books = self._frozen(member)
        # Never from the bank of now: which rewards have entered it by now may depend on the coins of these rounds.
        for one in hand_in.rounds:
            self._plans[hand_in.shard, one.number] = self._plan(books, one)

    def _frozen(self, member: Member) -> GuardBooks:
        """The banks as the newest lease of a shard knew them."""
        books = GuardBooks(self.policy.step_settings)
        books.load(np.array(member.frozen))
        return books

    def _plan(self, books: GuardBooks, handed: PairHanded) -> bytes:
        """What a round is settled by, from what its lease knew before its coin."""
        return books.plan(handed.share, read_prediction(handed.prediction, self.policy.metrics))

    def recall(self, shard: str, handed: PairHanded) -> int:
        decision = self.policy.recall(
            baseline=0,
            proposal=int(handed.teaches),
            share=handed.share,
            draw=math.nan if handed.draw is None else handed.draw,
            source="learner" if handed.is_learner else "baseline",
            prediction=handed.prediction,
            plan=self._plans.pop((shard, handed.number)),
        )
        return int(decision.round)

    def observe(self, round_: int, values: Mapping[str, float]) -> None:
        self.policy.observe(round_, values)

    def state(self) -> dict[str, Any]:
        return {"plans": [[*key, plan] for key, plan in self._plans.items()]}

    def restore(self, policy: Guard, state: Mapping[str, Any]) -> None:
        self.policy = policy
        self._plans = {(shard, of): bytes(plan) for shard, of, plan in state["plans"]}


def pot_of(policy: Any) -> Pot:
    """The pot of a new policy.

    Raises
    ------
    ConfigError
        If its promise cannot be shared.
    """
    if isinstance(policy, Guard):
        return PairPot(policy)
    if isinstance(policy, SafeLUCB):
        return RowsPot(policy)
    raise ConfigError(f"Only SafeLUCB and Guard can be leased to shards, but got {type(policy).__name__}.")


def recall_row(policy: SafeLUCB, handed: RowsHanded) -> int:
    """Count a round of a shard in the ledger of a policy, as it was played."""
    known: Any = tuple(handed.baseline_reward) if isinstance(handed.baseline_reward, list) else handed.baseline_reward
    decision = policy.recall(
        np.array([handed.played, handed.displaced], dtype=np.float64),
        baseline=1,
        baseline_reward=known,
        action=0 if handed.is_learner else 1,
        source="learner" if handed.is_learner else "baseline",
    )
    return int(decision.round)


def question_of(played: Any, displaced: Any, alpha: float, *, is_learner: bool) -> Vector:
    """What one round adds to the question."""
    row: Vector = played - (1.0 - alpha) * displaced if is_learner else alpha * displaced
    return row


def _question_of(rounds: Sequence[RowsHanded], alpha: float, dim: int) -> tuple[Vector, float]:
    """What rounds add up to, z + alpha w - (1 - alpha) v, and the size of what was added."""
    if not rounds:
        return np.zeros(dim), 0.0
    played, displaced = (np.array([getattr(one, name) for one in rounds]) for name in ("played", "displaced"))
    is_learner = np.array([one.is_learner for one in rounds])[:, None]
    total = np.where(is_learner, played - (1.0 - alpha) * displaced, alpha * displaced).sum(axis=0)
    return total, float(np.linalg.norm(played, axis=1).sum() + np.linalg.norm(displaced, axis=1).sum())


def _costs(plan: bytes) -> Amounts:
    """What a round of a guard may cost at its worst, of each metric."""
    _, *settled_by = np.frombuffer(plan).tolist()  # of each metric its worst, and what is expected of both sides
    return tuple(settled_by[::5])


def proof_record(proof: Proof, *, with_sets: bool) -> events.ProofRecord:
    """A proof as plain data, in numbers that anyone can add up again."""
    pieces = [
        events.PieceRecord(fact=_fact(piece.fact, with_sets), vector=piece.vector.tolist(), bound=number(piece.bound))
        for piece in proof.pieces
    ]
    return events.ProofRecord(question=proof.question.tolist(), value=number(proof.value), pieces=pieces)


def _fact(fact: Fact, with_sets: bool) -> events.FactRecord:
    if isinstance(fact, Ellipsoid):
        center, whitener = (fact.center.tolist(), fact.whitener.tolist()) if with_sets else (None, None)
        return events.EllipsoidRecord(
            observations=fact.observations, radius=float(fact.radius), center=center, whitener=whitener
        )
    if isinstance(fact, Ball):
        return events.BallRecord(radius=float(fact.radius))
    if isinstance(fact, Linear):
        point = fact.point.tolist() if isinstance(fact, Tangent) else None
        return events.LinearRecord(name=fact.name, normal=fact.normal.tolist(), level=number(fact.level), point=point)
    raise InputError(f"A journal keeps balls, ellipsoids and linear facts, but this proof rests on a {fact.name!r}.")


def _is_round(handed: RowsHanded, dim: int) -> bool:
    known = handed.baseline_reward
    pair: Any = known if isinstance(known, list) else [known, known]
    is_known = known is None or (len(pair) == 2 and all(map(math.isfinite, pair)) and pair[0] <= pair[1])
    rows = (handed.played, handed.displaced)
    is_row = all(len(row) == dim and all(map(math.isfinite, row)) for row in rows)
    return is_known and is_row and math.isfinite(handed.moment)


def _is_reward(values: Mapping[str, float | None]) -> bool:
    value = values.get(METRIC)
    return set(values) == {METRIC} and value is not None and math.isfinite(value)


def _refused(hand_in: HandIn, problem: str) -> InputError:
    return InputError(
        f"A hand-in must be what the shard did, but {problem}: shard {hand_in.shard!r}, lease {hand_in.lease!r}. "
        "Nothing was taken in."
    )


def _check_linear(policy: Any) -> None:
    """Questions must add up, and nothing may depend on one ledger."""
    if type(policy) is not SafeLUCB:
        raise ConfigError(f"Only SafeLUCB can be leased to shards, but got {type(policy).__name__}.")
    constraint = read_constraint(policy.settings["constraint"])
    if not isinstance(constraint, (Cumulative, Reserve)):
        raise ConfigError(
            f"`constraint` must be 'cumulative' or 'reserve' to be shared by shards, but got {constraint.name!r}: the "
            "others ask about rounds in one order, or one by one."
        )
    _check_left_out(policy, ("misspecification", "holdout", "settle_after"))


def _check_guard(guard: Any) -> None:
    if type(guard) is not Guard:
        raise ConfigError(f"Only a Guard's bank can be leased, but got {type(guard).__name__}.")
    if guard.settings["promise"] != "mean":
        raise ConfigError(
            f"`promise` must be 'mean' where shards share a bank, but got {guard.settings['promise']!r}: the luck of "
            "the coins is bounded over all rounds together."
        )
    _check_left_out(guard, ("seed", "settle_after", "unit_window"))


def _check_left_out(policy: Any, names: tuple[str, ...]) -> None:
    for name in names:
        if policy.settings.get(name):
            raise ConfigError(
                f"`{name}` must be left out where shards share a promise, but got {policy.settings[name]!r}."
            )
