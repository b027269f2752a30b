"""Write wrong variants into the proofs, one at a time, and see that each is noticed: its lemma no longer compiles.

A proof that survives a wrong statement proves nothing. For every variant it is said which lemma must fail, and a
failure anywhere else does not count. `Wrong.v` shows for the first five that what they say is false.

    python proofs/mutations.py
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
FILES = [line for line in (HERE / "_CoqProject").read_text(encoding="utf-8").split() if line.endswith(".v")]


class Variant(NamedTuple):
    """A change to one file, and the lemma that must no longer hold."""

    name: str
    file: str
    old: str
    new: str
    fails: tuple[str, str]


VARIANTS = (
    Variant(
        "a balance after the coin", "Guard.v",
        "forall m l, In m (metrics g) -> fixed_before (bets g m l).",
        "forall m l, In m (metrics g) -> forall h : history, bets g m l h 0 = bets g m l h 0.",
        ("Bank.v", "wealth_at_most_bets"),
    ),
    Variant(
        "a bet without its cost", "Bets.v",
        "exp (l * slack_of p a b) * (1 + coefficient l p U * (y - if U then a else b))\n    | AtWorst",
        "1 * (1 + coefficient l p U * (y - if U then a else b))\n    | AtWorst",
        ("Bets.v", "fair_bet"),
    ),
    Variant(
        "a gate that forgets the reserve", "Leases.v",
        "books g m h a -> ever (bank_wrong g m) h = false -> - reserve m <= slack g m h.",
        "books g m h a -> ever (bank_wrong g m) h = false -> 0 <= slack g m h.",
        ("Leases.v", "books_keep_the_floor"),
    ),
    Variant(
        "delta not split", "Guard.v",
        "fold_right (fun m sum => delta m + sum) 0 (metrics g) <= total.",
        "forall m, In m (metrics g) -> delta m <= total.",
        ("Promise.v", "promise_kept"),
    ),
    Variant(
        "a missing reward counted as 0", "Bets.v",
        "missing : entry_of l p B U y (least_factor l p B U)",
        "missing : entry_of l p B U y (factor l p B U 0)",
        ("Bets.v", "entry_is_at_most_its_bet"),
    ),
    Variant(
        "a round at its worst that costs nothing", "Bets.v",
        "| AtWorst => exp (- (l * worst_of p))", "| AtWorst => exp (- (l * 0))",
        ("Bets.v", "fair_bet"),
    ),
    Variant(
        "a gate that forgets what is leased", "Leases.v",
        "books h a -> pays (next_worst g m h) (held a - leased a) ->",
        "books h a -> pays (next_worst g m h) (held a) ->",
        ("Leases.v", "books_are_in_order"),
    ),
    Variant(
        "open rounds that are not charged", "Leases.v",
        "(x + reserve m - total is_charged opened h (next_worst g m))", "(x + reserve m)",
        ("Leases.v", "books_are_in_order"),
    ),
    Variant(
        "a late round that is left out although its actions differ", "Bets.v",
        "agreeing_late : B = Agreeing ->", "agreeing_late : B = B ->",
        ("Bets.v", "entry_is_at_most_its_bet"),
    ),
    Variant(
        "a root that may be too small", "Checker.v",
        "if (0 <=? r) && (s <=? r * r) then", "if (0 <=? r) && (0 <=? r * r) then",
        ("Checker.v", "root_above_true"),
    ),
    Variant(
        "a linear fact with a negative weight", "Checker.v",
        "if (0 <=? weight) && same", "if (weight <=? weight) && same",
        ("Checker.v", "bound_true"),
    ),
    Variant(
        "an exponential that is rounded up", "Exponential.v",
        "square_down n' (y * y / fine)", "square_down n' (y * y / fine + 1)",
        ("Exponential.v", "square_down_below"),
    ),
)  # fmt: skip


def failure(variant: Variant) -> tuple[str, str, str] | None:
    """Where the files fail with the variant in them: file, lemma, and what Coq says. None if they compile."""
    with tempfile.TemporaryDirectory() as folder:
        for name in FILES:
            for path in (HERE / name, (HERE / name).with_suffix(".vo")):
                shutil.copy2(path, folder)
        (Path(folder) / "build").mkdir()
        text = (HERE / variant.file).read_text(encoding="utf-8")
        if text.count(variant.old) != 1:
            raise SystemExit(f"{variant.old!r} must stand once in {variant.file}, so that it can be changed there.")
        (Path(folder) / variant.file).write_text(text.replace(variant.old, variant.new), encoding="utf-8")
        for name in FILES[FILES.index(variant.file) :]:
            result = subprocess.run(
                ["coqc", "-R", ".", "Surefoot", name], cwd=folder, capture_output=True, text=True, check=False
            )
            if result.returncode:
                return name, lemma_at(Path(folder) / name, result.stderr), result.stderr
    return None


def lemma_at(path: Path, errors: str) -> str:
    """The lemma that the error's line stands in."""
    line = int(re.search(r"line (\d+), characters", errors)[1])  # type: ignore[index]
    before = "\n".join(path.read_text(encoding="utf-8").split("\n")[:line])
    names: list[str] = re.findall(r"^ *(?:Lemma|Theorem) (\w+)", before, flags=re.MULTILINE)
    return names[-1] if names else ""


def main() -> int:
    """Try every variant; 1 where one is not noticed, or fails somewhere else."""
    missed = 0
    for variant in VARIANTS:
        where = failure(variant)
        is_noticed = where is not None and where[:2] == variant.fails
        missed += not is_noticed
        at = "it compiles" if where is None else f"{where[0]}: {where[1]} no longer holds"
        print(f"{'noticed' if is_noticed else 'MISSED'}: {variant.name} ({at})", flush=True)
        if where is not None and not is_noticed:
            print(where[2], file=sys.stderr)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
