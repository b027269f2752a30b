"""The demo's bill: prompts that three language models have answered, with a judge's scores and the dollars paid.

Since every model has answered every prompt, what would have been scored and paid without the guard is known.
"""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from surefoot.errors import ConfigError
from surefoot.service.demo_visitors import Demo

TODAY, SMALL, SMALLEST = "google/gemini-2.5-pro", "mistralai/mistral-large-2512", "meta-llama/llama-3.1-8b-instruct"
DEAREST = 0.1  # dollars of an answer; what costs more is cut


@dataclass(frozen=True)
class JudgedAnswers:
    """Prompts that every model answered: scores by a judge, in [0, 1], and dollars, one column for each model."""

    prompts: tuple[str, ...]
    models: tuple[str, ...]
    scores: NDArray[np.float64]
    dollars: NDArray[np.float64]


def judged_answers() -> JudgedAnswers:
    """3,609 prompts of nine benchmarks with the answers of three models (`paretobandit`, which ships them)."""
    package = importlib.util.find_spec("pareto_bandit")
    if package is None or package.origin is None:
        raise ConfigError("The judged answers come with a package of their own: pip install 'surefoot[bill]'")
    folder = Path(package.origin).parent / "data" / "examples"
    lines = [line for part in ("val", "test_holdout") for line in (folder / f"{part}.jsonl").read_bytes().splitlines()]
    found = [msgspec.json.decode(line) for line in lines]
    answers = [one["arms"] for one in found]
    models = tuple(sorted(answers[0]))
    scores, dollars = (np.array([[one[m][what] for m in models] for one in answers]) for what in ("reward", "cost"))
    return JudgedAnswers(tuple(one["prompt"] for one in found), models, scores, dollars)


@dataclass
class CheaperModel:
    """A cheaper model that is let in for some of the prompts; today's answers the rest.

    `paid`, `owed`, `kept` and `due` are the true dollars and scores so far, with the guard and of today's model alone.
    """

    name: str
    model: str
    answers: JudgedAnswers = field(repr=False)
    floor: float = 0.95
    every: int = 1
    paid: float = 0.0
    owed: float = 0.0
    kept: float = 0.0
    due: float = 0.0

    def experiment(self, *, window: float) -> dict[str, Any]:
        """How the experiment is created: every prompt is scored, so that no window must close."""
        quality = {"kind": "floor", "low": 0, "high": 1, "alpha": round(1.0 - self.floor, 9)}
        cost = {"kind": "ceiling", "low": 0, "high": DEAREST, "alpha": 0.1, "reserve": 1}
        return {
            "name": self.name,
            "policy": "Guard",
            "settings": {"delta": 0.05, "goal": "save", "metrics": {"quality": quality, "cost": cost}},
            "mode": "guarded",
            "actions": [TODAY, self.model],
            "reward_unit": {"cost": "USD"},
            "description": f"{TODAY} answers today, {self.model} is proposed. Quality is a judge's score, at most 1.",
        }

    def question(self, visitor: int) -> dict[str, Any]:
        """Nothing: the experiment knows both models."""
        return {}

    def reward(self, answer: Mapping[str, Any], visitor: int, random: np.random.Generator) -> dict[str, float]:
        """What the judge said of the answer, and what it cost."""
        scores, dollars = self.answers.scores[visitor], self.answers.dollars[visitor]
        now, today = (self.answers.models.index(model) for model in (answer["action"], TODAY))
        self.paid, self.owed = self.paid + dollars[now], self.owed + dollars[today]
        self.kept, self.due = self.kept + scores[now], self.due + scores[today]
        return {"quality": float(scores[now]), "cost": min(float(dollars[now]), DEAREST)}

    def progress(self, status: Mapping[str, Any]) -> str:
        """The bill and the quality, as they are."""
        saved = f"${self.owed - self.paid:.2f} of ${self.owed:.2f} saved ({1 - self.paid / self.owed:.0%})"
        return f"{saved}, quality {self.kept / self.due:.1%}, share {status['guard']['share']:.0%}"


def bill() -> Demo:
    """Both cheaper models beside today's, over all prompts in an order by lot."""
    answers = judged_answers()
    return Demo(
        greeting=f"{len(answers.scores):,} prompts: two cheaper models start beside the one that answers today.",
        rate=60.0,
        choices=(
            CheaperModel("mistral-large", SMALL, answers),
            CheaperModel("weak-llama-8b", SMALLEST, answers, every=3),
        ),
        visitors=lambda random: iter(random.permutation(len(answers.scores)).tolist()),
    )
