"""The slow reference: every policy written straight from its paper, for tests only.

Nothing is kept but the raw list of rounds and the raw list of rewards in order of arrival. Every number is computed
from those lists anew, so no update can go stale. The package under test shares no code with this file.

Labels such as `confset1` are those of paper.tex (Kazerouni, Ghavamzadeh, Abbasi-Yadkori and Van Roy, "Conservative
Contextual Linear Bandits"); Algorithm 1 is CLUCB and Algorithm 2 is CLUCB2. The multi-armed ancestors are UCB1
(Auer, Cesa-Bianchi and Fischer 2002) and Conservative UCB (Wu, Shariff, Lattimore and Szepesvari 2016).

Rewards may come late and in any order. z, v, w and n count a round once it is decided; the confidence set holds only
the rounds whose reward has come, and its radius counts those.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import clarabel
import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import zeta

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]

SOLVER_TOLERANCE = 1e-10  # what Clarabel is asked for
CHECK_TOLERANCE = 1e-8  # what its answer must pass, however it describes it


@dataclass(frozen=True)
class SlowDecision:
    """One round's decision and the two sides of its gate, guaranteed >= required."""

    round: int
    action: int
    source: str  # "learner" or "baseline"
    proposal: int  # a', the optimistic action
    guaranteed: float
    required: float
    upper: Vector  # the upper confidence bound of every action at that round


@dataclass(frozen=True)
class SlowRound:
    """What was decided in one round, with the features it needs afterwards."""

    decision: SlowDecision
    phi_a: Vector  # features of the action played
    phi_b: Vector  # features of the baseline's action
    r_b: float  # the baseline's mean reward, nan when nobody gave it


# ------------------------------------------------------------------------------------------------ confidence sets


def radius(
    k: int, *, dim: int, delta: float, noise: float, ridge: float, theta_bound: float, feature_bound: float
) -> float:
    """beta = sigma sqrt(d log((1 + (k+1) D^2/lambda) / delta)) + sqrt(lambda) B  (below `confset1` and `confset2`).

    k is the number of observations in the set: m_t in CLUCB; in CLUCB2 beta_{t+1} has t+1 where t = k.
    """
    log_term = math.log((1.0 + (k + 1) * feature_bound**2 / ridge) / delta)
    return noise * math.sqrt(dim * log_term) + math.sqrt(ridge) * theta_bound


@dataclass(frozen=True)
class Ellipsoid:
    """The set of all theta with ||theta - center||_V <= beta  (`confset1`)."""

    center: Vector
    V: Matrix
    beta: float

    def distance(self, theta: Vector) -> float:
        """||theta - center||_V."""
        return math.sqrt(float((theta - self.center) @ self.V @ (theta - self.center)))

    def width(self, q: Vector) -> float:
        """||q||_{V^-1}."""
        return math.sqrt(max(0.0, float(q @ np.linalg.solve(self.V, q))))

    def lower(self, q: Vector) -> float:
        """min <theta, q> = <center, q> - beta ||q||_{V^-1}."""
        return float(self.center @ q - self.beta * self.width(q))

    def upper(self, q: Vector) -> float:
        """max <theta, q> = <center, q> + beta ||q||_{V^-1}."""
        return float(self.center @ q + self.beta * self.width(q))


def lower_over_intersection(q: Vector, ellipsoids: Sequence[Ellipsoid]) -> float:
    """min <theta, q> over all the ellipsoids at once, a second-order cone program  (`confset2`).

    The solver's dual point splits q into one piece per ellipsoid, and the pieces' own lower bounds add up to a lower
    bound for q (weak duality); strong duality makes the best split the minimum. So the value is the split's, never
    the solver's word, and the solver's theta must show that no split could do better.
    """
    size = float(np.linalg.norm(q))
    if size == 0.0:
        return 0.0
    unit, status = q / size, ""
    for equilibrate in (False, True):  # scaled, Clarabel stalls near 1e-8 once in some ten thousand programs
        theta, pieces, status = _solve_cone_program(unit, ellipsoids, equilibrate=equilibrate)
        pieces[-1] = pieces[-1] + (unit - sum(pieces))  # what the solver left over, so that the pieces add up
        value = sum(e.lower(piece) for e, piece in zip(ellipsoids, pieces, strict=True))
        outside = max(e.distance(theta) / e.beta - 1.0 for e in ellipsoids)
        if abs(unit @ theta - value) <= CHECK_TOLERANCE and outside <= CHECK_TOLERANCE:
            return size * value
    raise ArithmeticError(f"no minimum over {len(ellipsoids)} ellipsoids: Clarabel says {status}")


def _solve_cone_program(
    unit: Vector, ellipsoids: Sequence[Ellipsoid], *, equilibrate: bool
) -> tuple[Vector, list[Vector], str]:
    """The minimiser theta, one piece of the objective per ellipsoid, and the solver's status.

    With V = C C^T, one ellipsoid says that (1, C^T (theta - center) / beta) lies in the second-order cone; Clarabel
    wants that vector as b - A theta.
    """
    dim = len(unit)
    roots = [np.linalg.cholesky(e.V).T / e.beta for e in ellipsoids]
    A = np.vstack([np.vstack([np.zeros(dim), -root]) for root in roots])
    b = np.concatenate([np.append(1.0, -root @ e.center) for root, e in zip(roots, ellipsoids, strict=True)])
    cones = [clarabel.SecondOrderConeT(dim + 1) for _ in ellipsoids]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.equilibrate_enable = equilibrate
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = SOLVER_TOLERANCE
    no_curvature = sparse.csc_matrix((dim, dim))
    solution = clarabel.DefaultSolver(no_curvature, unit, sparse.csc_matrix(A), b, cones, settings).solve()
    duals = np.array(solution.z).reshape(len(ellipsoids), dim + 1)[:, 1:]
    pieces = [root.T @ u for root, u in zip(roots, duals, strict=True)]
    return np.array(solution.x), pieces, str(solution.status)


# ------------------------------------------------------------------------------------------------ linear policies


class _SlowLinear:
    """The raw lists, and the sums and sets computed from them."""

    def __init__(
        self, *, dim: int, delta: float, noise: float, ridge: float, theta_bound: float, feature_bound: float
    ) -> None:
        self.dim = dim
        self.delta = delta
        self.noise = noise
        self.ridge = ridge
        self.theta_bound = theta_bound
        self.feature_bound = feature_bound
        self.rounds: list[SlowRound] = []
        self.rewards: list[tuple[int, float]] = []  # (round, reward), in order of arrival

    def observe(self, decision: SlowDecision, reward: float) -> None:
        if any(number == decision.round for number, _ in self.rewards):
            raise ValueError(f"round {decision.round} already has its reward")
        self.rewards.append((decision.round, float(reward)))

    def learned(self) -> list[tuple[Vector, float]]:
        """(phi_{a_i}, y_i) of every observation in the set: all rounds whose reward has come."""
        return [(self.rounds[number - 1].phi_a, y) for number, y in self.rewards]

    def ball(self) -> Ellipsoid:
        """C_1 = {||theta||_2 <= B}."""
        return Ellipsoid(np.zeros(self.dim), np.eye(self.dim), self.theta_bound)

    def ellipsoid(self, learned: list[tuple[Vector, float]]) -> Ellipsoid:
        """V = lambda I + Phi Phi^T and theta_hat = V^-1 Phi Y, one column of Phi per row learned  (`thetahat1`)."""
        Phi = np.array([phi for phi, _ in learned]).T
        Y = np.array([y for _, y in learned])
        V = self.ridge * np.eye(self.dim) + Phi @ Phi.T
        theta_hat = np.linalg.solve(V, Phi @ Y).astype(np.float64)
        beta = radius(
            len(learned),
            dim=self.dim,
            delta=self.delta,
            noise=self.noise,
            ridge=self.ridge,
            theta_bound=self.theta_bound,
            feature_bound=self.feature_bound,
        )
        return Ellipsoid(theta_hat, V, beta)

    def current_set(self) -> Ellipsoid:
        """The ball before the first observation, then the newest ellipsoid alone  (`confset1`)."""
        learned = self.learned()
        return self.ellipsoid(learned) if learned else self.ball()

    def lower(self, q: npt.ArrayLike) -> float:
        return self.current_set().lower(np.asarray(q, dtype=np.float64))

    def upper(self, q: npt.ArrayLike) -> float:
        return self.current_set().upper(np.asarray(q, dtype=np.float64))

    def uppers(self, features: Matrix) -> Vector:
        return np.array([self.upper(phi) for phi in features])

    def sum_features(self, source: str, which: Literal["phi_a", "phi_b"]) -> Vector:
        """z: learner, phi_a. v: learner, phi_b. w: baseline, phi_b."""
        rows: list[Vector] = [getattr(r, which) for r in self.rounds if r.decision.source == source]
        return sum(rows, np.zeros(self.dim))

    def record(self, decision: SlowDecision, features: Matrix, baseline: int, r_b: float | None) -> SlowDecision:
        r_b = math.nan if r_b is None else float(r_b)
        self.rounds.append(SlowRound(decision, features[decision.action].copy(), features[baseline].copy(), r_b))
        return decision


class SlowLUCB(_SlowLinear):
    """Linear UCB: the optimistic action, always."""

    def decide(self, features: npt.ArrayLike, baseline: int = 0, baseline_reward: float | None = None) -> SlowDecision:
        phi = np.asarray(features, dtype=np.float64)
        upper = self.uppers(phi)
        proposal = int(np.argmax(upper))
        z = self.sum_features("learner", "phi_a")
        guaranteed = self.lower(z + phi[proposal])
        decision = SlowDecision(len(self.rounds) + 1, proposal, "learner", proposal, guaranteed, -math.inf, upper)
        return self.record(decision, phi, baseline, baseline_reward)


class SlowCLUCB(_SlowLinear):
    """Algorithm 1: the baseline's mean reward is known, and only learner rounds teach."""

    def __init__(
        self,
        *,
        dim: int,
        alpha: float,
        delta: float,
        noise: float,
        ridge: float,
        theta_bound: float,
        feature_bound: float,
    ) -> None:
        super().__init__(
            dim=dim, delta=delta, noise=noise, ridge=ridge, theta_bound=theta_bound, feature_bound=feature_bound
        )
        self.alpha = alpha

    def learned(self) -> list[tuple[Vector, float]]:
        """S_t only: after a conservative action C_{t+1} = C_t  (Algorithm 1, the else branch)."""
        seen = [(self.rounds[number - 1], y) for number, y in self.rewards]
        return [(r.phi_a, y) for r, y in seen if r.decision.source == "learner"]

    def decide(self, features: npt.ArrayLike, baseline: int, baseline_reward: float | None = None) -> SlowDecision:
        if baseline_reward is None:
            raise ValueError("CLUCB needs baseline_reward")
        phi = np.asarray(features, dtype=np.float64)
        t = len(self.rounds) + 1

        # (a', theta~) = argmax over A_t x C_t of <theta, phi_a>
        upper = self.uppers(phi)
        proposal = int(np.argmax(upper))

        # L_t = min over C_t of <theta, z_{t-1} + phi_a'>
        z = self.sum_features("learner", "phi_a")
        L = self.lower(z + phi[proposal])

        # if L_t + sum over S^c_{t-1} of r_b >= (1 - alpha) sum_{i<=t} r_b
        guaranteed = L + sum(r.r_b for r in self.rounds if r.decision.source == "baseline")
        required = (1.0 - self.alpha) * (sum(r.r_b for r in self.rounds) + baseline_reward)
        is_safe = guaranteed >= required
        action, source = (proposal, "learner") if is_safe else (baseline, "baseline")
        decision = SlowDecision(t, action, source, proposal, guaranteed, required, upper)
        return self.record(decision, phi, baseline, baseline_reward)


class SlowCLUCB2(_SlowLinear):
    """Algorithm 2: the baseline's mean reward is unknown, and every round teaches.

    `exact` is the paper's nested set: the ball and the ellipsoid after each observation so far, all at once.
    `latest` is Remark 3: the newest ellipsoid alone.
    """

    def __init__(
        self,
        *,
        dim: int,
        alpha: float,
        delta: float,
        noise: float,
        ridge: float,
        theta_bound: float,
        feature_bound: float,
        reward_floor: float = 0.0,
        nesting: Literal["exact", "latest"] = "exact",
    ) -> None:
        super().__init__(
            dim=dim, delta=delta, noise=noise, ridge=ridge, theta_bound=theta_bound, feature_bound=feature_bound
        )
        if nesting not in ("exact", "latest"):
            raise ValueError(f"nesting is 'exact' or 'latest', but got {nesting!r}")
        self.alpha = alpha
        self.reward_floor = reward_floor
        self.nesting = nesting

    def nested_sets(self) -> list[Ellipsoid]:
        """Ball, ellipsoid after one observation, after two, ...; their intersection is C_t  (`confset2`)."""
        learned = self.learned()
        return [self.ball()] + [self.ellipsoid(learned[:k]) for k in range(1, len(learned) + 1)]

    def lower(self, q: npt.ArrayLike) -> float:
        if self.nesting == "latest" or not self.rewards:
            return super().lower(q)
        return lower_over_intersection(np.asarray(q, dtype=np.float64), self.nested_sets())

    def upper(self, q: npt.ArrayLike) -> float:
        if self.nesting == "latest" or not self.rewards:
            return super().upper(q)
        return -lower_over_intersection(-np.asarray(q, dtype=np.float64), self.nested_sets())

    def decide(self, features: npt.ArrayLike, baseline: int, baseline_reward: float | None = None) -> SlowDecision:
        phi = np.asarray(features, dtype=np.float64)
        t = len(self.rounds) + 1
        z = self.sum_features("learner", "phi_a")
        v = self.sum_features("learner", "phi_b")
        w = self.sum_features("baseline", "phi_b")
        n = sum(r.decision.source == "baseline" for r in self.rounds)

        # (a', theta~) = argmax over A_t x C_t of <theta, phi_a>
        upper = self.uppers(phi)
        proposal = int(np.argmax(upper))

        # R_t = max <theta, v + phi_b>,  L_t = min <theta, z + phi_a'> + alpha max{min <theta, w>, n r_l}
        R = self.upper(v + phi[baseline])
        L = self.lower(z + phi[proposal]) + self.alpha * max(self.lower(w), n * self.reward_floor)

        # if L_t >= (1 - alpha) R_t
        guaranteed, required = L, (1.0 - self.alpha) * R
        is_safe = guaranteed >= required
        action, source = (proposal, "learner") if is_safe else (baseline, "baseline")
        decision = SlowDecision(t, action, source, proposal, guaranteed, required, upper)
        return self.record(decision, phi, baseline, baseline_reward)


# ------------------------------------------------------------------------------------------------ multi-armed ancestors


class _SlowArms:
    """The raw lists of a multi-armed bandit, and the counts and means computed from them."""

    def __init__(self, arms: int) -> None:
        self.arms = arms
        self.decisions: list[SlowDecision] = []
        self.rewards: list[tuple[int, float]] = []  # (round, reward), in order of arrival

    def observe(self, decision: SlowDecision, reward: float) -> None:
        if any(number == decision.round for number, _ in self.rewards):
            raise ValueError(f"round {decision.round} already has its reward")
        self.rewards.append((decision.round, float(reward)))

    def plays(self, arm: int) -> int:
        """N_i: rounds that played the arm, their reward pending or not."""
        return sum(d.action == arm for d in self.decisions)

    def seen(self, arm: int) -> list[float]:
        """The arm's rewards so far; T_i is their number."""
        return [y for number, y in self.rewards if self.decisions[number - 1].action == arm]

    def optimistic(self, upper: Vector) -> int:
        """First argmax; among arms at infinity (never observed), the one with the fewest plays, then the first."""
        unseen = [arm for arm in range(self.arms) if math.isinf(upper[arm])]
        return min(unseen, key=self.plays) if unseen else int(np.argmax(upper))


class SlowUCB(_SlowArms):
    """UCB1 (Auer et al. 2002, Figure 1): mean_i + noise sqrt(8 ln t / T_i); noise = 1/2 gives their sqrt(2 ln t / T_i).

    UCB1 knows no lower bounds: it guarantees nothing and requires nothing, both -inf.
    """

    def __init__(self, arms: int, noise: float = 0.5) -> None:
        super().__init__(arms)
        self.noise = noise

    def index(self, arm: int, t: int) -> float:
        ys = self.seen(arm)
        return sum(ys) / len(ys) + self.noise * math.sqrt(8.0 * math.log(t) / len(ys)) if ys else math.inf

    def decide(self, baseline: int | None = None) -> SlowDecision:
        t = len(self.decisions) + 1
        upper = np.array([self.index(arm, t) for arm in range(self.arms)])
        proposal = self.optimistic(upper)
        decision = SlowDecision(t, proposal, "learner", proposal, -math.inf, -math.inf, upper)
        self.decisions.append(decision)
        return decision


class SlowConservativeUCB(_SlowArms):
    """Conservative UCB (Wu et al. 2016, Algorithm 1), with mu_0 known or learned."""

    def __init__(
        self, arms: int, alpha: float, delta: float, noise: float = 1.0, baseline_reward: float | None = None
    ) -> None:
        super().__init__(arms)
        self.alpha = alpha
        self.delta = delta
        self.noise = noise
        self.mu_0 = baseline_reward

    def psi(self, s: int) -> float:
        """psi(s) = 2 sigma^2 ln(c s^3 / delta): a failure costs delta / (c s^3), and sum s^-3 = zeta(3).

        Known mu_0: a lower bound for each of the other arms. Unknown: and both bounds for the default arm.
        """
        bounds = self.arms + 1 if self.mu_0 is None else self.arms - 1
        return 2.0 * self.noise**2 * math.log(float(zeta(3.0)) * bounds * s**3 / self.delta)

    def interval(self, arm: int, default: int) -> tuple[float, float]:
        """(lambda_i, theta_i), the bounds on the arm's mean."""
        if arm == default and self.mu_0 is not None:
            return self.mu_0, self.mu_0
        ys = self.seen(arm)
        if not ys:
            return 0.0, math.inf
        mean, width = sum(ys) / len(ys), math.sqrt(self.psi(len(ys)) / len(ys))
        return max(0.0, mean - width), mean + width

    def decide(self, baseline: int) -> SlowDecision:
        t = len(self.decisions) + 1
        bounds = [self.interval(arm, baseline) for arm in range(self.arms)]
        lam, theta = np.array([low for low, _ in bounds]), np.array([high for _, high in bounds])
        J = self.optimistic(theta)

        others = sum(self.plays(i) * float(lam[i]) for i in range(self.arms) if i != baseline)
        if baseline != J:
            others += float(lam[J])
        default_plays = self.plays(baseline) + (baseline == J)

        # c0 mu_0 is what the default arm adds to the budget: its worst case is lambda_0 or theta_0, by the sign of c0.
        c0 = default_plays - (1.0 - self.alpha) * t
        m0 = float(lam[baseline] if c0 >= 0 else theta[baseline])
        is_safe = math.isfinite(m0) and others + c0 * m0 >= 0
        # An infinite theta_0 would make both sides infinite: count the default's own plays at lambda_0 = 0 instead.
        guaranteed = others + (default_plays * m0 if math.isfinite(m0) else 0.0)
        required = (1.0 - self.alpha) * t * m0

        action, source = (J, "learner") if is_safe else (baseline, "baseline")
        decision = SlowDecision(t, action, source, J, guaranteed, required, theta)
        self.decisions.append(decision)
        return decision
