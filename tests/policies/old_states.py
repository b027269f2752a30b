"""States of policies that earlier versions saved, kept as files with what those versions decided next.

`python -m tests.policies.old_states` writes those of today's version; a file that exists is never written again. Rows
and rewards come from checksums, not from a generator of random numbers, so that any version sees the same ones.
"""

import gzip
import json
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import surefoot
from surefoot.policies import LinearGuard

FOLDER = Path(__file__).parent / "fixtures"
AFTER = 20  # rounds that are decided after a state was saved
NEVER = 10**9
BASELINE = 2


def chance(*keys: object) -> float:
    """A number in [0, 1) that depends on the keys alone."""
    return zlib.crc32(repr(keys).encode()) / 2.0**32


@dataclass(frozen=True)
class Case:
    """A policy, the rounds that it has played when it is saved, and how these are asked and rewarded."""

    make: Callable[[], Any]
    dim: int = 5
    actions: int = 6
    before: int = 90
    weakness: float = 0.5  # length of the baseline's rows, beside the others
    known: str = "none"  # what is told of the baseline's reward: none, mean or interval
    is_catalogue: bool = False
    is_late: bool = True
    is_guard: bool = False
    react: Callable[[Any, int], None] | None = None  # called before each round

    def rows(self, round_: int) -> Any:
        """Nonnegative rows of length at most 1; the baseline's are the shortest."""
        round_ = 0 if self.is_catalogue else round_
        rows = np.array([[chance(round_, i, j) for j in range(self.dim)] for i in range(self.actions)])
        if self.is_catalogue and self.actions > 8:  # few rows that can be best, so that they are listed
            rows[np.arange(self.actions) % 8 > 0] *= 0.3
        rows[BASELINE] *= self.weakness
        return rows / math.sqrt(self.dim)

    def mean(self, row: Any) -> float:
        """The mean reward of a row, the same to the bit on every machine."""
        return math.fsum(chance("theta", j) * float(x) for j, x in enumerate(row)) / math.sqrt(self.dim)

    def due(self, round_: int) -> int:
        """The round after which the reward of this one comes; some come never, as their rounds are abandoned."""
        if not self.is_late:
            return round_
        return NEVER if round_ % 13 == 11 else round_ + (0, 3, 1, 0, 7)[round_ % 5]


@dataclass
class Player:
    """Plays rounds of a case, and notes what was decided."""

    case: Case
    policy: Any
    late: list[list[float]]  # rewards to come: round, reward, and when

    def play(self, rounds: int) -> list[list[Any]]:
        """What was decided in each of the next rounds."""
        return [self._guarded() if self.case.is_guard else self._round() for _ in range(rounds)]

    def _round(self) -> list[Any]:
        round_ = self.policy.rounds + 1
        if self.case.react is not None:
            self.case.react(self.policy, round_)
        rows = self.case.rows(round_)
        means = [self.case.mean(row) for row in rows]
        reward = {"none": None, "mean": means[BASELINE], "interval": (0.8 * means[BASELINE], 1.1 * means[BASELINE])}
        given = surefoot.Catalogue(rows) if self.case.is_catalogue else rows
        decision = self.policy.decide(given, baseline=BASELINE, baseline_reward=reward[self.case.known])
        self._reward(round_, means[decision.action] + 0.02 * (chance("noise", round_) - 0.5))
        c = decision.certificate
        return [decision.action, decision.source, c.guaranteed, c.required, c.proposal, c.optimism, decision.draw]

    def _guarded(self) -> list[Any]:
        round_ = self.policy.rounds + 1
        rows = self.case.rows(round_)
        unit = f"user-{round_ % 17}" if self.policy.settings["unit_window"] else None
        decision = self.policy.decide(baseline=rows[BASELINE], proposal=rows[0], unit=unit)
        good = self.case.mean(decision.action)
        metrics = self.policy.metrics
        rewards = {name: good if one.kind == "floor" else one.high * (1.0 - good) for name, one in metrics.items()}
        if decision.round == round_:
            self._reward(round_, rewards if len(metrics) > 1 else good)
        c = decision.certificate
        return [decision.round, decision.source, c.allowed, decision.share, decision.draw, *self.policy.banks.values()]

    def _reward(self, round_: int, reward: Any) -> None:
        due = self.case.due(round_)
        if due < NEVER:
            self.late.append([round_, reward, due])
        else:
            self.policy.abandon(round_)
        # Newest first, so that some rewards have to wait for their turn.
        for entry in [entry for entry in reversed(self.late) if entry[2] <= round_]:
            self.late.remove(entry)
            # With `settle_after` it may have been settled meanwhile.
            if entry[0] in self.policy.pending:
                self.policy.observe(int(entry[0]), entry[1])


def linear(dim: int = 5, **extra: Any) -> dict[str, Any]:
    told = {"dim": dim, "delta": 0.05, "noise": 0.01, "ridge": 0.3, "theta_bound": 1.0, "feature_bound": 1.0}
    # The paper's radius needs two dimensions.
    return told | ({"radius": "amm"} if dim == 1 else {}) | extra


def safe(**extra: Any) -> Callable[[], surefoot.SafeLUCB]:
    return lambda: surefoot.SafeLUCB(**{**linear(alpha=0.01, reward_range=(0.0, 1.0)), **extra})


def newest(dim: int = 5, *, alpha: float) -> Callable[[], surefoot.CLUCB2]:
    return lambda: surefoot.CLUCB2(**linear(dim, alpha=alpha), nesting="latest")


def guarded(**settings: Any) -> Case:
    return Case(lambda: surefoot.Guard(**{"delta": 0.2, "seed": 5, **settings}), is_guard=True)


def contradict(policy: Any, round_: int) -> None:
    """Raise the alarm before round 80."""
    if round_ == 80:
        policy.report_breach("contradiction", "a test")


def relearn(policy: Any, round_: int) -> None:
    """Raise the alarm, and answer it: learn anew under the same promise."""
    if round_ == 20:
        policy.report_breach("contradiction", "a test")
        policy.acknowledge("relearn")


def breach(policy: Any, round_: int) -> None:
    """Let the alarm come in the middle of what is replayed."""
    if round_ == 97:
        policy.report_breach("reward", "a test")


METRICS = {
    "quality": surefoot.floor(0, 1, alpha=0.3),
    "cost": surefoot.ceiling(0, 2, alpha=0.4, reserve=9.0, default=0.5),
}
WATCHED: dict[str, Any] = {"holdout": 0.2, "watch_share": 0.3, "seed": 3}

CASES: dict[str, Case] = {
    # The rounds before are such that learner and baseline both play in what follows, where the policy has both; a
    # search for proofs that stops elsewhere after a change in the last bit is left out.
    "LUCB-1": Case(partial(surefoot.LUCB, **linear(1)), dim=1),
    "LUCB-5": Case(partial(surefoot.LUCB, **linear())),
    "CLUCB-1": Case(partial(surefoot.CLUCB, **linear(1, alpha=0.01)), dim=1, before=250, known="mean", weakness=0.9),
    "CLUCB-5": Case(partial(surefoot.CLUCB, **linear(alpha=0.01)), before=275, known="mean", weakness=0.9),
    "CLUCB-50": Case(partial(surefoot.CLUCB, **linear(50, alpha=0.3)), dim=50, before=45, known="mean", weakness=0.9),
    "CLUCB-watched": Case(partial(surefoot.CLUCB, **linear(alpha=0.1), **WATCHED), known="mean"),
    "CLUCB2-latest-1": Case(newest(1, alpha=0.01), dim=1, before=25),
    "CLUCB2-latest-5": Case(newest(alpha=0.3), before=15),
    "CLUCB2-latest-long": Case(newest(alpha=0.3), before=600),
    "CLUCB2-latest-catalogue": Case(newest(4, alpha=0.3), dim=4, actions=64, before=150, is_catalogue=True),
    "CLUCB2-exact-1": Case(partial(surefoot.CLUCB2, **linear(1, alpha=0.01)), dim=1, before=25),
    "CLUCB2-exact-5": Case(partial(surefoot.CLUCB2, **linear(alpha=0.5)), before=12),
    "SafeLUCB-1": Case(safe(dim=1), dim=1, before=15),
    "SafeLUCB-50": Case(safe(dim=50), dim=50, before=65, weakness=0.9),
    "SafeLUCB-amm": Case(safe(), before=12),
    "SafeLUCB-amm-long": Case(safe(), before=600),
    "SafeLUCB-dual": Case(safe(radius="dual"), before=5, weakness=0.9),
    "SafeLUCB-dual-long": Case(safe(radius="dual"), before=90),
    **{f"SafeLUCB-{radius}": Case(safe(radius=radius), before=15) for radius in ("paper", "logdet", "residual")},
    "SafeLUCB-residual-long": Case(safe(radius="residual"), before=90),
    "SafeLUCB-joint": Case(safe(gate="joint"), before=12),
    "SafeLUCB-ledger": Case(safe(gate="ledger", reward_range=None, alpha=0.3), before=12),
    "SafeLUCB-checkpoints": Case(safe(constraint={"name": "checkpoints", "every": 5}), before=12),
    "SafeLUCB-stagewise": Case(safe(constraint="stagewise"), weakness=0.9),
    "SafeLUCB-reserve": Case(safe(constraint={"name": "reserve", "granted": 0.2})),
    "SafeLUCB-realised-path": Case(
        safe(constraint={"name": "realised_path", "lowest_reward": -0.3}), before=190, weakness=0.9
    ),
    "SafeLUCB-known": Case(safe(), known="mean"),
    "SafeLUCB-interval": Case(safe(reward_range=None), known="interval", weakness=0.9),
    "SafeLUCB-optimistic-facts": Case(safe(optimism="facts", misspecification=1e-3, reward_floor=1e-3), before=12),
    "SafeLUCB-catalogue": Case(safe(dim=4), dim=4, actions=64, before=150, is_catalogue=True),
    "SafeLUCB-catalogue-residual": Case(
        safe(radius="residual"), actions=64, before=19, is_catalogue=True, is_late=False, weakness=0.9
    ),
    "SafeLUCB-settled": Case(safe(settle_after=4, default_reward=0.1), before=18),
    "SafeLUCB-watched": Case(safe(**WATCHED)),
    "SafeLUCB-alarm": Case(safe(), react=contradict),
    "SafeLUCB-alarm-later": Case(safe(), react=breach),
    "SafeLUCB-relearned": Case(safe(alpha=0.3), before=80, react=relearn),
    "UCB": Case(lambda: surefoot.UCB(arms=6)),
    "ConservativeUCB": Case(partial(surefoot.ConservativeUCB, arms=6, alpha=0.3, delta=0.1, noise=0.05), before=12),
    "ConservativeUCB-long": Case(
        partial(surefoot.ConservativeUCB, arms=6, alpha=0.01, delta=0.1, noise=0.05), before=150
    ),
    "ConservativeUCB-known": Case(
        partial(surefoot.ConservativeUCB, arms=6, alpha=0.3, delta=0.1, noise=0.05, baseline_reward=0.1), before=5
    ),
    "ConservativeUCB-bounded": Case(
        partial(surefoot.ConservativeUCB, arms=6, alpha=0.7, delta=0.1, reward_bounds=(-0.1, 1.1)), before=60
    ),
    "Guard": guarded(alpha=0.1),
    "Guard-played": guarded(alpha=0.3, promise="played", reserve=20.0),
    "Guard-metrics": guarded(metrics=METRICS),
    "Guard-unpredicted": guarded(alpha=0.3, prediction="none", ramp="gate", baseline_ceiling=0.6),
    "Guard-settled": guarded(alpha=0.3, settle_after=4, default_reward=0.2),
    "Guard-units": replace(guarded(alpha=0.4, unit_window=6), is_late=False),
    "LinearGuard": Case(
        lambda: LinearGuard(also=surefoot.SafeLUCB(**linear(alpha=0.1)), alpha=0.1, delta=0.1, seed=5),
        before=15,
        is_guard=True,
    ),
}


def write(path: Path, case: Case) -> None:
    """Play a case, and keep its state and what came next."""
    player = Player(case, case.make(), [])
    player.play(case.before)
    policy, kept = player.policy, {"version": surefoot.__version__, "state": plain(player.policy.state())}
    kept |= {"pending": policy.pending, "waiting": policy.waiting, "late": list(player.late)}
    kept["next"] = player.play(AFTER)
    # Floats are written so that they come back to the bit; a time in the header would change the file each time.
    path.write_bytes(gzip.compress(json.dumps(kept).encode(), mtime=0))


def read(path: Path) -> dict[str, Any]:
    """What `write` kept, with arrays in the state as they were."""
    kept: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return kept | {"state": full(kept["state"])}


def plain(value: Any) -> Any:
    """A state whose arrays are written as their type, shape and numbers."""
    if isinstance(value, np.ndarray):
        return {"dtype": str(value.dtype), "shape": value.shape, "values": value.ravel().tolist()}
    return {name: plain(one) for name, one in value.items()} if isinstance(value, dict) else value


def full(value: Any) -> Any:
    """The state that `plain` wrote."""
    if not isinstance(value, dict):
        return value
    if value.keys() == {"dtype", "shape", "values"}:
        return np.array(value["values"], dtype=value["dtype"]).reshape(value["shape"])
    return {name: full(one) for name, one in value.items()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, case in CASES.items():
        if not (FOLDER / f"{name}.json.gz").exists():
            write(FOLDER / f"{name}.json.gz", case)
