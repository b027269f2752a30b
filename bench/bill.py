"""The bill of a language model under a guard: the same prompts in many orders, each order a run of its own.

Every prompt was answered by every model, so what would have been scored and paid is known in each round. Gemini 2.5 Pro
answers today, a cheaper model is proposed, and the floor is a share of today's quality. `requirements/long.txt` names
the package with the data.
"""

from dataclasses import dataclass

import numpy as np

import surefoot
from bench.real_tables import JudgedAnswers, judged_answers
from surefoot.arrays import Matrix, Vector
from surefoot.safety.metric import Metric
from surefoot.simulation import simulate_guard

TODAY, SMALL, SMALLEST = "google/gemini-2.5-pro", "mistralai/mistral-large-2512", "meta-llama/llama-3.1-8b-instruct"
FLOORS = (0.9, 0.95, 0.98, 0.99)
GOALS = {0.95: 0.85, 0.98: 0.45}  # of the bill with the model between
DELTA, ORDERS, SEED = 0.05, 1_000, 38
EXACT = 1e-12  # the deviation of a score that is known
WORSE = 0.75  # what a model that degrades keeps of its score, in the second half of an order


@dataclass(frozen=True)
class Bill:
    """Of each order: shares of the bill that were saved and of the quality that was kept, coins averaged.

    `nearest` is the least distance to the floor at any time, in answers of the highest score.
    """

    saved: Vector
    kept: Vector
    nearest: Vector

    @property
    def below(self) -> int:
        """Orders in which the quality was ever below the floor; a sum's rounding is no broken promise."""
        return int((self.nearest < -1e-9).sum())


def bill(
    answers: JudgedAnswers,
    proposal: str,
    floor: float,
    *,
    orders: int = ORDERS,
    degrades: bool = False,
    is_guarded: bool = True,
    ceiling: Metric | None = None,
) -> Bill:
    """Serve all prompts in so many orders by lot; without the guard the proposal answers all of them.

    The ceiling, if there is one, is that of the dollars of an answer, each cut at the highest that it declares.
    """
    alpha, rng = round(1.0 - floor, 9), np.random.default_rng(SEED)
    today, new = answers.models.index(TODAY), answers.models.index(proposal)
    prompts = len(answers.scores)
    order = np.stack([rng.permutation(prompts) for _ in range(orders)], axis=1)
    saved, paid, kept, owed, slack = np.zeros((5, orders))
    nearest = np.full(orders, np.inf)

    def world(t: int, share: Vector, _: np.random.Generator) -> tuple[Matrix, Matrix]:
        nonlocal nearest
        now, played = order[t], share if is_guarded else 1.0
        before, after = answers.scores[now, today], answers.scores[now, new]
        if degrades and t >= prompts // 2:
            after = WORSE * after
        saved[:] += played * (answers.dollars[now, today] - answers.dollars[now, new])
        paid[:] += answers.dollars[now, today]
        kept[:] += played * after + (1.0 - played) * before
        owed[:] += before
        slack[:] = kept - floor * owed
        nearest = np.minimum(nearest, slack)
        if ceiling is None:
            return after[:, None], before[:, None]
        dollars = np.minimum(answers.dollars[now] / ceiling.high, 1.0)
        return np.column_stack([after, dollars[:, new]]), np.column_stack([before, dollars[:, today]])

    metrics = {"quality": surefoot.floor(0.0, 1.0, alpha=alpha)} | ({"cost": ceiling} if ceiling is not None else {})
    guard = surefoot.Guard(delta=DELTA, goal="save", metrics=metrics)
    simulate_guard(guard, world, rounds=prompts, runs=orders, seed=SEED, deviation=EXACT)
    return Bill(saved / paid, kept / owed, nearest)


def main() -> bool:
    """Print every bill; true where what was to be saved was, and no more orders were below than promised."""
    answers, held = judged_answers(), []
    print(
        f"{'proposal':<34} {'floor':>5} {'saved':>6} {'least':>6} {'kept':>6} {'least':>6} {'nearest':>8} {'below':>5}"
    )
    for proposal, degrades in ((SMALL, False), (SMALLEST, False), (SMALL, True)):
        for floor in FLOORS:
            found = bill(answers, proposal, floor, degrades=degrades)
            _tell(proposal + ", degrades" * degrades, floor, found)
            goal = GOALS.get(floor, 0.0) if (proposal, degrades) == (SMALL, False) else 0.0
            held.append(found.below <= DELTA * ORDERS and float(found.saved.mean()) >= goal)
    for floor, goal in GOALS.items():
        found = bill(answers, SMALL, floor, ceiling=surefoot.ceiling(0.0, 0.1, alpha=0.1, reserve=1.0))
        _tell(f"{SMALL}, and a ceiling", floor, found)
        held.append(found.below <= DELTA * ORDERS and float(found.saved.mean()) >= goal)
    for proposal, degrades in ((SMALL, False), (SMALLEST, False), (SMALL, True)):
        found = bill(answers, proposal, 0.95, orders=20, degrades=degrades, is_guarded=False)
        _tell(proposal + ", degrades" * degrades + ", no guard", 0.95, found)
    return all(held)


def _tell(name: str, floor: float, found: Bill) -> None:
    saved, kept = (f"{each.mean():>6.1%} {each.min():>6.1%}" for each in (found.saved, found.kept))
    print(f"{name.partition('/')[2]:<34} {floor:>5.0%} {saved} {kept} {found.nearest.min():>+8.3f} {found.below:>5}")
