"""Hold `surefoot.check` to the checker that Coq has proved: the same proofs to both, and no verdict may differ.

Honest proofs come from runs of the policies; forged ones from the forgers' suite, and from honest ones in which
something was changed. Then our checker is broken on purpose, in several ways, and each must be found.

    python -m proofs.compare proofs/build/checker            # 100,000 honest and 100,000 forged proofs
"""

import argparse
import math
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing import Pool
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace
from proofs.proof_text import guard_line, proof_line
from tests.safety.test_forgers import FORGERIES

import surefoot
from surefoot.errors import ProofError
from surefoot.linear.ellipsoid import Ball, Ellipsoid
from surefoot.safety import check as our_check
from surefoot.safety.bank_proof import BankProof, GuardProof
from surefoot.safety.facts import Box, Linear
from surefoot.safety.proof import Piece, Proof

Check = Callable[..., None]


class Case(NamedTuple):
    """What is put to both checkers."""

    proof: Any
    question: Any = None
    facts: Any = None

    def line(self) -> str:
        """As the extracted checker reads it."""
        if isinstance(self.proof, GuardProof):
            return guard_line(self.proof)
        return proof_line(self.proof, self.question, self.facts)

    def verdict(self, check: Check) -> str:
        """What a checker of ours says."""
        try:
            check(self.proof, question=self.question, facts=self.facts)
        except ProofError:
            return "refuse"
        return "accept"


# ---------------------------------------------------------------------------------- honest proofs


def honest(seed: int) -> Iterator[Proof]:
    """The proofs of one run of a policy in a world of its own."""
    rng = np.random.default_rng(seed)
    name = str(rng.choice(["SafeLUCB", "SafeLUCB", "SafeLUCB", "CLUCB", "CLUCB2"]))
    dims = [2, 3, 4, 6] if name != "SafeLUCB" else [1, 2, 3, 4, 6, 50]
    dim = int(rng.choice(dims, p=None if name != "SafeLUCB" else [0.1, 0.2, 0.2, 0.29, 0.2, 0.01]))
    kind = str(rng.choice(["fixed", "changing", "arms"]))
    theta = np.abs(rng.normal(size=dim)) + 0.05
    theta = rng.uniform(0.1, 1.0, dim) if kind == "arms" else theta / np.linalg.norm(theta)
    policy = new_policy(name, dim, float(np.linalg.norm(theta)), rng)
    rows = np.eye(dim) if kind == "arms" else drawn_rows(5, dim, rng)
    is_known = policy.needs_baseline_reward or (name == "SafeLUCB" and rng.random() < 0.3)
    for _ in range(200):
        rows = drawn_rows(5, dim, rng) if kind == "changing" else rows
        means = rows @ theta
        baseline = int(np.argsort(-means)[min(1, len(means) - 1)])
        known = {"baseline_reward": float(means[baseline])} if is_known else {}
        decision = policy.decide(rows, baseline=baseline, **known)
        yield decision.certificate.proof
        policy.observe(decision, float(np.clip(means[decision.action] + 0.1 * rng.normal(), 0.0, 1.0)))


def drawn_rows(count: int, dim: int, rng: np.random.Generator) -> Any:
    """Rows of length 0.2 to 1, without negative entries."""
    rows = np.abs(rng.normal(size=(count, dim)))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True) * rng.uniform(0.2, 1.0, (count, 1))


def new_policy(name: str, dim: int, length: float, rng: np.random.Generator) -> Any:
    """A policy with settings drawn from those that matter to its proofs."""
    settings: dict[str, Any] = {
        "dim": dim,
        "alpha": float(rng.choice([0.01, 0.1, 0.3])),
        "delta": 0.05,
        "noise": float(rng.choice([0.1, 0.5])),
        "ridge": float(rng.choice([0.3, 1.0])),
        "theta_bound": 1.05 * length,
        "feature_bound": 1.0,
    }
    if name == "CLUCB":
        return surefoot.CLUCB(**settings)
    if name == "CLUCB2":
        return surefoot.CLUCB2(**settings, nesting="latest")
    settings |= {"reward_range": (0.0, 1.0)} if rng.random() < 0.5 else {}
    settings |= {
        "gate": str(rng.choice(["facts", "joint", "ledger"])),
        "radius": str(rng.choice(["amm", "dual", "logdet", "residual"])),
    }
    return surefoot.SafeLUCB(**settings)


def split_over_facts(seed: int) -> Iterator[Proof]:
    """The best proofs from random facts of every kind, some of them with a box for what the pieces miss."""
    rng = np.random.default_rng(seed)
    for _ in range(40):
        dim = int(rng.integers(1, 6))
        theta = rng.normal(size=dim)
        root = np.linalg.cholesky(np.cov(rng.normal(size=(dim, dim + 5))).reshape(dim, dim) + 0.1 * np.eye(dim))
        facts: list[Any] = [
            Ball(1.1 * float(np.linalg.norm(theta))),
            Ellipsoid(theta + 0.1, np.asarray(root, dtype=np.float64), 1.0, 7),
        ]
        normals = rng.normal(size=(int(rng.integers(1, 5)), dim))
        facts += [Linear(normal, float(normal @ theta) - float(rng.exponential()), "range") for normal in normals]
        if rng.random() < 0.3:
            facts.append(Box(float(theta.min()) - 0.1, float(theta.max()) + 0.1))
        yield surefoot.prove(rng.normal(size=dim), facts)
        low = float(rng.normal())
        arms = [Linear(row, 0.1 * low, "floor") for row in np.eye(dim)]
        question = rng.normal(size=dim)
        parts = [(line, max(0.0, entry) * line.normal) for line, entry in zip(arms, question, strict=True)]
        yield surefoot.safety.assemble(question, parts, Box(low, low + float(rng.exponential())))


def guard_runs(seed: int) -> Iterator[GuardProof]:
    """The proofs of a guard's run: floors, ceilings, several metrics, both promises."""
    rng = np.random.default_rng(seed)
    kinds: list[dict[str, Any]] = [
        {"alpha": 0.2},
        {"alpha": 0.05, "reserve": 20.0, "ramp": "gate"},
        {"alpha": 0.2, "reward_bounds": (0.2, 1.0), "baseline_ceiling": 0.8, "ramp": "gate"},
        {"alpha": 0.2, "promise": "played", "reserve": 5.0},
        {"metrics": {"sales": surefoot.floor(0, 1, alpha=0.1), "cost": surefoot.ceiling(0, 1, alpha=0.3, reserve=9.0)}},
    ]
    settings = kinds[seed % len(kinds)]
    guard = surefoot.Guard(delta=0.05, seed=seed, **settings)
    means = dict(zip(("new", "old"), rng.uniform(0.4, 0.7, 2), strict=True))
    for _ in range(200):
        decision = guard.decide(baseline="old", proposal="new")
        yield decision.certificate.proof
        reward = float(np.clip(rng.normal(means[str(decision.action)], 0.2), 0.2, 1.0))
        guard.observe(decision, dict.fromkeys(guard.metrics, reward) if "metrics" in settings else reward)


# ---------------------------------------------------------------------------------- forged proofs

ODD = (0.0, -0.0, 5e-324, -1.0, 1e-9, 0.5, 1e12, -1e200, math.nan, math.inf, -math.inf)


def nudged(number: float, rng: np.random.Generator) -> float:
    """Another number: a few units in the last place away, a part of it, its opposite, or something odd."""
    way = rng.integers(6)
    if way == 0:
        return math.nextafter(number, math.inf)
    if way == 1:
        return math.nextafter(number, -math.inf)
    if way == 2:
        return number + abs(number) * float(rng.choice([1e-15, 1e-9, 1e-3, 0.5]))
    if way == 3:
        return number - abs(number) * float(rng.choice([1e-15, 1e-9, 1e-3, 0.5]))
    return -number if way == 4 else float(rng.choice(ODD))


def with_entry(vector: Any, rng: np.random.Generator) -> Any:
    """The array with one entry changed."""
    changed = np.array(vector, dtype=np.float64)
    if changed.size:
        place = tuple(int(rng.integers(n)) for n in changed.shape)
        changed[place] = nudged(float(changed[place]), rng)
    return changed


def forged_fact(fact: Any, rng: np.random.Generator) -> Any:
    """The fact with one number changed."""
    if isinstance(fact, Linear):
        if rng.random() < 0.5:
            return replace(fact, level=nudged(fact.level, rng))
        return replace(fact, normal=with_entry(fact.normal, rng))
    if isinstance(fact, Ellipsoid):
        name = ("radius", "center", "whitener")[int(rng.integers(3))]
        value = nudged(fact.radius, rng) if name == "radius" else with_entry(getattr(fact, name), rng)
        return replace(fact, **{name: value})
    if isinstance(fact, Box):
        return (
            replace(fact, low=nudged(fact.low, rng))
            if rng.random() < 0.5
            else replace(fact, high=nudged(fact.high, rng))
        )
    return replace(fact, radius=nudged(fact.radius, rng))


def is_finite(fact: Any) -> bool:
    """Whether all its numbers are; what is granted was declared by somebody, and has no others."""
    numbers = (getattr(fact, name, 0.0) for name in ("normal", "level", "radius", "center", "whitener", "low", "high"))
    return all(bool(np.isfinite(number).all()) for number in numbers)


def forged(case: Case, rng: np.random.Generator) -> Case:
    """An honest proof with something changed; whether it is still a proof, the checkers say."""
    proof, facts = case.proof, [*(piece.fact for piece in case.proof.pieces), case.proof.rest]
    known = [fact for fact in facts if fact is not None]
    pieces = list(proof.pieces)
    index = int(rng.integers(len(pieces))) if pieces else 0
    way = int(rng.integers(12))
    if way <= 1 or not pieces:
        proof = replace(proof, value=nudged(proof.value, rng))
    elif way == 2:
        pieces[index] = replace(pieces[index], bound=nudged(pieces[index].bound, rng))
    elif way == 3:
        pieces[index] = replace(pieces[index], vector=with_entry(pieces[index].vector, rng))
    elif way <= 5:
        pieces[index] = replace(pieces[index], fact=forged_fact(pieces[index].fact, rng))
    elif way == 6:
        del pieces[index]
    elif way == 7:
        pieces.append(pieces[index])
    elif way == 8:
        proof = replace(proof, question=with_entry(proof.question, rng))
    elif way == 9:
        rest = [None, Ball(0.5), Box(-1.0, 1.0), *known][int(rng.integers(3 + len(known)))]
        proof = replace(proof, rest=rest)
    elif way == 10:  # pieces that cancel each other
        weight, normal = float(rng.choice([1e6, 1e12, 1e60])), np.asarray(proof.question, dtype=np.float64)
        lines = Linear(normal, -1.0, "line"), Linear(-normal, -1.0, "line")
        pieces += [Piece(lines[0], weight * normal, -weight), Piece(lines[1], -weight * normal, -weight)]
        proof = replace(proof, value=nudged(proof.value, rng))
    else:
        pieces = [
            replace(piece, vector=np.append(piece.vector, 0.0)) if i == index else piece
            for i, piece in enumerate(pieces)
        ]
    proof = replace(proof, pieces=tuple(pieces))
    asked = [None, case.proof.question, with_entry(case.proof.question, rng)][int(rng.choice(3, p=[0.7, 0.2, 0.1]))]
    others = [fact for fact in (forged_fact(fact, rng) for fact in known) if is_finite(fact)]
    granted = [None, known, known[1:], others][int(rng.choice(4, p=[0.5, 0.3, 0.1, 0.1]))]
    return Case(proof, asked, granted)


def forged_guard(proof: GuardProof, rng: np.random.Generator) -> GuardProof:
    """A guard's proof with a number changed."""
    names = ("alpha", "low", "most", "delta", "share", "bound", "owed", "reserve", "carried", "coins")
    bank: BankProof = proof.banks[int(rng.integers(len(proof.banks)))]
    name = str(rng.choice([*names, "log_wealth", "sign"]))
    if name == "log_wealth":
        value: Any = with_entry(bank.log_wealth, rng).tolist()
        value = tuple(value if rng.random() < 0.9 else value[1:])
    else:
        value = nudged(getattr(bank, name), rng)
    changed = replace(bank, **{name: value})
    return replace(proof, banks=tuple(changed if each is bank else each for each in proof.banks))


# ---------------------------------------------------------------------------------- both checkers


class Coq:
    """The extracted checker, as a process that answers line by line."""

    def __init__(self, program: str) -> None:
        self.program = program

    def verdicts(self, lines: list[str]) -> list[str]:
        """What it says of every line."""
        answer = subprocess.run(
            [self.program], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True
        )
        return answer.stdout.split()


def batch(job: tuple[str, str, int]) -> Counter[str]:
    """One seed's proofs, honest or forged, before both checkers."""
    program, kind, seed = job
    rng = np.random.default_rng([seed, 7])
    if kind.startswith("guard"):
        cases = [Case(proof) for proof in guard_runs(seed)]
        if kind == "guard, forged":
            cases = [Case(forged_guard(case.proof, rng)) for case in cases]
    else:
        proofs = honest(seed) if seed % 4 else split_over_facts(seed)
        cases = [Case(proof) for proof in proofs]
        if kind == "forged":
            cases = [forged(case, rng) for case in cases]
    return compare(cases, Coq(program), our_check.check)


def compare(cases: list[Case], coq: Coq, check: Check, shown: int = 3) -> Counter[str]:
    """How often both accept, both refuse, and differ."""
    tally: Counter[str] = Counter()
    for case, theirs in zip(cases, coq.verdicts([case.line() for case in cases]), strict=True):
        ours = case.verdict(check)
        tally[ours if ours == theirs else "differ"] += 1
        if ours != theirs and tally["differ"] <= shown:
            print(f"  ours: {ours}, Coq's: {theirs}: {case!r:.1200}", file=sys.stderr)
    return tally


def to_the_last_bit() -> list[Case]:
    """Banks that hold exactly what our floats say that the round costs: the exact cost may be a bit more."""
    banks = (proof.banks[0] for seed in range(20) for proof in guard_runs(seed))
    return [Case(GuardProof((replace(bank, carried=bank.cost, bound=-1000.0),))) for bank in banks if bank.cost > 0.0]


def suite() -> list[Case]:
    """The forgers' suite, with the facts and questions that it names, and without."""
    each = [make() for make in FORGERIES.values()]
    return [Case(one.proof, one.question, one.facts) for one in each] + [
        Case(one.proof)
        for one in each
        if all(type(piece.fact) in (Linear, Ball, Ellipsoid, Box) for piece in one.proof.pieces)
    ]


# ---------------------------------------------------------------------------------- a checker that is broken

BROKEN = {
    "a linear fact bounds the opposite of its direction": (
        "if 0 < along < square << 1000", "if -square << 1000 < along < square << 1000"),
    "a box is taken at its better end": ("(high if entry < 0 else low)", "(low if entry < 0 else high)"),
    "a value may be 2^-30 too high": ("<< 2 * UNIT > proved:", "<< 2 * UNIT > proved + (1 << 4 * UNIT - 30):"),
    "a smaller radius is granted": ('("radius", fact, known)', '("radius", known, fact)'),
    "what the pieces miss is not charged": (
        "proved += _least(proof.rest, rest, None) if any(rest) else 0", "proved += 0"),
    "a piece's own claim is not looked at": ("<< 2 * UNIT > bound:", "<< 2 * UNIT > bound and False:"),
}  # fmt: skip


def broken_check(old: str, new: str) -> Check:
    """Our checker with one place of its source changed."""
    source = Path(str(our_check.__file__)).read_text(encoding="utf-8")
    if source.count(old) != 1:
        raise SystemExit(f"{old!r} must stand once in safety/check.py, so that it can be broken there.")
    module = ModuleType("broken_check")
    exec(compile(source.replace(old, new), "broken_check.py", "exec"), module.__dict__)
    check: Check = module.check
    return check


def report(kind: str, tally: Counter[str]) -> bool:
    """Say what was seen; whether no verdict differs."""
    print(
        f"{kind + ':':26}{tally.total():8,} proofs, {tally['accept']:7,} accepted, {tally['refuse']:7,} refused, "
        f"{tally['differ']} verdicts differ",
        flush=True,
    )
    return tally["differ"] == 0


def main() -> int:
    """Compare, and say what was seen; 1 where a verdict differs, or a broken checker is not found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--proofs", type=int, default=100_000, help="of each kind, honest and forged (%(default)s)")
    parser.add_argument("--guards", type=int, default=10_000, help="proofs of guards, of each kind (%(default)s)")
    told = parser.parse_args()
    kinds = {"honest": told.proofs, "forged": told.proofs, "guard": told.guards, "guard, forged": told.guards}
    is_good = True
    with Pool(2) as pool:
        for kind, enough in kinds.items():
            tally, first = Counter[str](), 0
            while tally.total() < enough:
                for part in pool.map(batch, [(told.program, kind, seed) for seed in range(first, first + 16)]):
                    tally += part
                first += 16
            is_good &= report(kind, tally)
    coq, cases = Coq(told.program), suite()
    is_good &= report("the forgers' suite", compare(cases, coq, our_check.check))
    is_good &= report("paid to the bit", compare(to_the_last_bit(), coq, our_check.check))

    rng = np.random.default_rng(7)
    honest_proofs = (proof for seed in range(40) for proof in (honest(seed) if seed % 4 else split_over_facts(seed)))
    cases += [forged(Case(proof), rng) for proof in honest_proofs]
    theirs = coq.verdicts([case.line() for case in cases])
    for name, (old, new) in BROKEN.items():
        check = broken_check(old, new)
        differ = sum(case.verdict(check) != verdict for case, verdict in zip(cases, theirs, strict=True))
        is_good &= differ > 0
        print(f"broken on purpose, {name}: {'found' if differ else 'NOT FOUND'} ({differ} of {len(cases):,} differ)")
    return int(not is_good)


if __name__ == "__main__":
    sys.exit(main())
