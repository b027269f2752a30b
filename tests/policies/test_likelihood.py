"""The likelihood set of bounded rewards: its event holds, its bounds are the best there are, its proofs are true."""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

import msgspec
import numpy as np
import pytest
from bench.rare import arms, locked
from bench.safety import rare_clicks
from scipy.optimize import minimize_scalar

import surefoot
from surefoot.audit.likelihood import LikelihoodDeclarations, RebuiltLikelihood
from surefoot.errors import ConfigError, InputError, ProofError
from surefoot.safety.likelihood import LIKELIHOOD, Tangent
from surefoot.safety.proof import Proof
from surefoot.simulation import Spec, simulate
from tests.policies.safe_runs import most_allowed

Draw = Callable[[np.random.Generator, float], float]
DELTA = 0.2


def clicks(dim: int, **given: Any) -> surefoot.SafeLUCB:
    told: dict[str, Any] = {"alpha": 0.1, "delta": 0.001, "theta_bound": 1.0, "feature_bound": 1.0}
    return surefoot.SafeLUCB(**{"dim": dim, "reward_bounds": (0.0, 1.0), **told, **given})


def click(rng: np.random.Generator, mean: float) -> float:
    return float(rng.random() < mean)


def two_points(rng: np.random.Generator, mean: float) -> float:
    """At the edge: nothing, or a little more than the mean."""
    high = min(1.0, 1.5 * mean) or 1.0
    return high * float(rng.random() < mean / high)


def beta(rng: np.random.Generator, mean: float) -> float:
    return mean if mean in (0.0, 1.0) else float(rng.beta(3 * mean, 3 * (1 - mean)))


DRAWS: dict[str, Draw] = {"clicks": click, "two points": two_points, "inside": beta}


def play(policy: surefoot.SafeLUCB, means: Any, rounds: int, rng: np.random.Generator) -> int:
    """Plain arms, the first of them today's; how often that was kept."""
    kept = 0
    for _ in range(rounds):
        decision = policy.decide(np.eye(len(means)), baseline=0)
        kept += decision.source == "baseline"
        policy.observe(decision, click(rng, means[decision.action]))
    return kept


def loss_at(theta: Any, rows: Any, rewards: Any) -> Any:
    """The loss after each reward, by its definition."""
    means = np.clip(rows @ theta, 1e-300, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        hits = np.where(rewards > 0, -rewards * np.log(means), 0.0)
        misses = np.where(rewards < 1, -(1 - rewards) * np.log(1 - means), 0.0)
    return np.cumsum(hits + misses)


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("means", [(0.0, 1.0, 0.5), (0.02, 0.05, 0.004), (0.97, 0.3, 1.0)], ids=str)
def test_the_truth_stays_in_the_set_at_all_times(kind: str, means: tuple[float, ...]) -> None:
    """Rows follow the rewards before them, and whoever stops may look: the worst moment of a run counts."""
    rng = np.random.default_rng([17, list(DRAWS).index(kind), round(1000 * means[0])])
    runs, missed = 250, 0
    for _ in range(runs):
        policy, rows, rewards, allowed, last = clicks(3, delta=DELTA, realised_share=0.0, restart_share=0.0,
                                                     radius="likelihood"), [], [], [], 0.0  # fmt: skip
        for round_ in range(30):
            arm = 0 if last > means[0] else int(rng.integers(3)) if round_ % 2 else 1
            row, last = np.eye(3)[arm], DRAWS[kind](rng, means[arm])
            policy.learn_logged(row, last)
            rows.append(row)
            rewards.append(last)
            known = policy.likelihood
            assert known is not None
            allowed.append(known.allowed)
        missed += bool((loss_at(np.array(means), np.array(rows), np.array(rewards)) > np.array(allowed)).any())
    assert missed <= most_allowed(runs, DELTA)


def least_over_arms(q: Any, known: Any) -> float:
    """min <q, mu> over the set of plain arms, by its one-dimensional dual; means lie in [0, 1]."""
    successes, failures = (known.rows.T @ one for one in (known.successes, known.failures))

    def dual(log_tau: float) -> float:
        tau = math.exp(log_tau)
        # tau q - successes/mu + failures/(1 - mu) = 0
        middle = tau * q + successes + failures
        root = np.sqrt(np.maximum(middle**2 - 4 * tau * q * successes, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            mu = np.where(middle >= 0, 2 * successes / (middle + root), (middle - root) / (2 * tau * q))
            mu = np.clip(np.where(successes + failures > 0, mu, q < 0), 0.0, 1.0)
            loss = np.where(successes > 0, -successes * np.log(mu), 0) + np.where(
                failures > 0, -failures * np.log1p(-mu), 0
            )
        return float(-(q @ mu + (loss.sum() - known.allowed) / tau))

    grid = np.linspace(-14, 10, 200)
    start = grid[int(np.argmin([dual(one) for one in grid]))]
    found = -float(minimize_scalar(dual, bounds=(start - 0.2, start + 0.2), method="bounded").fun)
    return max(found, float(np.minimum(q, 0.0).sum()))  # where tau grows without bound, what the range alone says


@pytest.mark.parametrize("rate", [0.3, 0.05, 0.01])
def test_plain_arms_are_let_in_as_soon_as_the_set_allows_it(rate: float) -> None:
    rng = np.random.default_rng(round(1000 * rate))
    means = rate * np.array([1.0, 1.5, 0.7, 0.5])
    policy, compared, alone = clicks(4, radius="likelihood"), 0, 0
    for _ in range(3_000):
        before = policy.likelihood
        decision = policy.decide(np.eye(4), baseline=0)
        proof = decision.certificate.proof
        if before is not None and any(piece.fact.name == LIKELIHOOD for piece in proof.pieces) and rng.random() < 0.1:
            best = least_over_arms(proof.question, before)
            size = abs(best) + float(np.abs(proof.question) @ means)
            names = {piece.fact.name for piece in proof.pieces}
            if names <= {LIKELIHOOD, "ball", "declared range of an action"}:  # others may know more than the set
                assert proof.value <= best + 1e-6 * size
                alone += 1
            # The search ends once the verdict is clear; there it must be the exact one.
            assert decision.source == "learner" or best <= 0.01 * size
            compared += 1
        policy.observe(decision, click(rng, means[decision.action]))
    assert compared > 30
    assert alone > 5


@pytest.mark.parametrize("radius", ["likelihood", "best"])
def test_proofs_hold_and_rest_on_what_was_learned(radius: str) -> None:
    rng, policy, seen = np.random.default_rng(5), clicks(3, radius=radius), 0
    for _ in range(1_500):
        known = policy.likelihood
        decision = policy.decide(np.eye(3), baseline=0)
        proof = decision.certificate.proof
        surefoot.check(proof)
        tangents = [piece.fact for piece in proof.pieces if isinstance(piece.fact, Tangent)]
        if tangents and known is not None and seen < 40:
            others = [piece.fact for piece in proof.pieces if not isinstance(piece.fact, Tangent)]
            rest = [] if proof.rest is None else [proof.rest]
            surefoot.check(proof, facts=[known, *others, *rest])
            seen += 1
            # A level is rounded down by a billionth of what its height is made of.
            more = [1e-8 * (known.allowed + abs(one.level)) for one in tangents]
            raised = [
                Tangent(one.normal, one.level + up, LIKELIHOOD, one.point)
                for one, up in zip(tangents, more, strict=True)
            ]
            assert not any(known.grants(one) for one in raised)
            moved = Tangent(tangents[0].normal, tangents[0].level, LIKELIHOOD, 1.5 * tangents[0].point)
            assert not known.grants(moved)
        policy.observe(decision, click(rng, (0.2, 0.4, 0.1)[decision.action]))
    assert seen == 40


def test_a_forged_tangent_is_refused() -> None:
    policy, rng = clicks(3), np.random.default_rng(2)
    play(policy, (0.2, 0.4, 0.1), 400, rng)
    known = policy.likelihood
    assert known is not None
    forged = Tangent(np.array([1.0, 0.0, 0.0]), 0.9, LIKELIHOOD, np.full(3, 0.1))
    proof = Proof(forged.normal, (), 0.9)
    with pytest.raises(ProofError):
        surefoot.check(proof, facts=[known])
    assert not known.grants(forged)
    for point, level in ((np.full(2, 0.1), 0.0), (np.full(3, np.nan), 0.0), (np.full(3, 0.1), np.nan)):
        assert not known.grants(Tangent(forged.normal, level, LIKELIHOOD, point))


def test_a_point_so_far_away_that_rounding_lifts_the_parabolas_proves_nothing() -> None:
    """Rows along one line, too many to keep: their parabolas do not bend across it, but for rounding either way."""
    line, truth, rng = np.array([0.6, 0.7, 0.3]), np.array([0.3, 0.2, 0.1]), np.random.default_rng(1)
    policy = surefoot.SafeLUCB(
        dim=3, alpha=0.1, delta=0.05, theta_bound=1.0, feature_bound=1.0, reward_bounds=(0.0, 1.0)
    )
    rebuilt = RebuiltLikelihood(LikelihoodDeclarations(3, 0.05, (0.0, 1.0), 1.0, 1.0, 1.0))
    for _ in range(1_200):
        row = line * rng.uniform(0.5, 1.0)
        reward = float(rng.random() < truth @ row)
        policy.learn_logged(row, reward)
        rebuilt.learn(row, reward)
    known = policy.likelihood
    assert known is not None
    across, lifted, audited = np.linalg.svd(line[None])[2][1:], 0, 0
    for size in (1e8, 5e8, 1e11):
        for _ in range(6):
            turn = rng.uniform(0.0, 2.0 * math.pi)
            point = truth + size * (np.array([math.cos(turn), math.sin(turn)]) @ across)
            with localcontext() as context:
                context.prec = 60
                normal, level = known._touched([Decimal(one) for one in point.tolist()])
            slope, height = np.array([float(one) for one in normal]), float(level)
            if truth @ slope < height - 1.0:  # not so at the truth, which lies in the set
                lifted += 1
                claim = Tangent(slope, height - abs(height) / 2, LIKELIHOOD, point)
                assert not known.grants(claim)
                assert size > 1e9 or msgspec.structs.replace(known, square_error=0.0).grants(claim)
            for fact in rebuilt.touched(point):
                audited += bool(truth @ fact.normal < fact.level - 1.0)
                assert truth @ fact.normal >= fact.level - fact.error
    assert lifted > 5
    assert audited > 5
    near = rebuilt.touched(truth)[0]
    assert near.error < 1e-6
    assert all(not rebuilt.touched(point) for point in (1e200 * across[0], np.full(3, np.inf), np.full(3, np.nan)))


@pytest.mark.parametrize("dim", [1, 6, 50])
def test_a_policy_goes_on_from_its_state_to_the_bit(dim: int) -> None:
    rng = np.random.default_rng(dim)
    policy = clicks(dim, alpha=0.01, ridge=0.3)
    rows = [np.abs(rng.normal(size=(4, dim))) / (3 * math.sqrt(dim)) for _ in range(60)]
    for one in rows:
        policy.observe(policy.decide(one, baseline=1), click(rng, 0.2))
    again = surefoot.SafeLUCB.from_state(policy.state())
    for one in rows:
        ours, theirs = policy.decide(one, baseline=1), again.decide(one, baseline=1)
        assert (ours.action, ours.certificate.guaranteed) == (theirs.action, theirs.certificate.guaranteed)
        reward = click(rng, 0.2)
        policy.observe(ours, reward)
        again.observe(theirs, reward)


def test_more_rows_than_there_is_room_for_keep_the_truth_in_the_set() -> None:
    """Rows that never repeat leave for parabolas: the set grows, and its memory does not."""
    rng, dim = np.random.default_rng(4), 3
    theta = np.array([0.3, 0.2, 0.4])
    policy = clicks(dim, radius="likelihood", delta=0.01)
    sizes, rows, rewards = [], [], []
    for round_ in range(4_000):
        row = rng.dirichlet(np.ones(dim))
        rows.append(row)
        rewards.append(click(rng, float(row @ theta)))
        policy.learn_logged(row, rewards[-1])
        if round_ in (1_500, 3_999):
            known = policy.likelihood
            assert known is not None
            sizes.append(len(known.rows))
            exact = loss_at(theta, np.array(rows), np.array(rewards))[-1]
            kept = loss_at(theta, known.rows, known.successes / (known.successes + known.failures))[-1]
            parabolas = known.constant + known.linear @ theta + theta @ known.square @ theta
            # Below the loss, and not far below: that is what they are for.
            assert kept + parabolas <= exact + 1e-6
            assert kept + parabolas >= 0.9 * exact
            assert kept + parabolas <= known.allowed
    assert max(sizes) <= 1024


def test_clicks_of_five_percent_let_the_learner_in() -> None:
    """Five arms, the best half as good again: with the noise scale 1/2 it takes 41,587 rounds."""
    kept = play(clicks(5), 0.05 * np.array([1.0, 1.5, 1.0, 0.7, 0.5]), 15_000, np.random.default_rng(0))
    assert kept <= 9_000


def test_a_share_alpha_is_free_where_no_mean_is_negative() -> None:
    """Before anything is learned of rare rewards, the learner has a share alpha and no more."""
    policy = surefoot.SafeLUCB(
        dim=4, alpha=0.1, delta=0.01, noise=0.5, theta_bound=1.0, feature_bound=1.0, reward_range=(0.0, 1.0)
    )
    kept = play(policy, (0.02, 0.02, 0.01, 0.03), 3_000, np.random.default_rng(1))
    assert 2_690 <= kept <= 2_710
    decision = policy.decide(np.eye(4), baseline=0)
    surefoot.check(decision.certificate.proof)


def test_the_free_share_is_no_gift_where_the_baseline_moves() -> None:
    rng = np.random.default_rng(3)
    policy = surefoot.SafeLUCB(
        dim=4, alpha=0.1, delta=0.01, noise=0.5, theta_bound=1.0, feature_bound=1.0, reward_range=(0.0, 1.0)
    )
    learner = 0
    for round_ in range(200):
        decision = policy.decide(np.eye(4), baseline=round_ % 4)
        learner += decision.source == "learner" and decision.action != round_ % 4
        policy.observe(decision, click(rng, 0.02))
    assert learner == 0


@pytest.mark.parametrize("bounds", [(0.1, 0.3), (0.7, 0.8), (-1.1, 2.3), (0.0, 3.3)])
def test_a_reward_at_its_bound_is_within(bounds: tuple[float, float]) -> None:
    """Whatever rounding does to the unit of such bounds."""
    policy = clicks(2, reward_bounds=bounds, theta_bound=9.0, reward_range=(max(0.0, bounds[0]), bounds[1]))
    for reward in (*bounds, *bounds):
        policy.observe(policy.decide(np.eye(2), baseline=0), reward)
    policy.decide(np.eye(2), baseline=0)
    assert policy.alarm is None


def test_a_reward_beyond_its_bounds_raises_the_alarm() -> None:
    """At once where the learner played, and with the next decision where the baseline did."""
    policy = clicks(3)
    policy.observe(policy.decide(np.eye(3), baseline=0), 1.5)
    decision = policy.decide(np.eye(3), baseline=0)
    assert policy.alarm is not None
    assert decision.certificate.guaranteed == -math.inf
    policy, rng = clicks(3, alpha=0.5), np.random.default_rng(1)
    decision = policy.decide(np.eye(3), baseline=0)
    while decision.source == "baseline":
        policy.observe(decision, click(rng, 0.2))
        decision = policy.decide(np.eye(3), baseline=0)
    policy.observe(decision, -0.1)
    assert policy.alarm is not None
    assert "reward_bounds=(0.0, 1.0)" in policy.alarm.text


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"reward_bounds": None}, "`noise` or `reward_bounds` must be given"),
        ({"reward_bounds": None, "noise": 0.5, "radius": "best"}, "`reward_bounds` must be given with radius='best'"),
        ({"reward_bounds": (1.0, 0.0)}, "`low < high` must hold in reward_bounds"),
        ({"reward_bounds": (0.0,)}, "`reward_bounds` must be"),
        ({"reward_range": (-0.5, 0.5)}, "`reward_range` must lie within reward_bounds"),
        ({"gate": "joint"}, "`gate='facts'` and `optimism='set'` must hold"),
        ({"misspecification": 0.1}, "`misspecification` must be 0 with radius='best'"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text.replace("(", r"\(").replace(")", r"\)")):
        clicks(3, **given)


def test_saving_changes_nothing() -> None:
    theta, saved, other = np.r_[0.05, 0.2, 0.1, np.linspace(0, 0.2, 5)], clicks(8, alpha=0.3), clicks(8, alpha=0.3)
    rng, luck = np.random.default_rng(6), np.random.default_rng(7)
    for _ in range(900):
        context = np.eye(5)[int(rng.integers(5))] * 0.5
        rows = np.array([np.r_[np.eye(3)[action] * 0.5, context] for action in range(3)])
        saved.state()
        ours, theirs = saved.decide(rows, baseline=0), other.decide(rows, baseline=0)
        assert (ours.action, ours.certificate.guaranteed) == (theirs.action, theirs.certificate.guaranteed)
        reward = click(luck, float(rows[ours.action] @ theta))
        saved.observe(ours, reward)
        other.observe(theirs, reward)


@pytest.mark.parametrize("told", [{"noise": 0.5, "reward_bounds": None}, {}], ids=["by noise", "by bounds"])
@pytest.mark.parametrize(
    "change", [{"source": "baseline", "action": 0}, {"action": 2}, {"features": 0.5 * np.eye(3)}], ids=str
)
def test_a_round_is_voided_as_it_was_decided(told: dict[str, Any], change: dict[str, Any]) -> None:
    """Whoever names another round would take that one out of the ledger."""
    policy, rng = clicks(3, alpha=0.4, reward_range=(0.0, 1.0), **told), np.random.default_rng(3)
    decision = policy.decide(np.eye(3), baseline=0)
    while decision.source == "baseline" or decision.action != 1:
        policy.observe(decision, click(rng, (0.2, 0.4, 0.1)[decision.action]))
        decision = policy.decide(np.eye(3), baseline=0)
    before = policy.state()
    given: dict[str, Any] = {"features": np.eye(3), "baseline": 0, "action": 1, "source": "learner", "played": 0}
    with pytest.raises(InputError):
        policy.void(decision, **{**given, **change})
    assert all(np.array_equal(before[name], value) for name, value in policy.state().items())
    policy.void(decision, **given)


def test_a_round_is_voided_over_the_baseline_that_it_had() -> None:
    policy = clicks(3, alpha=0.5)
    decision = policy.decide(np.eye(3), baseline=0)
    while decision.source == "baseline":
        policy.observe(decision, 0.0)
        decision = policy.decide(np.eye(3), baseline=0)
    rows = np.eye(3)
    rows[0] = [0.9, 0.0, 0.1]
    told: dict[str, Any] = {"baseline": 0, "action": decision.action, "source": "learner", "played": 0}
    with pytest.raises(InputError, match="no round was booked like this"):
        policy.void(decision, rows, **told)
    policy.void(decision, np.eye(3), **told)


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (635.0, 1253.0)])
def test_rows_that_were_never_played_are_proposed_however_high_rewards_are(bounds: tuple[float, float]) -> None:
    """With many columns theta's length is spread over them: a new row then promised less than today's pays."""
    rng, (low, high), columns = np.random.default_rng(0), bounds, 15
    phi = surefoot.Disjoint(actions=3, context_dim=columns, context_bound=1.0)
    # Every action pays 0.7 of the range: so long a theta is needed, and no longer one.
    mean = low + 0.7 * (high - low)
    policy = surefoot.SafeLUCB(
        dim=phi.dim,
        alpha=0.1,
        delta=0.001,
        noise=0.5 * (high - low),
        theta_bound=1.1 * mean * 3**0.5,
        feature_bound=phi.bound,
        reward_bounds=bounds,
    )
    proposed = []
    for _ in range(1_200):
        rows = phi(rng.random(columns) / columns**0.5)
        decision = policy.decide(rows, baseline=0)
        proposed.append(decision.certificate.proposal)
        policy.observe(decision, float(np.clip(mean + 0.1 * (high - low) * rng.normal(), low, high)))
    assert {1, 2} <= set(proposed)


def test_rare_rewards_on_rows_that_never_repeat_let_the_learner_in_early() -> None:
    """Proposals that look around more than they must keep the baseline twice as long here."""
    spec = Spec("SafeLUCB", alpha=0.2, reward_bounds=(0.0, 1.0))
    (found,) = simulate(rare_clicks(), [spec], runs=8, horizon=4_000)
    # The median: a run now and then waits for very long, and which one hangs on the last bits of the world's rows.
    assert np.median(found.measures["baseline_rounds"][:, -1]) < 1_400


def test_an_arm_with_a_bad_start_is_tried_again() -> None:
    """Under a width that stays, 9 of 40 such runs never left the baseline's arm."""
    spec = Spec(lambda _: clicks(2, delta=0.05), name="bounded", alpha=0.1)
    (outcome,) = simulate(arms((0.3, 0.36)), [spec], runs=12, horizon=12_000)
    earned, owed = (outcome.measures[name] for name in ("earned", "owed"))
    late = (earned[:, -1] - earned[:, -12]) / (owed[:, -1] - owed[:, -12])
    assert (late > 1.1).all()


@pytest.mark.parametrize(("rate", "horizon"), [(0.5, 6_000), pytest.param(0.1, 20_000, marks=pytest.mark.long)])
def test_an_arm_that_pays_a_fifth_more_is_found_in_every_run(rate: float, horizon: int) -> None:
    """The width by which it proposes grows with the rounds: one that does not leaves some runs with today's arm."""
    count, gain = locked(rate, 40, horizon)
    assert count == 0
    assert gain > 0.1


@pytest.mark.parametrize("seed", [14, 37, 79, 84])
def test_a_search_that_has_not_ended_is_no_contradiction(seed: int) -> None:
    """A few clicks in many dimensions: the least loss is where means are 0 and 1, and Newton's method slow there."""
    rng, theta = np.random.default_rng(seed), np.linspace(0.2, 1.0, 20)
    theta *= 0.06 / np.linalg.norm(theta)
    policy = surefoot.SafeLUCB(
        dim=20, alpha=0.2, delta=0.001, theta_bound=0.06, feature_bound=1.0, reward_bounds=(0.0, 1.0)
    )
    for _ in range(60):
        rows = np.abs(rng.standard_normal((20, 20)))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True) * (1.0 + 1e-12)
        means = rows @ theta
        decision = policy.decide(rows, baseline=int(np.argsort(-means)[9]))
        assert policy.alarm is None
        policy.observe(decision, float(rng.random() < means[decision.action]))
