"""The bill of a language model under a guard: the same prompts in many orders, each order a run of its own.

Every prompt was answered by every model, so what would have been scored and paid is known in each round. Gemini 2.5 Pro
answers today, a cheaper model is proposed, and the floor is a share of today's quality. Beside the guard, on the same
orders: a canary whose share is fixed; a rollout that goes up where the new model is shown to be good enough and back
where it is shown not to be; and ParetoBandit, a router that learns which of three models a prompt needs, with and
without the guard. And the guard alone where scores come late, or never. `python -m bench.bill --curves FILE` writes
what the picture in docs/bill.md is drawn from.
"""

import argparse
import itertools
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pareto_bandit import BanditRouter
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer

import surefoot
from surefoot.arrays import Matrix, Vector
from surefoot.safety.metric import Metric
from surefoot.service.demo_llm import SMALL, SMALLEST, TODAY, JudgedAnswers, judged_answers
from surefoot.simulation import simulate_guard

FLOORS = (0.9, 0.95, 0.98, 0.99)
GOALS = {0.95: 0.85, 0.98: 0.45}  # of the bill with the model between
DELTA, ORDERS, SEED = 0.05, 1_000, 38
ROUTED = 100  # orders of the router, which is plain Python
EVERY = 60  # prompts between two points of a curve
EXACT = 1e-12  # the deviation of a score that is known
WORSE = 0.75  # what a model that degrades keeps of its score, in the second half of an order
CANARY = 0.1
STAGES = (0.1, 0.25, 0.5, 0.98)  # shares of the rollout
FEW = 100  # rounds before a confidence sequence says anything
WATCHED = 500  # rounds after which the rollout's alarm starts anew, so that it sees what is new
DIRECTIONS = 25  # of the prompts, as many as ParetoBandit's own


@dataclass(frozen=True)
class Bill:
    """Of each order: shares of the bill that were saved and of the quality that was kept, coins averaged.

    `nearest` is the least distance to the floor at any time, in answers of the highest score; `curve` has how many
    prompts there were so far, and what was saved and kept, over all orders.
    """

    saved: Vector
    kept: Vector
    nearest: Vector
    curve: list[tuple[int, float, float]]

    @property
    def below(self) -> int:
        """Orders in which the quality was ever below the floor; a sum's rounding is no broken promise."""
        return int((self.nearest < -1e-9).sum())


class Orders:
    """All prompts in so many orders by lot, and what was paid and scored so far, coins averaged."""

    def __init__(self, answers: JudgedAnswers, floor: float, orders: int, *, degrades: bool = False) -> None:
        rng = np.random.default_rng(SEED)
        self._answers, self._floor, self._degrades = answers, floor, degrades
        self.rounds = len(answers.scores)
        self.today = answers.models.index(TODAY)
        self.prompts = np.stack([rng.permutation(self.rounds) for _ in range(orders)], axis=1)
        self._saved, self._paid, self._kept, self._owed = np.zeros((4, orders))
        self._nearest = np.full(orders, np.inf)
        self._curve = list[tuple[int, float, float]]()

    def scores(self, t: int, model: Any) -> Vector:
        """Of the answers of a model, or of one for each order, in this round; Mistral is what may degrade."""
        scores: Vector = self._answers.scores[self.prompts[t], model]
        is_worse = self._degrades and t >= self.rounds // 2
        return np.where(is_worse & (self._answers.models.index(SMALL) == np.asarray(model)), WORSE * scores, scores)

    def dollars(self, t: int, model: Any) -> Vector:
        """What those answers cost."""
        dollars: Vector = self._answers.dollars[self.prompts[t], model]
        return dollars

    def book(self, t: int, model: Any, share: Any) -> None:
        """The round is played: the model has a share of it, and today's the rest."""
        before = self.scores(t, self.today)
        self._saved += share * (self.dollars(t, self.today) - self.dollars(t, model))
        self._paid += self.dollars(t, self.today)
        self._kept += share * self.scores(t, model) + (1.0 - share) * before
        self._owed += before
        self._nearest = np.minimum(self._nearest, self._kept - self._floor * self._owed)
        if t % EVERY == EVERY - 1 or t == self.rounds - 1:
            saved, kept = self._shares()
            self._curve.append((t + 1, float(saved.mean()), float(kept.mean())))

    def _shares(self) -> tuple[Vector, Vector]:
        return self._saved / self._paid, self._kept / self._owed

    def bill(self) -> Bill:
        """After the last round."""
        return Bill(*self._shares(), self._nearest, self._curve)


def guarded(
    answers: JudgedAnswers,
    proposal: str,
    floor: float,
    *,
    orders: int = ORDERS,
    degrades: bool = False,
    ceiling: Metric | None = None,
) -> Bill:
    """A guard lets the proposal in; the ceiling is that of the dollars of an answer, cut at the highest it declares."""
    played, new = Orders(answers, floor, orders, degrades=degrades), answers.models.index(proposal)

    def world(t: int, share: Vector, _: np.random.Generator) -> tuple[Matrix, Matrix]:
        played.book(t, new, share)
        sides = [played.scores(t, model)[:, None] for model in (new, played.today)]
        if ceiling is not None:
            dollars = [np.minimum(played.dollars(t, model) / ceiling.high, 1.0) for model in (new, played.today)]
            sides = [np.column_stack(pair) for pair in zip(sides, dollars, strict=True)]
        return sides[0], sides[1]

    metrics = {"quality": surefoot.floor(0.0, 1.0, alpha=round(1.0 - floor, 9))}
    guard = surefoot.Guard(delta=DELTA, goal="save", metrics=metrics | ({"cost": ceiling} if ceiling else {}))
    simulate_guard(guard, world, rounds=played.rounds, runs=orders, seed=SEED, deviation=EXACT)
    return played.bill()


def fixed(
    answers: JudgedAnswers, proposal: str, floor: float, share: float, *, orders: int = ORDERS, degrades: bool = False
) -> Bill:
    """The proposal answers a fixed share of the prompts: a canary, or all of them."""
    played, new = Orders(answers, floor, orders, degrades=degrades), answers.models.index(proposal)
    for t in range(played.rounds):
        played.book(t, new, share)
    return played.bill()


class Sequences:
    """Asymptotic confidence sequences of a mean, one for each order; tightest after half of WATCHED rounds.

    (Waudby-Smith et al. 2021, Theorem 2.2)
    """

    def __init__(self, orders: int) -> None:
        self._rounds, self._sums, self._squares = np.zeros((3, orders))

    def add(self, x: Vector) -> None:
        """One more round."""
        self._rounds, self._sums, self._squares = self._rounds + 1.0, self._sums + x, self._squares + x * x

    def restart(self, which: NDArray[np.bool_]) -> None:
        """Forget all rounds of these orders."""
        for kept in (self._rounds, self._sums, self._squares):
            kept[which] = 0.0

    def interval(self) -> tuple[Vector, Vector]:
        """Lower and upper ends, at level 1 - DELTA at all times at once; the first rounds say nothing."""
        level = -2.0 * np.log(DELTA)
        rate, n = (level + np.log(level + 1.0)) / (WATCHED / 2), np.maximum(self._rounds, 1.0)
        mean, spread = self._sums / n, n * rate + 1.0
        deviation = np.sqrt(np.maximum(self._squares / n - mean**2, 0.0))
        radius = deviation * np.sqrt(2.0 * spread / (n * n * rate) * np.log(np.sqrt(spread) / DELTA))
        radius = np.where(self._rounds < FEW, np.inf, radius)
        return mean - radius, mean + radius


def reactive(
    answers: JudgedAnswers, proposal: str, floor: float, *, orders: int = ORDERS, degrades: bool = False
) -> Bill:
    """A rollout in stages, up where the new model is shown to keep the floor, and back for good where shown not to.

    Watched is its score less the floor times today's, by inverse propensities around running means: for the way up in
    the rounds of a stage, for the way back in the newest window of rounds.
    """
    played, new = Orders(answers, floor, orders, degrades=degrades), answers.models.index(proposal)
    rng, shares, last = np.random.default_rng([SEED, 1]), np.array([*STAGES, 0.0]), len(STAGES) - 1
    stage, means, counts = np.zeros(orders, dtype=np.int64), np.full((2, orders), 0.5), np.zeros((2, orders))
    upward, newest = Sequences(orders), Sequences(orders)
    for t in range(played.rounds):
        share = shares[stage]
        played.book(t, new, share)
        is_new, scores = rng.random(orders) < share, np.stack([played.scores(t, new), played.scores(t, played.today)])
        apart = (scores - means) / np.stack([np.maximum(share, STAGES[0]), 1.0 - share])
        x = means[0] - floor * means[1] + np.where(is_new, apart[0], -floor * apart[1])
        upward.add(x)
        newest.add(x)
        counts += (sides := np.stack([is_new, ~is_new]))
        means += sides * (scores - means) / np.maximum(counts, 1.0)
        goes_up = (upward.interval()[0] > 0.0) & (stage < last)
        goes_back = newest.interval()[1] < 0.0
        stage = np.where(goes_back, last + 1, stage + goes_up)
        upward.restart(goes_up)
        newest.restart(np.full(orders, (t + 1) % WATCHED == 0))
    return played.bill()


def routed(
    answers: JudgedAnswers, floor: float, *, orders: int = ROUTED, degrades: bool = False, is_guarded: bool = True
) -> Bill:
    """ParetoBandit chooses among the three models by the prompt, from a cold start; its choice is what is proposed."""
    directions = _directions(answers.prompts)
    played, prompts = Orders(answers, floor, orders, degrades=degrades), len(answers.prompts)
    quality = {"quality": surefoot.floor(0.0, 1.0, alpha=round(1.0 - floor, 9))}
    routers = [BanditRouter.create(priors="none", feature_service=_Directions(), bandit_seed=o) for o in range(orders)]
    guards = [surefoot.Guard(delta=DELTA, goal="save", metrics=quality, seed=o) for o in range(orders)]
    for t in range(prompts):
        contexts = directions[played.prompts[t]]
        routes = [router.route(x) for router, x in zip(routers, contexts, strict=True)]
        models = np.array([answers.models.index(model) for model, _ in routes])
        shares, final = np.ones(orders), models
        if is_guarded:
            decisions = [
                guard.decide(baseline=played.today, proposal=int(m)) for guard, m in zip(guards, models, strict=True)
            ]
            shares = np.array([decision.certificate.share for decision in decisions])
            final = np.array([decision.action for decision in decisions])
        played.book(t, models, shares)
        scores = played.scores(t, final)
        for o, (_, record) in enumerate(routes):
            if final[o] == models[o]:  # of what today's model answers in its place the router hears nothing
                routers[o].process_feedback(record.request_id, float(scores[o]))
            if is_guarded:
                guards[o].observe(decisions[o], {"quality": float(scores[o])})
    return played.bill()


def awaited(
    answers: JudgedAnswers,
    *,
    late: int,
    slow: float = 0.0,
    slow_late: float = math.inf,
    baseline_ceiling: float | None = None,
    floor: float = 0.95,
    orders: int = ROUTED,
) -> Bill:
    """Mistral Large under a guard whose scores come so many prompts late, and the slow ones later, or never."""
    played, new = Orders(answers, floor, orders), answers.models.index(SMALL)
    quality = surefoot.floor(0.0, 1.0, alpha=round(1.0 - floor, 9), baseline_ceiling=baseline_ceiling)
    guards = [surefoot.Guard(delta=DELTA, goal="save", metrics={"quality": quality}, seed=o) for o in range(orders)]
    rng, due = np.random.default_rng([SEED, 2]), defaultdict[float, list[tuple[int, Any, float]]](list)
    for t in range(played.rounds):
        decisions = [guard.decide(baseline=played.today, proposal=new) for guard in guards]
        played.book(t, new, np.array([decision.certificate.share for decision in decisions]))
        scores = played.scores(t, np.array([decision.action for decision in decisions]))
        moments = t + np.where(rng.random(orders) < slow, slow_late, late)
        for order, (moment, decision, score) in enumerate(zip(moments, decisions, scores, strict=True)):
            due[float(moment)].append((order, decision, float(score)))
        for order, decision, score in due.pop(float(t), ()):
            guards[order].observe(decision, {"quality": score})
    return played.bill()


def limit(answers: JudgedAnswers, late: int, *, floor: float = 0.95) -> float:
    """What a guard would save that knew the mean scores of both models, where scores come so many prompts late.

    A share beyond alpha is paid out of what is known to be spare, and counts at its worst until its score has come.
    """
    models = [answers.models.index(model) for model in (TODAY, SMALL)]
    today, new = answers.scores.mean(axis=0)[models]
    paid, price = answers.dollars.mean(axis=0)[models]
    alpha, spare, shares = 1.0 - floor, 0.0, list[float]()
    for t in range(len(answers.scores)):
        if t > late:
            spare += alpha * today - shares[t - late - 1] * (today - new)
        owed = sum(share - alpha for share in shares[max(0, t - late) :])
        shares.append(min(0.98, alpha + max(0.0, spare - owed)))
    return float(np.mean(shares)) * (1.0 - float(price / paid))


class _Directions:
    """What a router asks for features: here prompts come as vectors."""

    dimension, bias_index = DIRECTIONS + 1, DIRECTIONS

    def extract_features(self, prompt: Vector) -> Vector:
        """The vector itself."""
        return prompt


def _directions(prompts: tuple[str, ...]) -> Matrix:
    """Words and pairs of words in their main directions, each of variance 1, and a one.

    ParetoBandit's own embedding is a model that is downloaded.
    """
    words = HashingVectorizer(n_features=2**14, ngram_range=(1, 2)).fit_transform(prompts)
    found = TruncatedSVD(DIRECTIONS, random_state=SEED).fit_transform(words)
    scaled = (found - found.mean(axis=0)) / found.std(axis=0)
    directions: Matrix = np.column_stack([scaled, np.ones(len(prompts))])
    return directions


ROWS = ((SMALL, False), (SMALLEST, False), (SMALL, True))


def bills(answers: JudgedAnswers) -> Iterator[tuple[str, float, bool, Bill, float]]:
    """Every bill: its name, its floor, whether a guard keeps that, and the least that is to be saved."""
    for proposal, degrades in ROWS:
        name = proposal.partition("/")[2] + ", degrades" * degrades
        for floor in FLOORS:
            goal = GOALS.get(floor, 0.0) if (proposal, degrades) == ROWS[0] else 0.0
            yield f"{name}: guard", floor, True, guarded(answers, proposal, floor, degrades=degrades), goal
            yield f"{name}: reactive", floor, False, reactive(answers, proposal, floor, degrades=degrades), 0.0
            yield f"{name}: canary", floor, False, fixed(answers, proposal, floor, CANARY, degrades=degrades), 0.0
            yield f"{name}: all at once", floor, False, fixed(answers, proposal, floor, 1.0, degrades=degrades), 0.0
    for floor, goal in GOALS.items():
        ceiling = surefoot.ceiling(0.0, 0.1, alpha=0.1, reserve=1.0)
        yield (
            "mistral-large-2512, and a ceiling: guard",
            floor,
            True,
            guarded(answers, SMALL, floor, ceiling=ceiling),
            goal,
        )


def routes(answers: JudgedAnswers) -> Iterator[tuple[str, float, bool, Bill, float]]:
    """The same of the router."""
    for floor in FLOORS:
        yield "ParetoBandit: guard", floor, True, routed(answers, floor), 0.0
        yield "ParetoBandit, degrades: guard", floor, True, routed(answers, floor, degrades=True), 0.0
    yield "ParetoBandit: alone", 0.95, False, routed(answers, 0.95, is_guarded=False), 0.0
    yield "ParetoBandit, degrades: alone", 0.95, False, routed(answers, 0.95, degrades=True, is_guarded=False), 0.0


LATE: tuple[dict[str, Any], ...] = (
    *({"late": late} for late in (0, 10, 30, 100, 300)),
    {"late": 100, "baseline_ceiling": 0.95},
    {"late": 10, "slow": 0.1, "slow_late": 500},
    *({"late": 10, "slow": never} for never in (0.01, 0.03, 0.1)),
)


def waits(answers: JudgedAnswers) -> Iterator[tuple[str, float, bool, Bill, float]]:
    """The same of scores that come late, or never."""
    for how in LATE:
        name = ", ".join(f"{word} {value}" for word, value in how.items())
        yield f"{name}: guard", 0.95, True, awaited(answers, **how), 0.0


def curves(file: Path) -> None:
    """What was saved of the bill with Mistral Large, by floor; and kept of the quality where it degrades, at 95%."""
    answers = judged_answers()
    saved = {f"{floor:.0%}": guarded(answers, SMALL, floor) for floor in FLOORS}
    saved |= {"rollout": reactive(answers, SMALL, 0.95), "canary": fixed(answers, SMALL, 0.95, CANARY)}
    kept = {
        "guard": guarded(answers, SMALL, 0.95, degrades=True),
        "rollout": reactive(answers, SMALL, 0.95, degrades=True),
        "canary": fixed(answers, SMALL, 0.95, CANARY, degrades=True),
        "all at once": fixed(answers, SMALL, 0.95, 1.0, degrades=True),
    }
    rows = [f"saved,{name},{t},{share:.4f}" for name, bill in saved.items() for t, share, _ in bill.curve]
    rows += [f"kept,{name},{t},{share:.4f}" for name, bill in kept.items() for t, _, share in bill.curve]
    file.write_text("\n".join(["what,by,prompts,share", *rows]) + "\n")


def main() -> bool:
    """Print every bill; true where what was to be saved was, and no more orders were below than promised."""
    answers, held = judged_answers(), []
    print(f"{'':<48} {'floor':>5} {'saved':>6} {'least':>6} {'kept':>6} {'least':>6} {'nearest':>8} {'below':>9}")
    for name, floor, is_promised, bill, goal in itertools.chain(bills(answers), routes(answers), waits(answers)):
        saved, kept = (f"{each.mean():>6.1%} {each.min():>6.1%}" for each in (bill.saved, bill.kept))
        below = f"{bill.below} of {len(bill.saved)}"
        print(f"{name:<48} {floor:>5.0%} {saved} {kept} {bill.nearest.min():>+8.3f} {below:>9}", flush=True)
        held.append(not is_promised or (bill.below <= DELTA * len(bill.saved) and float(bill.saved.mean()) >= goal))
    for late in (0, 10, 30, 100, 300):
        print(f"late {late}: with both means known {limit(answers, late):.1%}")
    return all(held)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--curves", type=Path)
    if (asked := parser.parse_args()).curves:
        curves(asked.curves)
    else:
        main()
