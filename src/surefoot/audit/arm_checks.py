"""One decision of a policy over plain arms, checked: intervals per arm, from the raw rewards."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from surefoot.audit.compensated_sums import CompensatedSum, Vector
from surefoot.audit.likelihood import LIKELIHOOD, RebuiltArmLikelihood
from surefoot.audit.recorded_proof import CLAIMED, LinearFact, ProofChecker, Tolerances
from surefoot.audit.recorded_round import RecordedRound, RoundProblems, near

APERY = math.fsum(1.0 / n**3 for n in range(200_000, 0, -1)) + 0.5 / 200_000**2  # zeta(3), its tail by an integral


class ArmChecks:
    """Everything that the events so far say of an experiment over plain arms."""

    def __init__(self, policy: str, settings: Mapping[str, Any]) -> None:
        self.arms, self.noise = int(settings["arms"]), float(settings.get("noise", 0.5 if policy == "UCB" else 1.0))
        self.keeps_floor = policy == "ConservativeUCB"
        self.alpha, self.delta = float(settings.get("alpha") or 0.0), float(settings.get("delta") or 1.0)
        self.mean: float | None = settings.get("baseline_reward")
        self.default: int | None = None
        self._plays, self._counts, self._total = np.zeros(self.arms), np.zeros(self.arms), CompensatedSum((self.arms,))
        self.rounds = 0
        self.short = 0.0  # the most that the learner's rounds fell short by, within what rounding may do
        self.is_alarmed = False
        bounds = settings.get("reward_bounds") if self.keeps_floor else None
        self._likelihood = (
            None
            if bounds is None
            else RebuiltArmLikelihood(self.arms, self.delta, (float(bounds[0]), float(bounds[1])))
        )

    @property
    def dim(self) -> int:
        """One feature per arm."""
        return self.arms

    def judge(self, round_: RecordedRound, problems: RoundProblems) -> None:
        """Check one decision against everything before it, and count it."""
        self.rounds += 1
        if self.keeps_floor:
            self._check_floor(round_, problems)
        else:
            self._check_index(round_, problems)
        self._plays[round_.action] += 1

    def move(self, decided: RecordedRound, played: int) -> None:
        """A round was not played as decided: count it as it was played."""
        self._plays[decided.action] -= 1
        self._plays[played] += 1

    def teaches(self, is_learner: bool) -> bool:
        """Every round's reward is learned from."""
        return True

    def known_reward(self, round_: RecordedRound) -> float:
        """What the default arm is known to earn."""
        return abs(self.mean or 0.0)

    def declared_mean(self, round_: RecordedRound) -> None:
        """Arms are not watched."""

    def breach_by(self, reward: float, is_learner: bool) -> str | None:
        """Why a reward contradicts what was declared, where it does; the default arm's is looked at when learned."""
        if self._likelihood is None or not is_learner:
            return None
        low, high = self._likelihood.bounds
        return None if low <= reward <= high else f"a reward of {reward:g}, outside of the declared {low:g} to {high:g}"

    def restart(self, *, keep_promise: bool) -> str | None:
        """All of delta was spent at the start."""
        return "plain arms keep no share of delta for a restart"

    def learn(self, features: Vector, reward: float, is_learner: bool, declared: float | None = None) -> None:
        """Take in the reward of a round."""
        self._counts += features
        self._total.add(reward * features)
        if self._likelihood is not None:
            is_known = self.mean is not None and self.default is not None and features[self.default] == 1.0
            is_possible = self._likelihood.count(reward) if is_known else self._likelihood.learn(features, reward)
            self.is_alarmed |= not is_possible

    def _intervals(self) -> tuple[Vector, Vector]:
        """lambda_i = max(0, mean_i - sqrt(psi / T_i)) and theta_i = mean_i + sqrt(psi / T_i).

        psi(s) = 2 sigma^2 ln(zeta(3) K s^3 / delta), where K counts the one-sided bounds that safety rests on.
        (docs/mathematics.md, "Plain arms")
        """
        bounds = self.arms - 1 if self.mean is not None else self.arms + 1
        counts, total = self._counts, self._total.value
        low, high = np.zeros(self.arms), np.full(self.arms, math.inf)
        for i in np.flatnonzero(counts):
            reach = math.sqrt(2 * self.noise**2 * math.log(APERY * bounds * counts[i] ** 3 / self.delta) / counts[i])
            low[i], high[i] = max(0.0, total[i] / counts[i] - reach), total[i] / counts[i] + reach
        if self.mean is not None and self.default is not None:
            low[self.default] = high[self.default] = self.mean
        return low, high

    def _check_floor(self, round_: RecordedRound, problems: RoundProblems) -> None:
        if round_.baseline < 0:
            problems.add("baseline", "ConservativeUCB is measured by a default arm, but none is named")
        if self.default not in (None, round_.baseline):
            problems.add("baseline", f"the default arm must stay {self.default}, but is {round_.baseline} here")
        self.default = round_.baseline
        if self._likelihood is not None:
            self._check_joint(round_, self._likelihood, problems)
            return
        low, high = self._intervals()
        self._check_proposal(round_, high, problems)
        weights = self._plays.copy()
        weights[round_.proposal] += 1
        balance = float(weights[self.default]) - (1 - self.alpha) * self.rounds
        worst = float(low[self.default] if balance >= 0 else high[self.default])
        required = (1 - self.alpha) * self.rounds * worst
        others = math.fsum(float(weights[i] * low[i]) for i in range(self.arms) if i != self.default)
        own = others + balance * worst
        guaranteed = others + (float(weights[self.default]) * worst if worst < math.inf else 0.0)
        size = abs(others) + self.rounds * (worst if worst < math.inf else 0.0)
        if self.is_alarmed:
            guaranteed = -math.inf
        for name, mine, written in (
            ("required", required, round_.required),
            ("certificate", guaranteed, round_.guaranteed),
        ):
            if not near(mine, written, size):
                problems.add(name, f"it must say {mine:.12g}, but {written:.12g} is written")
        self._check_proof(round_, weights, low, high, size, problems)
        # Policy and audit round differently, each by a share of what was added up.
        self._check_verdict(round_, own + 1e-9 * size, -own, problems)

    def _check_verdict(self, round_: RecordedRound, proved: float, short: float, problems: RoundProblems) -> None:
        """The learner plays where it is allowed to, and only there."""
        is_allowed = round_.guaranteed >= round_.required
        if round_.is_learner and not (is_allowed and proved >= 0.0):
            problems.add(
                "admissible", f"the learner played, but what can be proved falls short of the floor by {short:.6g}"
            )
        elif round_.is_learner:
            self.short = max(self.short, short)
        if is_allowed and not (round_.is_learner or round_.is_held):
            problems.add("verdict", "the learner was allowed to play, but the baseline was played")

    def _check_joint(self, round_: RecordedRound, known: RebuiltArmLikelihood, problems: RoundProblems) -> None:
        """The whole question over the likelihood set, by the tangent that the proof names and the ranges of arms."""
        assert self.default is not None
        self._check_proposal(round_, self._uppers(known), problems)
        question = self._plays.copy()
        question[round_.proposal] += 1
        question[self.default] -= (1 - self.alpha) * self.rounds
        if round_.required != 0.0:
            problems.add("required", f"it must say 0, but {round_.required:.12g} is written")
        if self.is_alarmed or round_.guaranteed == -math.inf:
            if round_.is_learner or not (self.is_alarmed and round_.guaranteed == -math.inf):
                problems.add(
                    "alarm", "while the alarm is on, and only then, nothing is promised and the baseline plays"
                )
            return

        def facts(name: str, normal: Vector, point: Vector | None) -> list[LinearFact]:
            if name == LIKELIHOOD:
                return known.touched(point)
            arm = int(np.argmax(np.abs(normal)))
            is_known = arm == self.default and self.mean is not None
            low, high = (self.mean, self.mean) if is_known else known.bounds
            if arm == self.default:  # a share of its mean is kept, so that it is never negative
                low = max(low or 0.0, 0.0)
            axis = np.zeros(self.arms)
            axis[arm] = 1.0
            if name != f"{'reward' if is_known else 'declared range'} of arm {arm}":
                return []
            return [LinearFact(axis, float(low or 0.0)), LinearFact(-axis, -float(high or 0.0))]

        worth = known.reach * (float(np.abs(question).sum()) + self.rounds)
        scale = Tolerances(worth, worth)
        checker = ProofChecker(known.reach, lambda observations: [], facts, scale)
        own = checker.check(round_.proof, question, problems, scale.rounding if round_.is_learner else -math.inf)
        value = round_.proof.value
        if not abs(round_.guaranteed - value) <= scale.blur + max(0.0, -CLAIMED * value):
            text = f"the proof is worth {value:.12g}, but the certificate says {round_.guaranteed:.12g}"
            problems.add("certificate", text)
        self._check_verdict(round_, own + scale.tolerated, -own, problems)

    def _uppers(self, known: RebuiltArmLikelihood) -> Vector:
        """What arms are proposed by; those that were never seen come first anyway."""
        uppers = [
            known.upper(i) if self._counts[i] > 0 and i != self._known_arm else math.inf for i in range(self.arms)
        ]
        return np.array([self.mean if i == self._known_arm else upper for i, upper in enumerate(uppers)], dtype=float)

    @property
    def _known_arm(self) -> int | None:
        return None if self.mean is None else self.default

    def _check_proof(
        self, round_: RecordedRound, weights: Vector, low: Vector, high: Vector, size: float, problems: RoundProblems
    ) -> None:
        """One fact per arm: its mean is at least lambda_i, or at most theta_0."""
        assert self.default is not None
        question = weights.copy()
        question[self.default] -= (1 - self.alpha) * self.rounds

        def facts(name: str, normal: Vector, _: Vector | None) -> list[LinearFact]:
            arm = int(np.argmax(np.abs(normal)))
            word = "reward" if arm == self.default and self.mean is not None else "interval"
            axis = np.zeros(self.arms)
            axis[arm] = 1.0
            if name != f"{word} of arm {arm}":
                return []
            return [LinearFact(axis, float(low[arm])), LinearFact(-axis, -float(high[arm]))]

        worth = size + float(np.abs(question).sum()) + self.rounds
        checker = ProofChecker(1.0 + size / self.rounds, lambda observations: [], facts, Tolerances(worth, worth))
        checker.check(round_.proof, question, problems, -math.inf)

    def _check_proposal(self, round_: RecordedRound, indices: Vector, problems: RoundProblems) -> None:
        """An arm that was never observed first, the one played least; otherwise the highest index."""
        unseen = [i for i in np.flatnonzero(self._counts == 0) if self.mean is None or i != self.default]
        if unseen:
            is_best = round_.proposal in unseen and self._plays[round_.proposal] == min(self._plays[i] for i in unseen)
        else:
            is_best = near(float(indices[round_.proposal]), float(indices.max()), 0.0)
        if not is_best:
            problems.add("proposal", f"arm {round_.proposal} was proposed, but another promises more")

    def _check_index(self, round_: RecordedRound, problems: RoundProblems) -> None:
        """UCB1 keeps no floor: only that it plays the highest index.  (Auer et al. 2002)"""
        if round_.is_held:
            return
        # Arms that were never seen are proposed first, so nobody looks at what is divided by 0.
        with np.errstate(divide="ignore", invalid="ignore"):
            indices = self._total.value / self._counts + self.noise * np.sqrt(8 * math.log(self.rounds) / self._counts)
        self._check_proposal(round_, indices, problems)
