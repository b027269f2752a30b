"""A careful forger: an honest journal that ends where the gate refused, and that last round made the learner's."""

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import surefoot
from surefoot.audit import Report, audit
from surefoot.experiment import Experiment
from surefoot.journal import open_journal
from tests.experiment.tampering import Row, load, rehashed, save
from tests.experiment.worlds import Clock
from tests.worlds import Array

LEAST, MOST = "least reward of the baseline", "largest reward of the baseline"
PROVED = "proof of an earlier round"
RIDGE = 0.3
THETA = np.array([0.6, 0.3, 0.1])


def honest(path: Path, *, rounds: int = 30, **settings: Any) -> None:
    """An honest experiment in a file: the baseline's reward is known from round 2 on, rewards are learned at once."""
    rng = np.random.default_rng(3)
    told: dict[str, Any] = {
        "dim": 3,
        "alpha": 0.1,
        "delta": 0.05,
        "noise": 0.1,
        "theta_bound": 1.0,
        "feature_bound": 1.0,
    }
    policy = surefoot.SafeLUCB(**{**told, "ridge": RIDGE, "gate": "joint", **settings})
    with open_journal(path) as journal:
        experiment = Experiment.create(journal, "shop", policy, mode="guarded", clock=Clock())
        for round_ in range(rounds):
            rows = rng.uniform(0, 0.55, size=(4, 3))
            known = float(rows[0] @ THETA) if round_ else None
            answer = experiment.decide(rows, baseline=0, baseline_reward=known)
            experiment.reward(answer.decision_id, float(rows[answer.action] @ THETA + 0.1 * rng.normal()))


@dataclass
class Scene:
    """The events up to a round that was refused, which is the last; rewards were learned at once."""

    rows: list[Row]

    @property
    def payload(self) -> Row:
        payload: Row = self.rows[-1]["payload"]
        return payload

    @property
    def certificate(self) -> Row:
        certificate: Row = self.payload["certificate"]
        return certificate

    @property
    def question(self) -> Array:
        return np.array(self.certificate["proof"]["question"])

    @property
    def offered(self) -> Array:
        return np.array(self.payload["request"]["features"])

    @property
    def baseline(self) -> Array:
        """Features of the baseline."""
        row: Array = self.offered[self.payload["request"]["baseline"]]
        return row

    @property
    def known(self) -> float:
        """Its mean reward, which is known."""
        return float(self.payload["request"]["baseline_reward"])

    @property
    def fact(self) -> Row:
        """The confidence set, as the honest proof writes it."""
        fact: Row = self.certificate["proof"]["pieces"][0]["fact"]
        return copy.deepcopy(fact)

    def learned(self) -> tuple[Array, Array]:
        """V and b of the events so far."""
        decided = {p["decision_id"]: p for p in (row["payload"] for row in self.rows if row["kind"] == "round")}
        gram, moment = RIDGE * np.eye(self.question.size), np.zeros(self.question.size)
        for row in self.rows:
            if row["kind"] == "reward" and not row["payload"].get("refused"):
                decision = decided[row["payload"]["decision_id"]]
                x = np.array(decision["request"]["features"][decision["action"]])
                gram, moment = gram + np.outer(x, x), moment + row["payload"]["values"]["reward"] * x
        return gram, moment

    def least(self, q: Array, fact: Row | None = None) -> float:
        """The least <theta, q> over a confidence set, the honest proof's unless another is given."""
        known = fact or self.fact
        if known.get("whitener") is not None:
            width = np.linalg.norm(np.array(known["whitener"]) @ q)
            return float(np.array(known["center"]) @ q - known["radius"] * width)
        gram, moment = self.learned()
        return float(np.linalg.solve(gram, moment) @ q - known["radius"] * np.sqrt(q @ np.linalg.solve(gram, q)))

    def piece(self, q: Array, fact: Row | None = None, bound: float | None = None) -> Row:
        """A piece by a confidence set."""
        bound = self.least(q, fact) if bound is None else bound
        return {"fact": fact or self.fact, "vector": q.tolist(), "bound": bound}

    def claim(self, pieces: list[Row], value: Any = None) -> None:
        """Let the learner have played, by these pieces; as a rule they are worth the sum of their bounds."""
        value = float(sum(piece["bound"] for piece in pieces)) if value is None else value
        self.certificate["proof"] = {"question": self.question.tolist(), "pieces": pieces, "value": value}
        self.certificate["guaranteed"] = value
        self.play()

    def play(self) -> None:
        """Let the learner have played."""
        self.payload["source"], self.payload["action"] = "learner", self.certificate["proposal"]

    def audited(self, path: Path) -> Report:
        """What the audit says once every hash is computed anew, over the journal at that path."""
        rows = rehashed(self.rows)
        save(path, rows, head=(rows[-1]["number"], rows[-1]["hash"]))
        with open_journal(path, read_only=True) as journal:
            return audit(journal, "shop")


def linear(name: str, normal: Array, level: Any, weight: float, beside: Array | None = None) -> Row:
    """A piece by a linear fact, and something that lies beside its direction."""
    vector = weight * normal + (0.0 if beside is None else beside)
    fact = {"kind": "linear", "name": name, "normal": normal.tolist(), "level": level}
    return {"fact": fact, "vector": vector.tolist(), "bound": weight * float(level)}


def is_refused(payload: Row) -> bool:
    """The gate refused, by a confidence set, in a round whose baseline reward is known."""
    certificate, asked = payload["certificate"], payload["request"]
    return (
        payload["source"] == "baseline"
        and certificate["proposal"] != asked["baseline"]
        and isinstance(asked.get("baseline_reward"), float)
        and certificate["proof"]["pieces"][0]["fact"]["kind"] == "ellipsoid"
    )


def refused(path: Path) -> Scene:
    """The journal up to the round that was refused most clearly, once the learner had played."""
    rows = load(path)
    decisions = [(i, row["payload"]) for i, row in enumerate(rows) if row["kind"] == "round"]
    first = next(i for i, payload in decisions if payload["source"] == "learner")
    later = [(payload["certificate"]["guaranteed"], i) for i, payload in decisions if i > first and is_refused(payload)]
    return Scene(rows[: min(later)[1] + 1])
