"""Real data as logs, read from packages that carry them; nothing is copied here.

Each function says where its data come from, what an action and its reward are, and what plays the baseline.
"""

import importlib
from importlib.resources import files
from typing import Any

import numpy as np
import polars as pl

from surefoot.arrays import Matrix
from surefoot.errors import ConfigError
from surefoot.linear.features import Disjoint
from surefoot.replay.log import ContextLog, classification
from surefoot.replay.table_log import ColumnRanges

PATIENT = ("age", "wtkg", "karnof", "cd40", "cd80", "hemo", "drugs", "symptom", "str2")
ARMS = ("zidovudine", "zidovudine + didanosine", "zidovudine + zalcitabine", "didanosine")
PLANS = ("free", "25%", "50%", "95%", "100%")
HEALTH = ("physlm", "disea", "hlthg", "hlthf", "hlthp")


def actg175() -> ContextLog:
    """AIDS Clinical Trials Group Study 175, from `lifelines`: 2,139 patients, randomised to four treatments.

    Reward: 1 if the CD4 count after 20 weeks is no lower than before. Baseline: zidovudine alone, the treatment of that
    time. Every arm had the same probability, so rejection replay is unbiased. (Hammer et al. 1996)
    """
    _package("lifelines")
    table = pl.read_csv(str(files("lifelines") / "datasets" / "ACTG175.csv"))
    return ContextLog(
        contexts=_encoded(table.select(PATIENT)),
        phi=Disjoint(actions=4, context_dim=len(PATIENT), context_bound=1.0),
        actions=table["arms"].to_numpy(),
        rewards=(table["cd420"] >= table["cd40"]).to_numpy().astype(float),
        baselines=0,
        propensities=np.full(table.height, 0.25),
        names=ARMS,
        name="ACTG175",
    )


def digits(*, trained_on: int = 60, directions: int = 6) -> ContextLog:
    """Handwritten digits, from scikit-learn: 1,797 pictures of 8 x 8 points, projected on a few principal directions.

    An action is a guess, and pays 1 if it is right. Directions come from the first pictures, and the baseline is the
    nearest of their ten means; those pictures are not part of the log.

    Parameters
    ----------
    trained_on : int
        Pictures from which directions and baseline come.
    directions : int
        Number of principal directions.
    """
    data = _package("sklearn.datasets").load_digits()
    points = data.images.reshape(len(data.images), -1) / 16
    middle = points[:trained_on].mean(axis=0)
    axes = np.linalg.svd(points[:trained_on] - middle)[2][:directions]
    seen = (points - middle) @ axes.T
    guesses = _nearest_mean(seen[:trained_on], data.target[:trained_on], seen[trained_on:])
    return classification(seen[trained_on:], data.target[trained_on:], baselines=guesses, name="digits")


def wine(*, trained_on: int = 12) -> ContextLog:
    """Wines of three growers by thirteen measurements, from scikit-learn: 178 bottles, shuffled with a fixed seed.

    Baseline: the nearest of three means over the first bottles by alcohol and colour alone.

    Parameters
    ----------
    trained_on : int
        Bottles from which the baseline comes.
    """
    data = _package("sklearn.datasets").load_wine()
    # The table is sorted by grower.
    order = np.random.default_rng(0).permutation(len(data.target))
    values = (data.data - data.data.min(axis=0)) / (data.data.max(axis=0) - data.data.min(axis=0))
    values, labels, few = values[order], data.target[order], [0, 9]
    guesses = _nearest_mean(values[:trained_on, few], labels[:trained_on], values[trained_on:, few])
    return classification(values[trained_on:], labels[trained_on:], baselines=guesses, name="wine")


def rand_hie() -> ContextLog:
    """The RAND Health Insurance Experiment, from `statsmodels`: 20,190 person-years, families randomised to five plans.

    An action is the share of the bill that families pay; reward 1 if the person saw a doctor that year. Baseline: the
    95% plan. Propensities are the plans' shares, since those of the randomisation are not in the data. Rows of one
    person follow one another: they are not independent, and intervals are too narrow by that.
    """
    data = _package("statsmodels.api").datasets.randhie.load_pandas().data
    table = pl.DataFrame({name: data[name].to_numpy() for name in data.columns})
    # The logarithm of the share that is paid: sorted, the plans stand in the order of PLANS.
    plans = np.unique(table["lncoins"].to_numpy(), return_inverse=True)[1]
    shares = np.bincount(plans) / plans.size
    return ContextLog(
        contexts=_encoded(table.select(HEALTH)),
        phi=Disjoint(actions=5, context_dim=len(HEALTH), context_bound=1.0),
        actions=plans,
        rewards=(table["mdvis"] > 0).to_numpy().astype(float),
        baselines=PLANS.index("95%"),
        propensities=shares[plans],
        names=PLANS,
        name="RAND health insurance",
    )


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        package = {"sklearn.datasets": "scikit-learn"}.get(name, name.split(".")[0])
        raise ConfigError(f"This dataset needs {package}, which is not installed: pip install {package}") from None


def _encoded(contexts: pl.DataFrame) -> Matrix:
    ranges = ColumnRanges()
    ranges.look_at(contexts)
    return ranges.encoder().encode(contexts)


def _nearest_mean(known: Matrix, labels: Any, asked: Matrix) -> Any:
    means = np.stack([known[labels == label].mean(axis=0) for label in np.unique(labels)])
    return ((asked[:, None, :] - means[None]) ** 2).sum(axis=2).argmin(axis=1)
