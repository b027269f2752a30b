"""What the bits are: digests of everything that the core computes, for one build and one team.

Run as a program it prints them as JSON, so that a test can ask each build in a process of its own. Rows and means are
made without BLAS, which has bits of its own on every kind of processor.
"""

import hashlib
import json
import math
import sys
from typing import Any, NamedTuple

import numpy as np

from surefoot.core import native
from surefoot.simulation import Spec
from surefoot.simulation.policy_specs import Problem

SPECS = [
    Spec("LUCB"),
    Spec("CLUCB", alpha=0.1),
    Spec("CLUCB2", alpha=0.2, ridge=0.3, floor_share=0.5),
    *(Spec("SafeLUCB", alpha=0.05, radius=radius) for radius in ("amm", "dual", "residual", "logdet", "paper")),
    *(Spec("SafeLUCB", alpha=0.05, gate=gate, knows_baseline=True) for gate in ("joint", "ledger", "facts")),
    Spec("SafeLUCB", alpha=0.05, optimism="facts", reward_range=(0.0, 40.0)),
    *(Spec("SafeLUCB", alpha=0.3, reward_bounds=(-9.0, 30.0), radius=radius) for radius in ("likelihood", "best")),
]
ARMS = [
    Spec("UCB"),
    Spec("ConservativeUCB", alpha=0.1),
    *(Spec("ConservativeUCB", alpha=0.3, reward_bounds=(-9.0, 30.0), knows_baseline=known) for known in (False, True)),
]


class Shape(NamedTuple):
    """A small world: whether its rows stay the same, and the most rounds that a reward takes."""

    actions: int
    dim: int
    rounds: int
    fixed: bool = True
    late: int = 0


WORLDS: dict[str, tuple[Shape, list[Spec]]] = {
    "as in the paper": (Shape(100, 4, 600), SPECS),
    "more dimensions": (Shape(70, 17, 200), SPECS),
    "rows that change, and late rewards": (Shape(9, 5, 200, fixed=False, late=7), SPECS),
    "many long rows": (Shape(70, 66, 40, fixed=False), [Spec("LUCB")]),
    "arms": (Shape(5, 5, 600), ARMS),
}


def digest_of(*arrays: Any) -> str:
    """Of the bits of arrays."""
    sha = hashlib.sha256()
    for array in arrays:
        sha.update(np.ascontiguousarray(array).tobytes())
    return sha.hexdigest()[:16]


def played(spec: Spec, shape: Shape, lanes: int) -> str:
    """Of every action, every count, and the whole state of a run."""
    actions, dim, rounds, fixed, late = shape
    sets = 1 if fixed else rounds
    features = np.abs(native.normals(3, 0, sets * actions * dim)).reshape(sets, actions, dim)
    theta = np.abs(native.normals(4, 0, dim)) / 8.0
    means = np.array([[math.fsum(row * theta) for row in rows] for rows in features])
    problem = Problem(
        dim=dim, actions=actions, noise=0.5, theta_bound=0.5 * dim**0.5, feature_bound=4.0 * dim**0.5,
        baseline_reward=float(means[0, 3]),
    )  # fmt: skip
    core = spec.new_policy(problem).core
    if spec.is_linear:
        core.settings.watchful = False
        if fixed:
            core.adopt(features[0])
    delays = (native.uniforms(5, 0, rounds) * (late + 1)).astype(np.int64)
    tally, points = native.Tally([0.05, 0.1]), np.arange(1, rounds + 1, 7)
    kept, trace = np.zeros((points.size, tally.size)), np.zeros(rounds, dtype=np.int64)
    draws = native.normals(6, 0, rounds)
    failed = core.play(
        features, means, np.full(rounds, 3), draws, delays, late > 0, spec.knows_baseline, 0, 0.5, tally, points, kept,
        trace, lanes,
    )  # fmt: skip
    assert failed is None
    parts = (core.ridge, core.ledger, core.memory) if spec.is_linear else (core,)
    return digest_of(trace, kept, *(part.save() for part in parts), core.save_likelihood())


def functions() -> str:
    """Of the core's own logarithms, exponentials and draws."""
    points = [math.ldexp(1.0 + i / 97.0, i % 41 - 20) for i in range(2_000)]
    values = [f(x) for f in (native.log, native.log1p) for x in points]
    values += [f(x) for f in (native.exp, native.expm1) for x in points if x < 700.0]
    return digest_of(values, native.normals(7, 0, 2_000), native.uniforms(7, 0, 2_000))


def digests(lanes: int = 0) -> dict[str, str]:
    """All of them by name."""
    found = {"functions": functions()}
    for name, (shape, specs) in WORLDS.items():
        runs = "".join(played(spec, shape, lanes) for spec in specs)
        found[name] = hashlib.sha256(runs.encode()).hexdigest()[:16]
    return found


if __name__ == "__main__":
    json.dump(digests(int(sys.argv[1]) if len(sys.argv) > 1 else 0), sys.stdout, indent=2)
