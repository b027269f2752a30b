"""One decision of a linear policy, checked: is the question the right one, is the proof true, was the verdict kept?"""

import math
from collections.abc import Sequence

import numpy as np

from surefoot.audit.compensated_sums import Vector
from surefoot.audit.confidence_sets import EPS, FINE, USABLE, RebuiltRidge, RebuiltSet
from surefoot.audit.declarations import Declarations
from surefoot.audit.ledger import AuditLedger, CarriedProof, LinearFacts, OfferedRows
from surefoot.audit.likelihood import RebuiltLikelihood
from surefoot.audit.recorded_proof import CLAIMED, PROVED, ProofChecker, Tolerances
from surefoot.audit.recorded_round import RecordedRound, RoundProblems, apart, near

SHIFTS = np.array([0.1, 0.2, 0.4, 0.8, 1.6])
HORIZON = 500
CERTAIN = 1e-5  # the share of a logarithm by which evidence must pass its limit before the audit insists on an alarm


class RebuiltWatch:
    """Whether rewards still follow one theta: ten bettors on either side's rounds, each with capital for every start.

    (docs/mathematics.md, "The watch")
    """

    def __init__(self) -> None:
        self._rounds = {True: 0, False: 0}
        self._shifts = np.concatenate([SHIFTS, -SHIFTS])
        self._logs = {side: np.full(self._shifts.size, -math.inf) for side in (True, False)}

    def bet(self, is_learner: bool, error: float) -> None:
        """Take in what one reward lies above its prediction, in units of the noise."""
        k = self._rounds[is_learner] = self._rounds[is_learner] + 1
        entering = math.log(HORIZON) - math.log(HORIZON + k - 1) - math.log(HORIZON + k)
        gains = self._shifts * error - self._shifts**2 / 2.0
        self._logs[is_learner] = np.logaddexp(self._logs[is_learner], entering) + gains

    def refutes(self, price: float, delta: float) -> bool:
        """Whether the wealth, less the price of the predictions, has surely reached 1/delta."""
        logs = np.concatenate(list(self._logs.values()))
        wealth = float(np.logaddexp.reduce(logs)) - math.log(logs.size)
        limit = price - math.log(delta)
        return wealth > limit + CERTAIN * (1.0 + abs(limit))


class LinearChecks:
    """Everything that the events so far say of an experiment with a linear policy."""

    def __init__(self, declared: Declarations) -> None:
        self.declared = declared
        self._offered, self._restarts = OfferedRows(), 0
        self._debt, self._rounds_before = 0.0, 0
        self.unplayed = 0  # learner rounds that nobody has confirmed in time
        self.short = 0.0  # the most that the learner's rounds fell short by, within what rounding may do
        self._begin()

    def _begin(self) -> None:
        """Nothing played and nothing learned."""
        self.account = AuditLedger(self.declared.knowledge.dim)
        self.estimate = RebuiltRidge(self.declared.knowledge)
        likelihood = self.declared.likelihood
        self._likelihood = None if likelihood is None else RebuiltLikelihood(likelihood)
        self._nest = dict[int, RebuiltSet]()
        self._watch = RebuiltWatch() if self.declared.watch.is_on else None
        self._proved: CarriedProof | None = None
        self.is_alarmed = False

    def restart(self, *, keep_promise: bool) -> str | None:
        """Learn anew; under the same promise what was spent is a debt. Why not, where that cannot be."""
        if self.declared.restart_share == 0.0:
            return f"{self.declared.policy} kept no share of delta for a restart"
        if keep_promise and self.declared.constraint.is_received:
            return "rewards really received cannot be charged at their worst"
        spent = self.account.learner_rounds * self.declared.worst_round
        self._debt = self._debt + spent if keep_promise else 0.0
        counted = self._rounds_before + self.account.learner_rounds + self.account.baseline_rounds
        self._rounds_before = counted if keep_promise else 0
        self._restarts += 1
        self.declared = self.declared.after(self._restarts)
        self._begin()
        return None

    @property
    def dim(self) -> int:
        """Length of a feature row."""
        return self.declared.knowledge.dim

    @property
    def longest(self) -> float:
        """No feature row may be longer."""
        return self.declared.knowledge.feature_bound * (1 + 1e-9)

    @property
    def _has_ellipsoid(self) -> bool:
        return self.declared.knowledge.kind != "likelihood"

    @property
    def _can_be_refuted(self) -> bool:
        """Whether this policy notices that no theta is left, and from then on keeps to the baseline."""
        is_dual = self.declared.knowledge.kind == "dual"
        return self.declared.policy == "SafeLUCB" or self.declared.is_exact or is_dual or self._watch is not None

    def teaches(self, is_learner: bool) -> bool:
        """Whether the round that was just judged will be learned from; later events must not change that.

        CLUCB never learns from the baseline; SafeLUCB not while it is the same and its mean exactly known. What is
        watched is bet on in any case.
        """
        return self._watch is not None or self._enters_set(is_learner)

    def _enters_set(self, is_learner: bool) -> bool:
        is_known = self.declared.policy == "SafeLUCB" and not self.account.has_moved
        return is_learner or (self.declared.learns_baseline and not is_known)

    def known_reward(self, round_: RecordedRound) -> float:
        """What the baseline is known to earn in a round, at least; 0 where nothing is known."""
        return max(0.0, self.declared.known(round_.known)[0]) if self.declared.policy != "LUCB" else 0.0

    def declared_mean(self, round_: RecordedRound) -> float | None:
        """The mean that was declared of a round which is watched, and which no confidence set learns."""
        if self._watch is None or self._enters_set(round_.is_learner):
            return None
        return self.declared.known(round_.known)[0]

    def breach_by(self, reward: float, is_learner: bool) -> str | None:
        """Why a reward contradicts what was declared, where it does."""
        lowest = self.declared.amount
        if self.declared.constraint.is_received and is_learner and reward < lowest:
            return f"a reward of {reward:g}, below the declared lowest of {lowest:g}"
        return None

    def judge(self, round_: RecordedRound, problems: RoundProblems) -> None:
        """Check one decision against everything before it, and count it."""
        longest = float(np.sqrt(np.einsum("ij,ij->i", round_.rows, round_.rows).max()))
        if longest > self.longest:
            problems.add("features", f"a row has length {longest:.6g}, beyond the declared bound")
            self.is_alarmed = True
        if self.declared.policy == "SafeLUCB":
            self._offered.add(round_.rows)
        self._check_proposal(round_, problems)
        known = self.declared.known(round_.known)
        displaced = round_.displaced
        if round_.baseline < 0 and self.declared.policy != "LUCB":
            problems.add("baseline", f"{self.declared.policy} is measured by a baseline, but none is named")
        self._check_known(round_, displaced, known, problems)
        keeps_newest = self.declared.policy != "LUCB" and not self.declared.is_exact
        self.is_alarmed |= keeps_newest and self.estimate.is_refuted
        question, required, size = self._ask(round_.rows[round_.proposal], displaced, known)
        scale = self._scale(round_.rows[round_.proposal], displaced, known, size)
        own = self._check_proof(round_, displaced, known, question, required, scale, problems)
        self._check_verdict(round_, own - self._floor(required), scale, problems)
        # Last: question and proof are about the rounds before this one.
        self._carry(round_, displaced, known, question, own)
        self.account.play(round_.rows[round_.action], displaced, known, is_learner=round_.is_learner)

    def move(self, decided: RecordedRound, played: int) -> None:
        """A round was not played as decided: count it as it was played, and carry on no proof of the old account."""
        known, displaced = self.declared.known(decided.known), decided.displaced
        self.account.take_back(decided.rows[decided.action], displaced, known, is_learner=decided.is_learner)
        self.account.play(decided.rows[played], displaced, known, is_learner=played != decided.baseline)
        self._proved = None

    def _check_known(
        self, round_: RecordedRound, displaced: Vector, known: tuple[float, float], problems: RoundProblems
    ) -> None:
        """What is said of the baseline's reward must be possible: from what is not, anything would follow.

        A reward that no theta of the declared length allows raises the alarm.
        """
        if self.declared.policy not in ("SafeLUCB", "CLUCB"):
            return
        if self.declared.policy == "CLUCB" and not isinstance(round_.known, float):
            problems.add("baseline_reward", f"CLUCB must be given the baseline's reward, but got {round_.known}")
        if not 0.0 <= known[0] <= known[1]:
            text = f"the baseline's reward is said to lie between {known[0]:.12g} and {known[1]:.12g}"
            problems.add("baseline_reward", f"{text}, which cannot be")
        most = self.declared.knowledge.theta_bound * float(np.linalg.norm(displaced)) * (1 + 1e-9)
        if known[0] > most + self.declared.misspecification:
            self.is_alarmed = True

    def learn(self, features: Vector, reward: float, is_learner: bool, declared: float | None = None) -> None:
        """Take in the reward of a round that teaches; one with a declared mean is only bet on."""
        # Before the reward enters: a prediction must not know it.
        predicted = self.estimate.predicted(features) if self._watch is not None and declared is None else declared
        if declared is None:
            self._enter(features, reward, is_learner)
        if self._watch is not None and predicted is not None:
            self._watch.bet(is_learner, (reward - predicted) / self.declared.knowledge.noise)
            self.is_alarmed |= self._watch.refutes(self.estimate.price, self.declared.watch_delta(self._restarts))

    def _enter(self, features: Vector, reward: float, is_learner: bool) -> None:
        if is_learner:
            self.account.receive(features, reward)
        self.remember(features, reward)

    def remember(self, features: Vector, reward: float) -> None:
        """Take in a reward of the baseline from before the first round: it is data, and in no account."""
        self.estimate.learn(features, reward)
        if self._likelihood is not None:
            self.is_alarmed |= not self._likelihood.learn(features, reward)
        if self.declared.is_exact:
            self._nest[self.estimate.count] = self.estimate.newest()[0]

    def _ask(self, a: Vector, b: Vector, known: tuple[float, float]) -> tuple[Vector, float | None, float]:
        """The round's question, the level that is required where the events alone tell it, and the size of it all.

        q = z + phi_a + alpha w - (1 - alpha)(v + phi_b).  (docs/mathematics.md, "The promise and the question")
        """
        declared, sums = self.declared, self.account
        alpha, rounds = declared.alpha, sums.learner_rounds + 1
        played, displaced, kept = sums.played + a, sums.displaced + b, sums.conserved
        size = float(np.linalg.norm(played) + np.linalg.norm(displaced) + np.linalg.norm(kept))
        if declared.policy == "LUCB":
            return played, -math.inf, size
        question = played + alpha * kept - (1 - alpha) * displaced
        if declared.policy == "CLUCB":
            return question, (1 - alpha) * (sums.kept_low.value + sums.owed_low.value + known[0]), size
        if declared.policy == "CLUCB2":
            return question, None, size
        weights = (2 - alpha) * rounds + alpha * sums.baseline_rounds
        debt = self._debt + self.unplayed * declared.worst_unplayed
        if declared.constraint.is_one_round:
            question, weights, debt = a - (1 - alpha) * b, 2 - alpha, 0.0
        elif declared.constraint.is_received:
            question, weights = question - played, weights - rounds
        counted = self._rounds_before + rounds + sums.baseline_rounds
        granted = declared.constraint.granted(declared, sums, rounds, counted)
        return question, declared.misspecification * weights + debt - granted, size

    def _scale(self, a: Vector, b: Vector, known: tuple[float, float], size: float) -> Tolerances:
        """What everything played so far could be worth, by the ball, the newest set and what is known of rewards."""
        declared, sums, rounds = self.declared, self.account, self.account.learner_rounds + 1
        most, epsilon = max(map(abs, declared.reward_range)), declared.misspecification
        owed = max(abs(sums.owed_low.value + known[0]), abs(sums.owed_high.value + known[1])) + epsilon * rounds
        kept = max(abs(sums.kept_low.value), abs(sums.kept_high.value)) + epsilon * sums.baseline_rounds
        parts = (sums.played + a, (most + epsilon) * rounds), (sums.displaced + b, owed), (sums.conserved, kept)
        worth = math.fsum(min(bound, self._reach(vector)) for vector, bound in parts)
        # One row more, for a policy gives rounding away even where all rows so far were 0.
        return Tolerances(worth, declared.knowledge.theta_bound * (size + declared.knowledge.feature_bound))

    def _reach(self, x: Vector) -> float:
        """What |<theta, x>| is at most, by the ball or by the newest set, but for rounding."""
        reach = self.declared.knowledge.theta_bound * float(np.linalg.norm(x))
        if self.estimate.count == 0 or not self._has_ellipsoid:
            return reach
        newest = self.estimate.newest()[0]
        mean, width = newest.mean_and_width(x)
        return min(reach, abs(mean) + newest.radius * width) if newest.blur < USABLE else reach

    def _sets(self, observations: int) -> Sequence[RebuiltSet]:
        """The newest set; every one so far, where the policy keeps them all."""
        if observations < 1 or observations > self.estimate.count or not self._has_ellipsoid:
            return []
        if self.declared.is_exact:
            return [self._nest[observations]]
        return self.estimate.newest() if observations == self.estimate.count else []

    def _check_proof(
        self,
        round_: RecordedRound,
        displaced: Vector,
        known: tuple[float, float],
        question: Vector,
        required: float | None,
        scale: Tolerances,
        problems: RoundProblems,
    ) -> float:
        """What is proved of the question; -inf where nothing is."""
        if required is not None and not near(round_.required, required, scale.worth):
            problems.add("required", f"{required:.12g} is required, but {round_.required:.12g} is written")
        if round_.guaranteed == -math.inf:
            if not (self._can_be_refuted or self.is_alarmed):
                problems.add("certificate", f"{self.declared.policy} always proves something, but nothing is written")
            return -math.inf
        theta_bound = self.declared.knowledge.theta_bound
        facts = LinearFacts(
            self.declared,
            self.account,
            self._offered,
            None if self._proved is None else self._proved.line(theta_bound),
            proposal=round_.rows[round_.proposal],
            displaced=displaced,
            known=known,
            likelihood=self._likelihood,
        )
        checker = ProofChecker(theta_bound, self._sets, facts.named, scale)
        enough = self._floor(required) + scale.rounding
        own = checker.check(round_.proof, question, problems, enough if round_.is_learner else -math.inf)
        written = round_.guaranteed - round_.required if self._is_difference else round_.guaranteed
        if not abs(written - round_.proof.value) <= scale.blur + max(0.0, -CLAIMED * round_.proof.value):
            problems.add(
                "certificate", f"the proof is worth {round_.proof.value:.12g}, but the certificate says {written:.12g}"
            )
        if self.declared.policy == "CLUCB2" and not self.declared.is_exact:
            self._check_owed(round_, displaced, scale, problems)
        self._settle_carried(round_)
        return own

    @property
    def _is_difference(self) -> bool:
        """Whether the paper's gates compare two sides, of which the question is the difference."""
        return self.declared.policy in ("CLUCB", "CLUCB2")

    def _floor(self, required: float | None) -> float:
        """What the question must be worth."""
        return 0.0 if required is None or self._is_difference else required

    def _check_owed(self, round_: RecordedRound, displaced: Vector, scale: Tolerances, problems: RoundProblems) -> None:
        """Algorithm 2 requires (1 - alpha) UCB(v + phi_b): what the piece of the baseline's rewards says."""
        owed = -(1 - self.declared.alpha) * (self.account.displaced + displaced)
        size = scale.size / self.declared.knowledge.theta_bound
        bounds = [piece.bound for piece in round_.proof.pieces if not apart(piece.vector, owed, size)]
        if bounds and not any(abs(bound + round_.required) <= scale.blur for bound in bounds):
            problems.add("required", f"{-bounds[0]:.12g} is required, but {round_.required:.12g} is written")

    def _check_verdict(self, round_: RecordedRound, own: float, scale: Tolerances, problems: RoundProblems) -> None:
        """The learner played exactly where the proof let it, and never against it."""
        is_allowed = round_.guaranteed >= round_.required
        own -= scale.rounding
        if round_.is_learner and not (own >= -scale.tolerated and is_allowed):
            short = -min(own, round_.margin)
            problems.add(
                "admissible", f"the learner played, but what can be proved falls short of the floor by {short:.6g}"
            )
        elif round_.is_learner:
            self.short = max(self.short, -own)
        self._check_coin(round_, is_allowed, problems)
        if round_.is_learner and self.is_alarmed and self.declared.policy != "LUCB":
            problems.add("alarm", "the learner played while the alarm was on")
        if self.is_alarmed and round_.guaranteed > -math.inf and self.declared.policy != "LUCB":
            problems.add("alarm", "the alarm is on, but the certificate promises something")
        self.is_alarmed |= self._can_be_refuted and round_.guaranteed == -math.inf

    def _check_coin(self, round_: RecordedRound, is_allowed: bool, problems: RoundProblems) -> None:
        """Where the learner was allowed to play, it did, or the coin of the holdout gave the round to the baseline."""
        draw, holdout = round_.draw, self.declared.watch.holdout
        if (draw is not None) != (holdout > 0.0 and is_allowed and not round_.is_held):
            problems.add("coin", f"a coin is drawn where the learner may play and there is a holdout, but it is {draw}")
        is_held_out = draw is not None and 0.0 <= draw < holdout
        if draw is not None and (is_held_out == round_.is_learner or not 0.0 <= draw < 1.0):
            problems.add(
                "coin", f"a coin of {draw:.6g} at a holdout of {holdout:g} did not let the {round_.source} play"
            )
        if is_allowed and not (round_.is_learner or round_.is_held or is_held_out):
            problems.add("verdict", "the learner was allowed to play, but the baseline was played")

    def _check_proposal(self, round_: RecordedRound, problems: RoundProblems) -> None:
        """The proposal promises the most, by the confidence set; searches over more than that are not repeated."""
        if self.declared.is_exact or not self.declared.proposes_by_set:
            return
        if self._likelihood is not None and self.estimate.count:
            scores, share = self._likelihood.uppers(round_.rows), 1e-6
        elif self.estimate.count:
            known = self.estimate.optimistic()
            uppers = known.uppers(round_.rows, self.declared.exploration)
            scores, share = [uppers], known.widest_guard + 1e3 * known.rounding
        else:
            scores, share = [self.declared.longest_theta * np.linalg.norm(round_.rows, axis=1)], 1e-9
        bests = [(float(uppers.max()), float(uppers[round_.proposal])) for uppers in scores]
        if not any(
            near(round_.optimism, chosen, abs(best), share) and near(chosen, best, 0.0, share) for best, chosen in bests
        ):
            best, chosen = bests[0]
            problems.add(
                "proposal",
                f"action {round_.proposal} may be worth {chosen:.9g} and the best {best:.9g}, "
                f"but {round_.optimism:.9g} is written",
            )

    def _settle_carried(self, round_: RecordedRound) -> None:
        """Where a proof used the carried fact, go on from what it claimed."""
        for piece in round_.proof.pieces:
            if piece.name == PROVED and self._proved is not None:
                self._proved.claim(piece.level)

    def _carry(
        self, round_: RecordedRound, b: Vector, known: tuple[float, float], question: Vector, own: float
    ) -> None:
        """What is proved once the round is played: the question, or the one before and what the baseline adds to it."""
        declared = self.declared
        if declared.policy != "SafeLUCB" or not declared.constraint.carries_over or self.is_alarmed:
            return
        if round_.is_learner:
            # Handed on is the audit's own value; the record's is only the most that it may claim.
            self._proved = CarriedProof(question, own, round_.guaranteed)
            return
        self._proved = self._proved or CarriedProof(np.zeros(self.dim), 0.0, 0.0)
        length = declared.knowledge.theta_bound * float(np.linalg.norm(b)) * (1 + 16 * EPS)
        least = claimed = max(known[0] - declared.misspecification, -length)
        for newest in self.estimate.newest() if self.estimate.count and self._has_ellipsoid else []:
            if newest.lower(b) > least or newest.blur > USABLE:
                own, plain = newest.at_least(b, FINE)
                least, claimed = max(least, own), max(claimed, plain)
        self._proved.add(declared.alpha, b, least, claimed)
