"""Policies under a lease: the learner plays by what the lease froze, and without a lease the baseline does.

Rewards are handed in, and prove something only where all shards' rounds are merged: a bound of their own would be
another event. Those of a linear policy steer what a shard proposes, never its proofs.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Matrix, Vector
from surefoot.errors import DecisionError, InputError
from surefoot.linear.actions import ActionSet, Catalogue, rows_in
from surefoot.linear.ellipsoid import EPS
from surefoot.policies import Decision, Guard, SafeLUCB
from surefoot.policies.decision import TRY, GuardDecision, Source, check_recalled, round_of
from surefoot.policies.guard import SHARE
from surefoot.policies.linear_certificate import Promise
from surefoot.policies.policy import Round
from surefoot.policies.settlement import OpenRound
from surefoot.rounds.events import METRIC, Lease, PairHanded, PairHandIn, RowsHanded, RowsHandIn
from surefoot.safety.ledger import Ledger
from surefoot.sharing.pots import question_of, recall_row


class MovedRounds:
    """What is proved of a shard's rounds since a caller said of some that they were not played as decided.

    A round that is moved from x to y changes the question by q(y) - q(x), which costs B ||q(x) - q(y)|| at most,
    whatever theta is. So the proof is carried on, and what the shard hands in is true, though it may be less than minus
    its lease (docs/mathematics.md, "Leases"). Once the learner plays again, the whole question has been proved anew.
    """

    def __init__(self, saved: Sequence[float] | Vector = ()) -> None:
        self._cost, self._level, self._learner_rounds = (float(one) for one in saved[:3]) if len(saved) else (0.0,) * 3
        self._normal: Vector | None = np.array(saved[3:], dtype=np.float64) if len(saved) else None

    def save(self) -> Vector:
        """All of it, as numbers."""
        if self._normal is None:
            return np.zeros(0)
        return np.array([self._cost, self._level, self._learner_rounds, *self._normal])

    def cost(self, learner_rounds: float) -> float:
        """By how much the rounds may lie below minus the lease, which now counts so many rounds of the learner."""
        return self._cost if self._is_in_force(learner_rounds) else 0.0

    def proved(self, question: Vector, level: float, amount: float, learner_rounds: float) -> tuple[Vector, float]:
        """The question of all rounds, and what it is worth at least; `question` and `level` are the policy's own."""
        if self._normal is not None and self._is_in_force(learner_rounds):
            question, level = question + self._normal, level + self._level
        return question, max(level, -amount - self.cost(learner_rounds))

    def move(self, proved: tuple[Vector, float], change: Vector, bound: float, before: float, after: float) -> None:
        """Take `change` off the question; the lease counted so many rounds of the learner before and after."""
        question, level = proved
        length = float(np.linalg.norm(change))
        rounding = 8.0 * EPS * (bound * (float(np.linalg.norm(question)) + length) + abs(level))
        cost = bound * length * (1.0 + 16.0 * EPS) + rounding
        self._cost = self.cost(before) + cost
        self._normal, self._level, self._learner_rounds = question - change, level - cost, after

    def _is_in_force(self, learner_rounds: float) -> bool:
        return self._normal is not None and learner_rounds == self._learner_rounds


class LeasedLUCB(SafeLUCB):
    """The policy of one shard: it plays while lower(Q_k) + l_k >= 0, and without a lease the baseline.

    Its proofs rest on the lease's frozen set alone. Rewards are learned by a second model on top of that set, which
    proposes. A new lease begins a new ledger; rounds go on counting, and open ones keep waiting for their rewards.

    Parameters
    ----------
    settings : dict
        As of `SafeLUCB`; the constraint is that of the floor that the shards share.

    Examples
    --------
    >>> settings = {"noise": 0.5, "theta_bound": 1.0, "feature_bound": 1.0}
    >>> policy = LeasedLUCB(dim=2, alpha=0.1, delta=0.01, reward_range=(0.05, 1.0), **settings)
    >>> policy.decide([[1.0, 0.0], [0.6, 0.0]], baseline=1).source  # there is no lease yet
    'baseline'
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._steering: Any = self._core.copy()
        self._is_leased, self._adds_to_record = False, True
        # Round, features, reward and who played, of rewards that may not be merged yet.
        self._local: list[tuple[int, bytes, float, bool]] = []
        self._settled: list[tuple[int, dict[str, float | None] | None]] = []  # since the last hand-in
        self._moved = MovedRounds()

    @property
    def is_leased(self) -> bool:
        """Whether the learner may play: false until the first lease, and from a hand-in to the next."""
        return self._is_leased

    def proved(self, amount: float) -> tuple[Vector, float]:
        """The question of the rounds since the lease, and what is proved of it under a lease of this amount."""
        question, level = self._memory.proved_question, float(self._memory.proved)
        return self._moved.proved(question, level, amount, self._ledger.learner_rounds)

    @property
    def moved(self) -> float:
        """By how much rounds that were not played as decided may have brought the question below -l_k."""
        return self._moved.cost(self._ledger.learner_rounds)

    @property
    def leased_rounds(self) -> int:
        """Rounds since the lease began."""
        return self._ledger.learner_rounds + self._ledger.baseline_rounds

    def renew(self, lease: Lease, state: Mapping[str, Any], since: Sequence[RowsHanded] = ()) -> None:
        """Go on under a lease; rounds of the baseline that were played since the last hand-in count in it."""
        granted = SafeLUCB.from_state(state)
        for handed in since:
            recall_row(granted, handed)
        # A new core: decisions made before keep the set that they rest on.
        self._adopt_core(granted.core)
        if granted.alarm is not None:
            self.report_breach(granted.alarm.kind, granted.alarm.text)
        self._steering = SafeLUCB.from_state(state).core
        self._local = [entry for entry in self._local if entry[0] > lease.merged]
        for _, features, reward, is_learner in self._local:
            self._steering.learn(features, reward, is_learner)
        self._is_leased, self._catalogue, self._moved = True, None, MovedRounds()

    def _adopt_core(self, core: Any) -> None:
        self._core, self._settings, self._memory = core, core.settings, core.memory
        self._promise = Promise(self._settings.alpha, self._settings.theta_bound)
        self._ledger = Ledger(dim=self.dim, core=core.ledger)

    def observe(self, decision: Any, reward: Any) -> None:
        """Take the reward of a decision, as `Policy.observe`; it is handed in, and steers what is proposed."""
        super().observe(decision, reward)
        self._settled.append((round_of(decision, self._id), {METRIC: float(reward)}))

    def abandon(self, decision: Any) -> None:
        """Settle a decision without its reward, as `Policy.abandon`; that is handed in, too."""
        super().abandon(decision)
        self._settled.append((round_of(decision, self._id), None))

    def exclude(self, decision: Any) -> None:
        """Let the round that was decided last teach nothing, as `Policy.exclude`; that is handed in, too."""
        super().exclude(decision)
        self._settled.append((round_of(decision, self._id), None))

    def hand_in(self, lease: Lease, rounds: list[RowsHanded], **said: Any) -> RowsHandIn:
        """Every round of a lease, what is proved of them, and rewards since this was asked last."""
        rewards, self._settled = self._settled, []
        # Also where the set of the lease was lost, and less can be proved by an older one.
        question, level = self.proved(lease.amounts[0])
        alarm = None if self.alarm is None else (self.alarm.kind, self.alarm.text)
        return RowsHandIn(
            shard=lease.shard, lease=lease.number, rounds=rounds, rewards=rewards, question=question.tolist(),
            level=level, moved=self.moved, alarm=alarm, **said,
        )  # fmt: skip

    def end_lease(self) -> None:
        """Play only the baseline, until the lease is renewed; its ledger is handed in."""
        self._is_leased, self._moved = False, MovedRounds()
        self._core.begin_ledger()

    def rebook(
        self,
        round_: int,
        features: Any,
        baseline: int | None,
        baseline_reward: Any,
        decided: tuple[int, bool],
        played: int,
    ) -> bytes:
        """Move a round of this lease in the ledger to the row that was really played."""
        if round_ <= self._rounds - self.leased_rounds:
            raise DecisionError(
                f"A round must be voided under the lease that it counts in, but round {round_} was handed in: others "
                "have been leased what it earned."
            )
        alpha, before, counted = self._settings.alpha, self.proved(self._settings.amount), self._ledger.learner_rounds
        kept = super().rebook(round_, features, baseline, baseline_reward, decided, played)
        rows = rows_in(features)
        assert baseline is not None
        was = question_of(rows[decided[0]], rows[baseline], alpha, is_learner=decided[1])
        now = question_of(rows[played], rows[baseline], alpha, is_learner=played != baseline)
        self._moved.move(before, was - now, self._settings.theta_bound, counted, self._ledger.learner_rounds)
        return kept

    def decide(
        self,
        features: ArrayLike | ActionSet,
        *,
        baseline: int | ArrayLike | None = None,
        baseline_reward: Any = None,
        hold: bool = False,
    ) -> Decision:
        """Choose an action, as `SafeLUCB.decide`; the baseline must be one row."""
        if isinstance(baseline, bool) or not isinstance(baseline, (int, np.integer)):
            raise InputError(f"`baseline` must be one row where shards share a floor, but got {baseline!r}.")
        if isinstance(features, ActionSet) and not isinstance(features, Catalogue):
            raise InputError("`features` must be rows where shards share a floor, but this set has none.")
        request: dict[str, Any] = {"baseline": int(baseline), "baseline_reward": baseline_reward}
        if hold or not self._is_leased or self._alarm is not None or not self._local:
            return super().decide(features, **request, hold=hold or not self._is_leased)
        rows = rows_in(features)
        self._check_shape(rows)
        return self.consider(rows, **request, proposal=self._proposal(rows))

    def recall(
        self, features: Any, *, baseline: int | None = None, source: Source, tried: int | None = None, **played: Any
    ) -> Decision:
        """Count a round again, as `SafeLUCB.recall`; `tried` is what the shard's own rewards proposed, where it was."""
        if tried is not None and source == "baseline":
            check_recalled(played["action"], source, baseline)
            baseline_reward = played.get("baseline_reward")
            rows = features.rows if isinstance(features, Catalogue) else features
            # A newer version might allow what was refused, and must not rewrite the past: ask a copy first.
            known = self._read_known(baseline_reward)
            again = self._core.copy().decide(rows, False, baseline, *known, TRY - tried)
            if again is not None and not again[1]:
                return self._decide(rows, baseline, baseline_reward, TRY - tried)
        return super().recall(features, baseline=baseline, source=source, **played)

    def _proposal(self, rows: Matrix) -> int:
        best = self._steering.propose(rows, self._steering.optimism)
        return 0 if best is None else int(best[0])  # a row that is not finite is refused where it is judged

    def _record(self, features: bytes, known: float, round_: int) -> bytes:
        return features + struct.pack("=d", round_)

    def _record_size(self) -> int:
        return self.dim + 1

    def _learn_round(self, entry: OpenRound, reward: float) -> None:
        record, is_learner, _ = entry
        features, (round_,) = record[: -struct.calcsize("=d")], struct.unpack("=d", record[-struct.calcsize("=d") :])
        self._local.append((int(round_), features, reward, is_learner))
        self._steering.learn(features, reward, is_learner)

    def arrays(self) -> dict[str, Any]:
        """As of the policy that is leased, and what was done under the lease."""
        rounds = [[round_, reward, is_learner] for round_, _, reward, is_learner in self._local]
        self._steering.ridge.favourite = 0  # a hint of the last proposal, which no replay knows
        return {
            **super().arrays(),
            "lease": np.array([self._is_leased, self._settings.constraint, self._settings.amount]),
            "steering": self._steering.ridge.save(),
            "steering_likelihood": self._steering.save_likelihood(),
            "local": np.array(rounds, dtype=np.float64).reshape(len(rounds), 3),
            "local_features": np.frombuffer(b"".join(entry[1] for entry in self._local)).copy(),
            "settled": [[round_, values] for round_, values in self._settled],
            "moved": self._moved.save(),
        }

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Take back what `arrays` returned."""
        super().restore(arrays)
        is_leased, constraint, granted = (float(number) for number in arrays["lease"])
        self._is_leased = bool(is_leased)
        self._settings.constraint, self._settings.amount = int(constraint), granted
        self._steering = self._core.copy()
        self._steering.ridge.load(np.ascontiguousarray(arrays["steering"], dtype=np.float64))
        if len(arrays["steering_likelihood"]):
            self._steering.load_likelihood(np.ascontiguousarray(arrays["steering_likelihood"], dtype=np.float64))
        rows = np.asarray(arrays["local_features"], dtype=np.float64).reshape(len(arrays["local"]), self.dim)
        self._local = [
            (int(round_), row.tobytes(), float(reward), bool(is_learner))
            for (round_, reward, is_learner), row in zip(arrays["local"], rows, strict=True)
        ]
        self._settled = [(int(round_), values) for round_, values in arrays["settled"]]
        self._moved = MovedRounds(arrays["moved"])


class LeasedGuard(Guard):
    """The guard of one shard: its shares cost no more than its lease, and without a lease the baseline plays.

    Rewards are handed in, and earn only where all shards' are merged: a bound of its own would be another event.

    Parameters
    ----------
    settings : dict
        As of `Guard`.

    Examples
    --------
    >>> LeasedGuard(alpha=0.1, delta=0.05).decide(baseline="old", proposal="new").share  # there is no lease yet
    0.0
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._is_leased = False
        self._settled: list[tuple[int, dict[str, float | None] | None]] = []  # since the last hand-in

    @property
    def is_leased(self) -> bool:
        """Whether the proposal may play: false until the first lease, and from a hand-in to the next."""
        return self._is_leased

    @property
    def share(self) -> float:
        """The probability with which the next proposal would be played."""
        return super().share if self._is_leased else 0.0

    def renew(self, lease: Lease, state: Mapping[str, Any], since: Sequence[PairHanded] = ()) -> None:
        """Go on under a lease."""
        # New books: decisions made before keep the banks that they rest on.
        self._books, self._is_leased = Guard.from_state(state)._books, True

    def hand_in(self, lease: Lease, rounds: list[PairHanded], **said: Any) -> PairHandIn:
        """Every round of a lease, and rewards since this was asked last."""
        rewards, self._settled = self._settled, []
        return PairHandIn(shard=lease.shard, lease=lease.number, rounds=rounds, rewards=rewards, **said)

    def end_lease(self) -> None:
        """Play only the baseline, until the lease is renewed; what is left of it is given back."""
        self._is_leased = False

    def decide(self, *, hold: bool = False, **pair: Any) -> GuardDecision:  # type: ignore[override]
        """Draw the coin, as `Guard.decide`; without a lease the baseline plays."""
        return super().decide(hold=hold or not self._is_leased, **pair)

    def observe(self, decision: Round, reward: Any) -> None:
        """Take the reward of a decision, as `Guard.observe`; it is handed in."""
        super().observe(decision, reward)
        values = reward if isinstance(reward, Mapping) else {next(iter(self.metrics)): reward}
        came = {name: None if one is None else float(one) for name, one in values.items()}
        self._settled.append((round_of(decision, self._id), came))

    def abandon(self, decision: Round) -> None:
        """Settle a decision without its reward, as `Guard.abandon`; that is handed in, too."""
        round_ = round_of(decision, self._id)
        has_part = round_ in self._settlement.parts
        super().abandon(decision)
        if not has_part:  # or else what came was observed, and is handed in
            self._settled.append((round_, None))

    def _plan(self, share: float, predicted: Sequence[float] | None) -> bytes:
        # Bets are of no use here, and would differ where the bank of an old lease is gone.
        return SHARE.pack(share) + bytes(8 * (self._record_size() - 1))

    def _learn_round(self, entry: OpenRound, reward: Any) -> None:
        """Count it: it enters where the shards meet."""
        self._count_booked(entry, reward)

    def arrays(self) -> dict[str, Any]:
        """As of the policy that is leased, and what was done under the lease."""
        return {**super().arrays(), "is_leased": self._is_leased, "settled": [list(one) for one in self._settled]}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Take back what `arrays` returned."""
        super().restore(arrays)
        self._is_leased = bool(arrays["is_leased"])
        self._settled = [(int(round_), values) for round_, values in arrays["settled"]]
