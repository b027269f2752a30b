"""The figures in docs/replay.md are those of a run: each table is computed again here, line by line."""

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from surefoot.replay import datasets
from surefoot.replay.evaluate import replay
from surefoot.replay.outcome import Outcome
from surefoot.replay.player import PLAYABLE, Declared
from surefoot.simulation.specs import Spec

PAGE = Path(__file__).parents[2] / "docs" / "replay.md"
ALPHA = 0.2


def specs() -> list[Spec]:
    return [Spec(name, alpha=None if name == "LUCB" else ALPHA) for name in PLAYABLE]


def lines(outcomes: Sequence[Outcome]) -> list[str]:
    """Rows of a table in Markdown."""
    found = []
    for outcome in outcomes:
        free = "not yet" if outcome.free_from is None else f"{outcome.free_from:,}"
        reward, gain = outcome.main["reward"], outcome.main["gain"]
        found.append(
            f"| {outcome.spec.policy} | {outcome.rounds:,} | {outcome.learner_share:.0%} | {free} "
            f"| {outcome.below[ALPHA]:,} | {outcome.worst_share:.0%} "
            f"| {reward.value:.3f} ± {reward.high - reward.value:.3f} "
            f"| {gain.value:+.3f} ± {gain.high - gain.value:.3f} |"
        )
    return found


def trial() -> list[Outcome]:
    declared = Declared(noise=0.5, theta_bound=2.0, baseline_reward=0.4436, reward_range=(0, 1))
    return replay(datasets.actg175().shuffled(0), specs(), declared=declared)


def trial_as_world() -> list[Outcome]:
    declared = Declared(noise=0.5, theta_bound=2.0, baseline_reward=0.4436, reward_range=(0, 1))
    return replay(datasets.actg175().resampled(100_000, seed=0), specs(), declared=declared)


def pictures() -> list[Outcome]:
    log = datasets.digits()
    batch = next(log.batches())
    rate = float(batch.rewards[np.arange(len(batch)), batch.baselines].mean())
    declared = Declared(noise=0.5, theta_bound=3.0, baseline_reward=rate, reward_range=(0, 1))
    return replay(log.resampled(100_000, seed=0), specs(), declared=declared, evaluator="full")


@pytest.mark.parametrize(
    ("run", "package"),
    [(trial, "lifelines"), (trial_as_world, "lifelines"), pytest.param(pictures, "sklearn", marks=pytest.mark.long)],
)
def test_the_table_in_the_docs_is_what_the_run_gives(run: Callable[[], list[Outcome]], package: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"the package {package} is not installed")
    expected = lines(run())
    page = PAGE.read_text(encoding="utf-8")
    missing = [line for line in expected if line not in page]
    assert not missing, "docs/replay.md must hold these lines:\n" + "\n".join(expected)


def test_the_tutorial_needs_fifteen_lines_from_a_file_to_a_running_policy() -> None:
    blocks = (PAGE.parent / "tutorial-csv.md").read_text(encoding="utf-8").split("```python\n")[1:]
    (core,) = [block for block in blocks if "read_log" in block]  # test_docs.py runs it
    lines_of_code = [line for line in core.split("```")[0].splitlines() if line.startswith((">>> ", "... "))]
    assert len(lines_of_code) == 15


if __name__ == "__main__":
    for run in (trial, trial_as_world, pictures):
        print(run.__name__, *lines(run()), sep="\n")
