"""The guard: the free share, the gate, the bank against a slow reference, late rewards, units, metrics, bad input."""

import copy
import heapq
import math
import pickle
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import surefoot
from surefoot import Guard, ceiling, floor
from surefoot.core.native import Bank as CoreBank
from surefoot.core.native import free_share
from surefoot.errors import AssumptionError, ConfigError, DecisionError, InputError, ProofError, StateError
from surefoot.policies.settlement import LATE, PATIENCE
from surefoot.simulation import simulate_guard
from tests.policies.guard_reference import RATES, Bank, Side, bisect, centre

SHAPES: list[dict[str, Any]] = [
    {"alpha": 0.1},
    {"alpha": 0.01, "reward_bounds": (0.5, 2.0)},
    {"alpha": 0.3, "baseline_ceiling": 0.4},
    {"metrics": {"cost": ceiling(0.0, 1.0, alpha=0.05)}},
    {"metrics": {"cost": ceiling(0.2, 4.0, alpha=0.3)}},
]


def new_guard(**given: Any) -> Guard:
    return Guard(**{"delta": 0.05, "seed": 3, **given})


def run(guard: Guard, rounds: int, seed: int = 0, learner: float = 0.5, baseline: float = 0.4) -> list[Any]:
    rng, decisions = np.random.default_rng(seed), []
    ((name, metric),) = guard.metrics.items()
    for _ in range(rounds):
        decision = guard.decide(baseline="old", proposal="new")
        mean = learner if decision.source == "learner" else baseline
        guard.observe(decision, {name: metric.low + (metric.high - metric.low) * float(rng.random() < mean)})
        decisions.append(decision)
    return decisions


def bank_of(guard: Guard) -> CoreBank:
    return guard.bank_records[0]


def expected_of(guard: Guard, round_: int) -> tuple[Side, Side]:
    """What an open round expects of the learner and of the baseline, mean and spread."""
    _, _, *expected = np.frombuffer(guard.settlement.find(round_)[0]).tolist()
    return (expected[0], expected[1]), (expected[2], expected[3])


def reference_of(guard: Guard) -> Bank:
    (metric,) = guard.metrics.values()
    most = metric.high if metric.baseline_ceiling is None else metric.baseline_ceiling
    sign = 1.0 if metric.kind == "floor" else -1.0
    return Bank(sign, metric.alpha, metric.low / metric.high, most / metric.high, guard.settings["delta"])


@pytest.mark.parametrize("shape", SHAPES)
def test_the_bank_is_that_of_the_slow_reference(shape: dict[str, Any]) -> None:
    guard, rng = new_guard(**shape), np.random.default_rng(1)
    reference = reference_of(guard)
    ((name, metric),) = guard.metrics.items()
    for number in range(700):
        share = guard.share
        assert share <= reference.largest_share() + 1e-9
        decision = guard.decide(baseline=1, proposal=2)
        assert decision.share == share
        expected = expected_of(guard, decision.round)
        reward = metric.low + (metric.high - metric.low) * rng.random() ** (0.5 if decision.source == "learner" else 2)
        if number % 50 == 49:
            guard.abandon(decision)
            reference.enter(share, *expected, decision.source == "learner", None)
        else:
            guard.observe(decision, {name: reward})
            reference.enter(share, *expected, decision.source == "learner", reward / metric.high)
        bank, bound = bank_of(guard), reference.bound()
        assert bank.wealth == pytest.approx(reference.wealth, rel=1e-9, abs=1e-9)
        assert bank.bound == pytest.approx(bound, rel=1e-6, abs=1e-6)
        assert bank.bound <= bound + 1e-9
        assert bank.carried == pytest.approx(reference.bank, rel=1e-6, abs=1e-6)
    assert guard.share > 0.0


def test_a_reference_without_its_delta_disagrees() -> None:
    guard = new_guard(alpha=0.1)
    reference = reference_of(guard)
    reference.delta = 1.0
    run(guard, 50)
    assert bank_of(guard).bound < reference.bound()


def test_a_share_alpha_is_free_from_the_first_round_and_no_more() -> None:
    assert new_guard(alpha=0.07).share == pytest.approx(0.07)
    assert new_guard(alpha=0.07).share <= 0.07
    assert new_guard(alpha=0.1, reward_bounds=(0.5, 1.0)).share == pytest.approx(0.2)
    assert new_guard(metrics={"cost": ceiling(0, 1, alpha=0.2)}).share == 0.0


def test_a_better_learner_is_let_in_and_a_worthless_one_is_left_to_probes() -> None:
    good, bad = new_guard(alpha=0.1), new_guard(alpha=0.1)
    run(good, 4000, learner=0.6, baseline=0.3)
    assert good.share > 0.9
    run(bad, 4000, learner=0.0, baseline=0.5)
    assert 0.001 < bad.share < 0.02


def test_a_learner_that_breaks_is_out_soon_and_one_that_has_learned_is_let_in() -> None:
    guard = new_guard(alpha=0.1)
    run(guard, 5000, learner=0.6, baseline=0.3)
    run(guard, 800, learner=0.0, baseline=0.3)
    assert guard.share < 0.15
    late = new_guard(alpha=0.1)
    run(late, 3000, learner=0.1, baseline=0.3)
    assert late.share < 0.1
    run(late, 5000, learner=0.6, baseline=0.3)
    assert late.share > 0.9


@pytest.mark.parametrize("goal", ["earn", "save"])
def test_the_budget_is_spent_on_something_worse_only_to_save(goal: str) -> None:
    guard = new_guard(alpha=0.1, goal=goal)
    shares = [decision.share for decision in run(guard, 4000, learner=0.3, baseline=0.9)]
    slack = np.cumsum([share * (0.3 - 0.9) + 0.1 * 0.9 for share in shares])
    assert (slack >= 0.0).all()
    assert (slack[-1] < 60.0, slack[-1] > 300.0) == (goal == "save", goal == "earn")


def largest_affordable(unlucky: float, free: float, bank: float) -> float:
    return bisect(lambda share: unlucky * (share - free) / (1.0 - share) <= bank, 0.0, 1.0 - 1e-15)


def test_the_share_is_what_the_mathematics_say() -> None:
    """The bank lasts for seven unlucky rewards of the baseline; a learner below the floor keeps 1/z^2.

    Below it of late, and by the larger z of late and since its rewards changed, which halfway they do.
    """
    for shape in SHAPES:
        guard, rng = new_guard(**shape), np.random.default_rng(6)
        ((name, metric),) = guard.metrics.items()
        reference, low = reference_of(guard), metric.low / metric.high
        for number in range(1200):
            bank = bank_of(guard)
            mean, spread = bank.baseline.mean, bank.baseline.spread
            unlucky = 7.0 * (1.0 - low) * min(1.0, max(0.01, spread / ((mean - low) * (1.0 - mean))))
            reference.bank = 0.0
            free, reference.bank = reference.largest_share(), max(0.0, bank.carried)
            share = largest_affordable(unlucky, free, reference.bank)
            sides, floor = (bank.learner, bank.baseline), 1.0 - reference.sign * metric.alpha
            most = max(one.spread for one in sides)
            z = (
                reference.sign
                * (floor * mean - bank.learner.mean)
                / math.sqrt(most * sum(1.0 / one.count for one in sides))
            )
            if z > 0:
                gap = reference.sign * (floor * bank.baseline.overall - bank.learner.overall)
                share /= max(1.0, z, gap / math.sqrt(most * sum(1.0 / one.rewards for one in sides))) ** 2
            share = min(share, reference.largest_share(), 0.98)
            assert guard.share == pytest.approx(share, rel=1e-9, abs=1e-12)
            decision = guard.decide(baseline=1, proposal=2)
            quality = (0.5 + 0.4 * math.sin(number / 150)) * (number > 600) if decision.source == "learner" else 0.6
            guard.observe(decision, {name: metric.low + (metric.high - metric.low) * float(rng.random() < quality)})


def test_an_overall_mean_begins_again_where_rewards_have_changed() -> None:
    guard = new_guard(alpha=0.1, ramp="gate", reserve=1e4)
    rng, recent, overall, spread, count, rewards, changes = np.random.default_rng(8), 0.5, 0.5, 0.25, 1, 1, 0
    for number in range(12_000):
        side, decision = bank_of(guard).learner, guard.decide(baseline=1, proposal=2)
        assert (side.mean, side.overall) == pytest.approx((recent, overall))
        assert side.rewards == rewards
        reward = float(rng.random() < (0.4 if number < 6000 else 0.5))
        if decision.source == "learner":
            expected = min(max(side.mean, 0.0), 1.0)
            count, rewards = min(count + 1, 300), min(rewards + 1, 10_000)
            recent, overall = recent + (reward - recent) / count, overall + (reward - overall) / rewards
            spread += ((reward - expected) ** 2 - spread) / count
            if abs(recent - overall) > 3.0 * math.sqrt(spread / count):
                overall, rewards, changes = recent, count, changes + (number > 2000)
        guard.observe(decision, reward)
    assert changes == 1


def test_a_learner_below_the_floor_is_let_in_less_and_less_and_what_it_has_earned_is_kept() -> None:
    """Under "earn"; under "save" both may spend the whole budget."""
    worlds: dict[str, Callable[[int], tuple[float, float]]] = {
        "below": lambda t: (0.24, 0.3),
        "broken": lambda t: (0.4 if t < 10_000 else 0.24, 0.3),
    }
    shares, earned = dict[tuple[str, str], Any](), dict[tuple[str, str], float]()
    for name, means in worlds.items():
        for goal in ("earn", "save"):
            guard = Guard(alpha=0.1, delta=0.05, goal=goal)
            found = simulate_guard(guard, lambda t, share, rng: means(t), rounds=40_000, runs=4, seed=5)  # noqa: B023
            shares[name, goal] = found.shares[-5000:].mean()
            earned[name, goal] = float(found.earned.sum() / found.owed.sum())
    assert max(shares[name, "earn"] for name in worlds) < 0.2 < 0.4 < min(shares[name, "save"] for name in worlds)
    assert earned["below", "earn"] > 0.96
    assert earned["broken", "earn"] > 1.02 > earned["broken", "save"]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_factor_has_a_mean_of_at_most_what_it_claims(shape: dict[str, Any]) -> None:
    """E[F] <= exp(rate d) and F >= 0, whatever both rewards are, from what was fixed before the coin alone."""
    reference, rng = reference_of(new_guard(**shape)), np.random.default_rng(9)
    low = reference.low
    for _ in range(400):
        share, rate = float(rng.choice([1e-4, 0.1, 0.5, 0.98, 1 - 1e-6])), float(rng.choice(RATES))
        learner, baseline = ((low + (1 - low) * rng.random(), rng.random() ** 3 * (1 - low) ** 2) for _ in range(2))
        on_baseline = rate * (reference.alpha - reference.sign * share) / (1 - share)
        for a, b in low + (1 - low) * np.concatenate([rng.random((4, 2)), [[0, 0], [0, 1], [1, 0], [1, 1]]]):
            told = rate, share, learner, baseline
            factors = reference.factor(*told, True, a), reference.factor(*told, False, b)
            slack = reference.sign * share * a + (reference.alpha - reference.sign * share) * b
            mean = share * factors[0] + (1 - share) * factors[1]
            assert mean <= math.exp(rate * slack) * (1 + 1e-9)
            assert min(factors) > 0.0
            for side, coefficient, expected in ((a, reference.sign * rate, learner), (b, on_baseline, baseline)):
                assert 1 + coefficient * (side - centre(coefficient, low, expected)) >= 0.05 - 1e-6


def test_every_proof_is_accepted_and_a_forged_one_is_not() -> None:
    guard = new_guard(alpha=0.1)
    for decision in run(guard, 800, learner=0.8):
        surefoot.check(decision.certificate.proof)
    (bank,) = decision.certificate.proof.banks
    assert bank.cost > 0.0
    assert decision.certificate.margin == pytest.approx(bank.available - bank.cost)
    forged: list[dict[str, Any]] = [
        {"bound": bank.bound + 1e-6, "carried": 0.0},
        {"carried": bank.cost * 0.5, "bound": -1.0},
        {"share": 0.999, "carried": 0.5, "bound": -1.0},
        {"delta": 2.0},
        {"delta": 1e-9, "carried": 0.0},
        {"alpha": 0.0},
        {"most": 2.0},
        {"bound": -3e9, "carried": "1"},
        {"owed": -1.0},
        {"log_wealth": bank.log_wealth[:-1]},
        {"bound": math.inf},
        {"coins": math.nan},
    ]
    with pytest.raises(ProofError, match="has none"):
        surefoot.check(surefoot.safety.GuardProof(()))
    for change in forged:
        told = {name: getattr(bank, name) for name in bank.__struct_fields__} | change
        with pytest.raises(ProofError):
            surefoot.check(surefoot.safety.GuardProof((surefoot.safety.BankProof(**told),)))


@pytest.mark.parametrize("size", range(60, 1000, 36))
def test_numbers_so_large_that_rounding_would_prove_anything_prove_nothing(size: int) -> None:
    """The wealths prove nothing of this bound: what is left after it cancels is the wealth that they began with."""
    bound = 2.0**size
    (bank,) = new_guard(alpha=0.1).decide(baseline=0, proposal=1).certificate.proof.banks
    claims: dict[str, Any] = {"share": 0.9, "bound": bound, "owed": bound * (1 - 2.0**-52), "carried": 0.0}
    wealth = (RATES[0] * bound, *(-1e300 for _ in RATES[1:]))
    told = {name: getattr(bank, name) for name in bank.__struct_fields__} | claims | {"log_wealth": wealth}
    with pytest.raises(ProofError, match="must prove a slack"):
        surefoot.check(surefoot.safety.GuardProof((surefoot.safety.BankProof(**told),)))


def test_a_pending_round_counts_at_its_worst_until_its_reward_comes() -> None:
    guard = new_guard(alpha=0.1)
    run(guard, 2000, learner=0.9)
    before, decisions = guard.banks["reward"], [guard.decide(baseline="old", proposal="new") for _ in range(20)]
    assert guard.banks["reward"] == pytest.approx(before - sum(d.share - 0.1 for d in decisions), rel=1e-6)
    for decision in reversed(decisions):
        guard.observe(decision, 1.0 if decision.source == "learner" else 0.0)
    assert guard.banks["reward"] > before
    assert guard.pending == ()


def test_rewards_in_another_order_give_the_same_bits_while_few_of_them_wait() -> None:
    one, other = new_guard(alpha=0.1), new_guard(alpha=0.1)
    rng = np.random.default_rng(4)
    for _ in range(50):
        ours = [one.decide(baseline=0, proposal=1) for _ in range(PATIENCE)]
        theirs = [other.decide(baseline=0, proposal=1) for _ in range(PATIENCE)]
        rewards = rng.random(PATIENCE)
        for decision, reward in zip(ours, rewards, strict=True):
            one.observe(decision, reward)
        for i in rng.permutation(PATIENCE):
            other.observe(theirs[i], rewards[i])
    assert (one.state()["banks"] == other.state()["banks"]).all()


class InAnyOrder:
    """A guard whose rewards come when they like, and which of its rounds count by now.

    Those with something at stake do up to the `end`, without a reward at their worst; income before it, once it came.
    """

    def __init__(self, shape: dict[str, Any], seed: int) -> None:
        self.guard, self.rng = new_guard(**shape, seed=seed), np.random.default_rng(seed)
        ((self.name, self.metric),) = self.guard.metrics.items()
        self.rounds: dict[int, tuple[float, Side, Side, bool]] = {}
        self.unpaid: dict[int, float] = {}
        self.rewards: dict[int, float] = {}  # that have come, as shares of the highest
        self.staked: list[int] = []
        self.end = 1

    def decide(self, **how: Any) -> int:
        decision = self.guard.decide(**{"baseline": 1, "proposal": 2, **how})
        is_learner, round_ = decision.source == "learner", decision.round
        self.rounds[round_] = decision.share, *expected_of(self.guard, round_), is_learner
        self.staked += [round_] if decision.share > 0.0 else []
        chance = self.rng.random() ** (0.5 if is_learner else 2)
        self.unpaid[round_] = self.metric.low + (self.metric.high - self.metric.low) * chance
        self._move()
        return int(round_)

    def pay(self, round_: int) -> None:
        reward = self.unpaid.pop(round_)
        self.guard.observe(round_, {self.name: reward})
        self.rewards[round_] = reward / self.metric.high
        self._move()

    def _move(self) -> None:
        while waiting := [round_ for round_ in self.staked if round_ >= self.end]:
            if waiting[0] not in self.rewards and sum(round_ > waiting[0] for round_ in self.rewards) < PATIENCE:
                self.end = waiting[0]
                return
            self.end = waiting[0] + 1
        self.end = len(self.rounds) + 1

    def reference(self, *, whole: bool = False) -> Bank:
        """The bank by the definition; `whole` takes what is still to come as well."""
        bank = reference_of(self.guard)
        for round_, booked in self.rounds.items():
            to_come = self.unpaid[round_] / self.metric.high if whole and round_ in self.unpaid else None
            reward = self.rewards.get(round_, to_come)
            if round_ < self.end and (reward is not None or round_ in self.staked):
                bank.enter(*booked, reward)
        return bank


@pytest.mark.parametrize("shape", SHAPES)
def test_a_late_round_counts_at_its_worst_until_its_reward_comes(shape: dict[str, Any]) -> None:
    world, due = InAnyOrder(shape, 5), list[tuple[float, int]]()
    for number in range(240):
        round_ = world.decide()
        if number % 40 != 7:
            heapq.heappush(due, (round_ + world.rng.exponential(30.0), round_))
        while due and due[0][0] <= round_:
            world.pay(heapq.heappop(due)[1])
        if number % 80 == 79:
            if number % 160 == 79:
                world.guard = Guard.from_state(world.guard.state())
            assert world.guard.settlement.late == late_rounds_of(world.guard)
            bank, reference = bank_of(world.guard), world.reference()
            assert bank.wealth == pytest.approx(reference.wealth, rel=1e-9, abs=1e-9)
            bound = reference.bound()
            assert bank.bound == pytest.approx(bound, rel=1e-6, abs=1e-6)
            assert bank.bound <= bound + 1e-9
            owed = sum(reference.worst(booked[0]) for one, booked in world.rounds.items() if one >= world.end)
            assert bank.owed == pytest.approx(owed, rel=1e-6, abs=1e-9)
            assert bank.carried >= bank.bound - bank.owed - 1e-9
    assert sum(round_ < world.end for round_ in world.unpaid if round_ in world.staked) > 3
    assert world.guard.settlement.late == late_rounds_of(world.guard) > 3
    for _, round_ in sorted(due):
        world.pay(round_)
    assert world.guard.settlement.late == late_rounds_of(world.guard)
    assert bank_of(world.guard).wealth == pytest.approx(world.reference().wealth, rel=1e-9, abs=1e-9)


def late_rounds_of(guard: Guard) -> int:
    """One by one."""
    settlement = guard.settlement
    return sum(settlement.awaits(round_) and settlement.find(round_)[2] == LATE for round_ in settlement.open_rounds)


def test_income_alone_lets_a_round_go_late_where_nothing_is_at_stake_any_more() -> None:
    """Of a bank that is spent no round has a share, so that no reward of such a one could overtake what is missing."""
    guard = new_guard(metrics={"cost": ceiling(0, 1, alpha=0.4, reserve=1.0)}, ramp="gate")
    staked = 0
    while guard.decide(baseline=0, proposal=1).share > 0.0:
        staked += 1
    assert 0 < staked < PATIENCE
    for _ in range(60):
        guard.observe(guard.decide(baseline=0, proposal=1, hold=True), 0.5)
    assert guard.decide(baseline=0, proposal=1).share > 0.0


def test_a_reference_that_leaves_late_rounds_out_disagrees() -> None:
    world = InAnyOrder({"alpha": 0.1}, 5)
    for number in range(200):
        round_ = world.decide()
        if number % 40 != 7:
            world.pay(round_)
    wealth = bank_of(world.guard).wealth
    assert wealth == pytest.approx(world.reference().wealth, rel=1e-9)
    world.staked = [round_ for round_ in world.staked if round_ in world.rewards]
    assert wealth != pytest.approx(world.reference().wealth, rel=0.01)


@pytest.mark.parametrize("has_entered", [False, True])
def test_a_round_that_a_signal_cuts_short_as_it_goes_late_counts_once_or_not_at_all(
    has_entered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, plain, cuts = InAnyOrder({"alpha": 0.1, "reserve": 5.0}, 4), Guard._learn_round, list[None]()

    def learn(guard: Guard, entry: Any, reward: Any) -> None:
        is_cut = math.isnan(reward[0]) and bool(cuts)
        if not is_cut or has_entered:
            plain(guard, entry, reward)
        if is_cut:
            cuts.pop()
            raise KeyboardInterrupt

    monkeypatch.setattr(Guard, "_learn_round", learn)
    lost = 0.0
    for batch in range(16):
        first, *others = [world.decide() for _ in range(12)]
        cuts += [None] * (batch % 3 == 0)
        is_cut = bool(cuts)
        for round_ in (*others, first):
            world.rewards[round_] = world.unpaid[round_] / world.metric.high
            with suppress(KeyboardInterrupt):
                world.pay(round_)
        assert not cuts
        if is_cut and has_entered:
            del world.rewards[first]  # it has come, and teaches nothing
        elif is_cut:
            booked = world.rounds.pop(first)
            world.staked.remove(first)
            lost += reference_of(world.guard).worst(booked[0])
    bank, reference = bank_of(world.guard), bank_in_order(world)
    assert bank.wealth == pytest.approx(reference.wealth, rel=1e-9, abs=1e-9)
    assert bank.owed == pytest.approx(lost, rel=1e-6, abs=1e-9)
    assert world.guard.pending == ()


def bank_in_order(world: InAnyOrder) -> Bank:
    """Of all of its rounds, those without a reward at their worst."""
    bank = reference_of(world.guard)
    for round_, booked in world.rounds.items():
        bank.enter(*booked, world.rewards.get(round_))
    return bank


def test_a_late_reward_moves_the_lift_as_one_that_came_in_time() -> None:
    one, other = new_guard(alpha=0.1, cap=0.1), new_guard(alpha=0.1, cap=0.1)  # a share that nothing moves
    rng, first = np.random.default_rng(2), list[tuple[Any, float]]()
    for number in range(200):
        reward = float(rng.random() < 0.5)
        one.observe(one.decide(baseline=0, proposal=1), reward)
        decision = other.decide(baseline=0, proposal=1)
        if number % 4 == 3:
            first.append((decision, reward))
        else:
            other.observe(decision, reward)
    assert other.lift_intervals["reward"][0] < one.lift_intervals["reward"][0] - 0.05
    for decision, reward in first:
        other.observe(decision, reward)
    assert other.lift_intervals["reward"] == pytest.approx(one.lift_intervals["reward"], abs=0.04)
    assert other.booked.means(is_learner=False) == pytest.approx(one.booked.means(is_learner=False))


def test_one_reward_that_never_comes_does_not_keep_the_learner_out() -> None:
    guard, rng = new_guard(alpha=0.1), np.random.default_rng(1)
    for number in range(3000):
        decision = guard.decide(baseline="old", proposal="new")
        if number % 100 != 50:
            guard.observe(decision, float(rng.random() < (0.6 if decision.source == "learner" else 0.3)))
    assert guard.share > 0.8
    assert len(guard.pending) == 30
    before = guard.banks["reward"]
    guard.observe(guard.pending[0], 1.0)
    assert guard.banks["reward"] >= before


@pytest.mark.parametrize("default", [None, 0.9])
def test_a_late_round_may_be_abandoned_or_its_window_close(default: float | None) -> None:
    guard = new_guard(alpha=0.1, settle_after=100, default_reward=default)
    decisions = [guard.decide(baseline=0, proposal=1) for _ in range(60)]
    given_up, forgotten = [decision for decision in decisions if decision.source == "learner"][:2]
    for decision in decisions:
        if decision not in (given_up, forgotten):
            guard.observe(decision, 0.5)
    assert guard.pending == (given_up.round, forgotten.round)
    assert guard.settlement.late == 2
    before = bank_of(guard).wealth
    guard.abandon(given_up)
    assert bank_of(guard).wealth == pytest.approx(before)
    assert guard.settlement.late == late_rounds_of(guard) == 1
    with pytest.raises(DecisionError, match="settled"):
        guard.observe(given_up, 1.0)
    for _ in range(100):
        guard.decide(baseline=0, proposal=1, hold=True)
    assert forgotten.round not in guard.pending
    assert guard.settlement.late == late_rounds_of(guard)
    assert guard.settlement.defaults == 1
    if default is None:
        assert bank_of(guard).wealth == pytest.approx(before)
    else:
        assert bank_of(guard).wealth[3] > before[3] + 0.01


def test_an_abandoned_round_is_booked_at_its_worst_and_in_its_turn() -> None:
    guard = new_guard(alpha=0.1, reward_bounds=(0, 1))
    run(guard, 1000, learner=0.9)
    bound = bank_of(guard).bound
    first, second = (guard.decide(baseline=0, proposal=1) for _ in range(2))
    guard.abandon(second)
    guard.observe(first, 1.0)
    assert guard.pending == ()
    assert bank_of(guard).bound < bound + 1.0


def test_a_reward_that_does_not_come_in_time_is_the_default_or_the_worst() -> None:
    kept, lost = (new_guard(alpha=0.1, settle_after=2, default_reward=d) for d in (1.0, None))
    for guard in (kept, lost):
        for _ in range(300):
            guard.decide(baseline=0, proposal=1)
        assert len(guard.pending) == 2
    assert bank_of(kept).bound > 0.0 > bank_of(lost).bound


def test_the_coin_is_fair_recorded_and_the_same_for_the_same_seed() -> None:
    draws = [d.draw for d in run(new_guard(alpha=0.5), 4000)]
    assert all(0.0 <= draw < 1.0 for draw in draws)
    assert abs(float(np.mean(draws)) - 0.5) < 4 * math.sqrt(1 / 12 / 4000)
    assert draws == [d.draw for d in run(new_guard(alpha=0.5), 4000)]
    assert draws[:9] != [d.draw for d in run(Guard(alpha=0.5, delta=0.05), 9)]


def test_probability_is_the_propensity_of_what_was_played() -> None:
    for decision in run(new_guard(alpha=0.4), 200):
        is_learner = decision.source == "learner"
        assert is_learner == (decision.draw < decision.share)
        assert decision.probability == (decision.share if is_learner else 1.0 - decision.share)
        assert decision.action == ("new" if is_learner else "old")


def test_equal_actions_are_played_as_the_baseline_and_alpha_of_their_reward_is_income() -> None:
    guard, reference = new_guard(alpha=0.9), reference_of(new_guard(alpha=0.9))
    for action in ("same", 7, {"a": [1, 2]}, np.array([1.0, 2.0])):
        decision = guard.decide(baseline=action, proposal=copy.deepcopy(action))
        assert (decision.source, decision.probability, decision.share) == ("baseline", 1.0, 0.0)
        guard.observe(decision, 0.7)
        reference.enter(0.0, (0.5, 0.25), (0.5, 0.25), False, 0.7)
    assert bank_of(guard).wealth == pytest.approx(reference.wealth)
    assert bank_of(guard).wealth[0] == pytest.approx(4 * math.log(1 + 4.0 * 0.9 * 0.7))
    assert bank_of(guard).baseline.count == 1.0  # of rounds in which the two differ nothing was learned


def income(guard: Guard, *, is_held: bool = False) -> int:
    """A round with nothing at stake."""
    return guard.decide(baseline=0, proposal=int(is_held), hold=is_held).round


@pytest.mark.parametrize("is_held", [False, True])
def test_income_waits_for_what_is_at_stake_before_it_and_nothing_waits_for_it(is_held: bool) -> None:
    guard = new_guard(alpha=0.1)
    first, second = (income(guard, is_held=is_held) for _ in range(2))
    staked = guard.decide(baseline=0, proposal=1).round
    third = income(guard, is_held=is_held)
    later = guard.decide(baseline=0, proposal=1).round
    wealth = [bank_of(guard).wealth[0]]

    def observe(round_: int) -> bool:
        """Whether the bank has changed."""
        guard.observe(round_, 0.8)
        wealth.append(bank_of(guard).wealth[0])
        return wealth[-1] != wealth[-2]

    assert observe(second)  # nothing is at stake before it
    assert not observe(third)
    assert (guard.waiting, guard.held_up_by) == ((third,), staked)
    assert observe(staked)  # the third has its turn as well, and what is first is not waited for
    assert guard.waiting == ()
    assert observe(first)  # late, and once
    assert observe(later)
    assert guard.pending == ()
    with pytest.raises(DecisionError, match="settled"):
        guard.observe(first, 0.8)
    assert bank_of(guard).entered == 5.0


def test_income_can_only_raise_the_bound_and_is_never_charged() -> None:
    for shape in SHAPES:
        guard, rng = new_guard(**shape), np.random.default_rng(3)
        ((name, metric),) = guard.metrics.items()
        for number in range(300):
            before = bank_of(guard)
            round_ = income(guard, is_held=bool(number % 2))
            assert bank_of(guard).carried == before.carried
            if number % 7 == 0:
                guard.abandon(round_)
            else:
                guard.observe(round_, {name: metric.low + (metric.high - metric.low) * float(rng.random() < 0.3)})
            assert (np.array(bank_of(guard).wealth) >= np.array(before.wealth) - 1e-12).all()
        assert bank_of(guard).bound > bank_of(new_guard(**shape)).bound


def test_an_agreeing_visit_pays_into_the_open_round_of_its_unit_and_nowhere_else() -> None:
    guard = new_guard(alpha=0.5, unit_window=3)
    stray = guard.decide(baseline="old", proposal="old", unit="ann")
    guard.observe(stray, 1.0)
    assert (bank_of(guard).entered, guard.pending) == (0.0, ())
    opened = guard.decide(baseline="old", proposal="new", unit="ann")
    assert guard.decide(baseline="old", proposal="old", unit="ann").round == opened.round
    unitless = guard.decide(baseline="old", proposal="old")
    guard.observe(unitless, 1.0)
    assert guard.waiting == (unitless.round,)


def test_income_that_waits_is_saved_and_settles_by_its_window() -> None:
    guard = new_guard(alpha=0.1, settle_after=3, default_reward=0.5)
    staked, paid, unpaid = guard.decide(baseline=0, proposal=1), income(guard), income(guard)
    guard.observe(paid, 0.9)
    copied = Guard.from_state(guard.state())
    for one in (guard, copied):
        assert one.waiting == (paid,)
        for _ in range(3):
            one.decide(baseline=0, proposal=1)
        assert one.pending == (4, 5, 6)
    assert (copied.state()["banks"] == guard.state()["banks"]).all()
    assert bank_of(guard).entered == 3.0
    del staked, unpaid


def test_holding_plays_the_baseline_and_still_earns_slack() -> None:
    guard = new_guard(alpha=0.1)
    for _ in range(400):
        decision = guard.decide(baseline=0, proposal=1, hold=True)
        assert decision.source == "baseline"
        assert decision.certificate.is_held
        guard.observe(decision, 1.0)
    assert guard.banks["reward"] > 10.0


def test_several_metrics_the_least_share_wins_and_the_certificate_says_whose_it_is() -> None:
    metrics = {"quality": floor(0, 1, alpha=0.02), "cost": ceiling(0, 1, alpha=0.05)}
    guard = new_guard(metrics=metrics)
    assert guard.share == 0.0
    first = guard.decide(baseline="big", proposal="small")
    assert first.certificate.binds == "cost"
    guard.observe(first, {"quality": 0.9, "cost": 0.8})
    for _ in range(4000):
        decision = guard.decide(baseline="big", proposal="small")
        is_small = decision.action == "small"
        guard.observe(decision, {"quality": 0.9, "cost": 0.1 if is_small else 0.8})
        surefoot.check(decision.certificate.proof)
    assert guard.share > 0.5


def test_a_missing_metric_counts_at_its_worst_unless_it_has_a_default() -> None:
    def bound(default: float | None, rewards: dict[str, float]) -> float:
        guard = new_guard(metrics={"a": floor(0, 1, alpha=0.3, default=default), "b": floor(0, 1, alpha=0.3)})
        for _ in range(300):
            guard.observe(guard.decide(baseline=0, proposal=1), rewards)
        return bank_of(guard).bound

    assert bound(None, {"b": 1.0}) < bound(0.5, {"b": 1.0}) < bound(None, {"a": 1.0, "b": 1.0})


@pytest.mark.parametrize("name", ["cap", "schedule", "free", "gate", "holdout"])
def test_the_ramp_is_the_users_to_choose(name: str) -> None:
    ramps: dict[str, dict[str, Any]] = {
        "cap": {"cap": 0.25},
        "schedule": {"schedule": (0.05, 0.25, 0.6)},
        "free": {"ramp": "free"},
        "gate": {"ramp": "gate"},
        "holdout": {"min_holdout": 0.3},
    }
    guard = new_guard(alpha=0.1, **ramps[name])
    shares = {decision.share for decision in run(guard, 3000, learner=0.9)}
    assert max(shares) == pytest.approx({"cap": 0.25, "schedule": 0.6, "free": 0.1, "gate": 0.98, "holdout": 0.7}[name])
    assert name != "schedule" or shares <= {0.0, 0.05, 0.25, 0.6}


def test_a_prediction_of_the_baseline_makes_the_bank_grow_faster_and_is_never_needed() -> None:
    def earned(is_told: bool) -> float:
        guard, rng = new_guard(alpha=0.1, ramp="auto"), np.random.default_rng(7)
        for _ in range(3000):
            level = float(rng.random())
            decision = guard.decide(baseline=0, proposal=1, prediction=0.9 * level if is_told else None)
            guard.observe(decision, 0.9 * level if decision.source == "baseline" else level)
        return guard.share

    assert earned(True) > earned(False) > 0.5


def test_played_needs_a_reserve_or_a_wait_and_then_keeps_the_floor_on_actions_played() -> None:
    assert new_guard(alpha=0.1, promise="played").share == 0.0
    assert new_guard(alpha=0.1, promise="played", reserve=10.0).share == pytest.approx((0.1 + 10 / 7) / (1 + 10 / 7))
    guard, earned, owed = new_guard(alpha=0.1, promise="played"), 0.0, 0.0
    for decision in run(guard, 6000, learner=0.5, baseline=0.4):
        earned, owed = earned + (0.5 if decision.source == "learner" else 0.4), owed + 0.4
        assert earned >= 0.9 * owed
        surefoot.check(decision.certificate.proof)
    assert guard.share > 0.5


def test_a_unit_keeps_its_side_and_its_rewards_are_added_up_and_cut() -> None:
    guard = new_guard(alpha=0.5, unit_window=3)
    first = guard.decide(baseline="old", proposal="new", unit="ann")
    again = guard.decide(baseline="older", proposal="newer", unit="ann")
    assert (first.round, first.source, first.draw) == (again.round, again.source, again.draw)
    assert again.action == ("newer" if first.source == "learner" else "older")
    for reward in (0.4, 0.4, 0.4):
        guard.observe(again, reward)
    assert list(guard.pending) == [1]
    for name in ("bob", "cat", "dan"):
        guard.decide(baseline="old", proposal="new", unit=name)
    assert list(guard.pending) == [2, 3, 4]
    other = new_guard(alpha=0.5)
    other.observe(other.decide(baseline="old", proposal="new"), 1.0)
    assert bank_of(guard).wealth == bank_of(other).wealth
    guard.abandon(2)
    assert list(guard.pending) == [3, 4]
    with pytest.raises(DecisionError, match="settled"):
        guard.observe(first, 1.0)


def test_state_and_pickle_continue_to_the_bit() -> None:
    settings: list[dict[str, Any]] = [{"alpha": 0.1}, {"alpha": 0.5, "unit_window": 7}, SHAPES[4]]
    for told in settings:
        guard = new_guard(**told)
        run(guard, 200)
        pending = [guard.decide(baseline=0, proposal=1, unit="u" if "unit_window" in told else None) for _ in range(2)]
        guard.decide(baseline=0, proposal=1)
        guard.observe(guard.rounds, guard_reward(guard))
        for copied in (pickle.loads(pickle.dumps(guard)), Guard.from_state(guard.state())):
            twin = copy.deepcopy(guard)
            assert copied.pending == twin.pending
            for one in (copied, twin):
                one.observe(pending[0].round, guard_reward(one))
                run(one, 30, seed=5)
            assert (copied.state()["banks"] == twin.state()["banks"]).all()
            assert copied.share == twin.share


def guard_reward(guard: Guard) -> dict[str, float]:
    return {name: metric.high for name, metric in guard.metrics.items()}


def test_recall_repeats_a_round_whatever_the_gate_says_today() -> None:
    guard, again = new_guard(alpha=0.1), new_guard(alpha=0.1)
    for decision in run(guard, 300, learner=0.9):
        told = {"share": decision.share, "draw": decision.draw, "source": decision.source}
        back = again.recall(baseline="old", proposal="new", **told)
        assert (back.round, back.action, back.probability) == (decision.round, decision.action, decision.probability)
    bad: list[dict[str, Any]] = [
        {"share": 0.1, "draw": 0.5, "source": "learner"},
        {"share": 0.1, "draw": -5.0, "source": "learner"},
        {"share": 0.1, "draw": math.nan, "source": "baseline"},
        {"share": 0.99, "draw": 0.5, "source": "learner"},
        {"share": 0.0, "draw": 0.5, "source": "baseline"},
    ]
    for told in bad:
        with pytest.raises(InputError, match="cannot have been played"):
            again.recall(baseline=0, proposal=1, **told)
    with pytest.raises(InputError, match="cannot have been played"):
        again.recall(baseline=1, proposal=1, share=0.1, draw=0.5, source="baseline")


@pytest.mark.parametrize(
    ("told", "what"),
    [
        ({}, "`alpha` must be given"),
        ({"alpha": 0.0}, "0 < alpha < 1"),
        ({"alpha": 0.1, "delta": 1.0}, "0 < delta < 1"),
        ({"alpha": 0.1, "reward_bounds": (1, 0)}, "low < high"),
        ({"alpha": 0.1, "reward_bounds": (-1, 1)}, "low >= 0"),
        ({"alpha": 0.1, "reward_bounds": 3}, "must be \\(low, high\\)"),
        ({"alpha": 0.1, "baseline_ceiling": 2.0}, "baseline_ceiling"),
        ({"alpha": 0.1, "promise": "maybe"}, "`promise` must be one of"),
        ({"alpha": 0.1, "ramp": "fast"}, "`ramp` must be one of"),
        ({"alpha": 0.1, "goal": "spend"}, "`goal` must be one of"),
        ({"alpha": 0.1, "cap": 1.5}, "0 <= cap <= 1"),
        ({"alpha": 0.1, "min_holdout": 0.0}, "0 < min_holdout < 1"),
        ({"alpha": 0.1, "min_holdout": 1e-17}, "min_holdout >= 1e-06"),
        ({"alpha": 0.1, "delta": 5e-324}, "delta >= 1e-100"),
        ({"alpha": 0.1, "unit_window": 3, "reward_bounds": (0.5, 1)}, "`low` must be 0"),
        ({"metrics": {"cost": ceiling(0, 1, alpha=0.1)}, "unit_window": 3}, "a ceiling needs a reward"),
        ({"alpha": 0.1, "reserve": -1.0}, "reserve >= 0"),
        ({"alpha": 0.1, "reserve": 1e10, "reward_bounds": (0.0, 1e-300)}, "reserve / high"),
        ({"alpha": 0.1, "metrics": {"a": floor(0, 1, alpha=0.1)}}, "belong to each metric"),
        ({"metrics": {}}, "must map names"),
        ({"metrics": {"a": 3}}, "must be a `floor"),
        ({"metrics": {"a": {"kind": "roof", "low": 0, "high": 1, "alpha": 0.1}}}, "kind 'floor' or 'ceiling'"),
        ({"alpha": 0.1, "settle_after": 0}, "`settle_after` must be a whole number"),
        ({"alpha": 0.1, "unit_window": 1.5}, "`unit_window` must be a whole number"),
        ({"alpha": 0.1, "unit_window": 3, "settle_after": 5}, "settled by `unit_window`"),
    ],
)
def test_bad_settings_are_refused(told: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        new_guard(**told)


def test_bad_input_is_refused_and_changes_nothing() -> None:
    guard = new_guard(metrics={"a": floor(0, 1, alpha=0.1), "b": ceiling(0, 2, alpha=0.1)})
    decision, before = guard.decide(baseline=0, proposal=1), guard.state()
    bad: list[tuple[Any, type[Exception], str]] = [
        (0.5, InputError, "must name its metrics"),
        ({"c": 1.0}, InputError, "may name a, b"),
        ({"a": math.nan}, InputError, "must be finite"),
        ({"a": "x"}, InputError, "must be a number"),
        ({"a": 0.5, "b": 2.5}, AssumptionError, "0 <= b <= 2"),
        ({"a": -0.1}, AssumptionError, "0 <= a <= 1"),
    ]
    for reward, error, what in bad:
        with pytest.raises(error, match=what):
            guard.observe(decision, reward)
    with pytest.raises(DecisionError, match="made by policy"):
        new_guard(alpha=0.1).observe(decision, 1.0)
    with pytest.raises(InputError, match="needs a guard with `unit_window`"):
        guard.decide(baseline=0, proposal=1, unit="u")
    with pytest.raises(InputError, match="`unit` must be a text"):
        new_guard(alpha=0.1, unit_window=3).decide(baseline=0, proposal=1, unit="")
    with pytest.raises(InputError, match="`prediction` must be finite"):
        guard.decide(baseline=0, proposal=1, prediction={"a": math.inf})
    for prediction in (0.5, {"c": 0.5}):
        with pytest.raises(InputError, match="A prediction may name a, b"):
            guard.decide(baseline=0, proposal=1, prediction=prediction)
    with pytest.raises(InputError, match="must be comparable"):
        guard.decide(baseline=[np.zeros(2)], proposal=[np.zeros(2)])
    after = guard.state()
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[key], after[key]) for key in before if isinstance(before[key], np.ndarray))
    guard.observe(decision, {"a": 0.5, "b": 2.0})
    with pytest.raises(DecisionError, match="settled"):
        guard.observe(decision, {"a": 0.5})
    banks = guard.state()["banks"]
    for name, value in (("carried", math.nan), ("carried", math.inf), ("owed", -5.0)):
        damaged, bank = banks.copy(), guard.bank_records[0]
        setattr(bank, name, value)
        damaged[0] = bank.save()
        with pytest.raises(StateError):
            Guard.from_state({**guard.state(), "banks": damaged})
    with pytest.raises(StateError):
        Guard.from_state({**guard.state(), "banks": np.zeros((1, 2))})


def test_the_grid_of_the_reference_is_that_of_the_core() -> None:
    from surefoot.safety.bank_proof import RATE_GRID

    assert pytest.approx(RATE_GRID) == RATES


def test_a_number_that_is_none_never_opens_the_gate() -> None:
    numbers = new_guard(alpha=0.1).step_settings.metrics[0]
    assert free_share(numbers, math.nan) == free_share(numbers, 0.0) <= 0.1


def test_lost_rewards_cost_little_and_hiding_bad_news_gains_nothing() -> None:
    """A missing reward counts as the least that its own side can have been."""
    lossy = new_guard(alpha=0.1)
    rng = np.random.default_rng(2)
    for _ in range(6000):
        decision = lossy.decide(baseline=0, proposal=1)
        reward = float(rng.random() < (0.6 if decision.source == "learner" else 0.3))
        if rng.random() < 0.03:
            lossy.abandon(decision)
        else:
            lossy.observe(decision, reward)
    assert lossy.share > 0.9
    hiding, slack = new_guard(alpha=0.1), 0.0
    for _ in range(4000):
        decision = hiding.decide(baseline=0, proposal=1)
        is_learner = decision.source == "learner"
        reward = float(rng.random() < (0.2 if is_learner else 0.6))
        slack += decision.share * (0.2 - 0.6) + 0.1 * 0.6
        assert slack >= 0.0
        if reward == (0.0 if is_learner else 1.0):
            hiding.abandon(decision)
        else:
            hiding.observe(decision, reward)


def test_a_missing_metric_of_a_unit_stays_missing_and_a_held_visit_plays_the_baseline() -> None:
    metrics = {"a": floor(0, 1, alpha=0.4), "b": floor(0, 1, alpha=0.4)}
    guard = new_guard(metrics=metrics, unit_window=2)
    first = guard.decide(baseline="old", proposal="new", unit="ann")
    guard.observe(first, {"a": 0.5})
    guard.observe(first, {"a": 0.2, "b": 1.0})
    held = guard.decide(baseline="old", proposal="new", unit="ann", hold=True)
    assert (held.action, held.source, held.probability) == ("old", "baseline", 1.0)
    for name in ("bob", "cat"):
        surefoot.check(guard.decide(baseline="old", proposal="new", unit=name).certificate.proof)
    other = new_guard(metrics=metrics)
    other.observe(other.decide(baseline="old", proposal="new"), {"a": 0.7})
    for ours, theirs in zip(guard.bank_records, other.bank_records, strict=True):
        assert ours.wealth == pytest.approx(theirs.wealth)


def test_every_visit_of_a_unit_has_a_proof_that_holds() -> None:
    guard = new_guard(alpha=0.2, ramp="gate", unit_window=50)
    rng = np.random.default_rng(5)
    for _ in range(2000):
        decision = guard.decide(baseline="old", proposal="new", unit=f"u{rng.integers(1000)}")
        surefoot.check(decision.certificate.proof)
        guard.observe(decision, 0.1 * float(rng.random() < 0.5))


def test_an_alarm_leaves_the_baseline_alone() -> None:
    guard = new_guard(alpha=0.5)
    guard.report_breach("reward", "A reward came in that cannot be.")
    decision = guard.decide(baseline=0, proposal=1)
    assert (decision.source, decision.share) == ("baseline", 0.0)


def test_the_lift_interval_holds_at_all_times_and_closes_in_on_the_truth() -> None:
    missed, runs, rng = 0, 100, np.random.default_rng(8)
    for seed in range(runs):
        guard, total, count, is_missed = new_guard(alpha=0.3, seed=seed), 0.0, 0, False
        for number in range(300):
            learner = 0.7 if number < 150 else 0.2
            decision = guard.decide(baseline=0, proposal=1)
            total, count = total + learner - 0.4, count + (decision.share > 0.0)
            guard.observe(decision, float(rng.random() < (learner if decision.source == "learner" else 0.4)))
            low, high = guard.lift_intervals["reward"]
            is_missed |= not low <= total / count <= high
        missed += is_missed
    assert missed <= int(binom.ppf(1 - 1e-4, runs, 0.05))
    fresh = new_guard(alpha=0.1, reward_bounds=(0.5, 2.0))
    assert fresh.lift_intervals["reward"] == (-1.5, 1.5)
    run(fresh, 3000, learner=0.9, baseline=0.2)
    low, high = fresh.lift_intervals["reward"]
    assert 0.0 < low < 1.5 * 0.7 < high < 1.5


def test_a_lost_reward_makes_the_lift_interval_wider_on_both_sides() -> None:
    whole, lossy = new_guard(alpha=0.5), new_guard(alpha=0.5)
    for number in range(400):
        for guard in (whole, lossy):
            decision = guard.decide(baseline=0, proposal=1)
            if guard is lossy and number % 10 == 0:
                guard.abandon(decision)
            else:
                guard.observe(decision, 0.5)
    assert lossy.lift_intervals["reward"][0] < whole.lift_intervals["reward"][0]
    assert lossy.lift_intervals["reward"][1] > whole.lift_intervals["reward"][1]


def test_what_has_entered_is_a_prefix_of_what_is_at_stake_and_income_before_its_end() -> None:
    """Rewards in any order, some never: what has entered is never more than a product over a prefix of all rounds.

    A world that could have income enter past an open round would choose the end of the prefix by rewards it has seen.
    """
    rng = np.random.default_rng(12)
    for seed in range(3):
        world = InAnyOrder({"alpha": 0.1, "reserve": 5.0}, seed)
        for number in range(120):
            world.decide(proposal=1 + int(rng.random() < 0.6), hold=bool(rng.random() < 0.1))
            while world.unpaid and rng.random() < 0.5:
                world.pay(int(rng.choice(list(world.unpaid))))
            if number % 30 == 29:
                wealth, whole = bank_of(world.guard).wealth, world.reference(whole=True).wealth
                assert wealth == pytest.approx(world.reference().wealth, rel=1e-9, abs=1e-9)
                assert all(now <= then + 1e-9 for now, then in zip(wealth, whole, strict=True))
        assert len(world.staked) > 50
