"""Replay: logged data in, evaluation out; what would a policy have done on our own logs?"""

from typing import TYPE_CHECKING

from surefoot._lazy import lazy

if TYPE_CHECKING:
    from surefoot.replay import datasets as datasets
    from surefoot.replay.baseline_fit import configuration_of as configuration_of
    from surefoot.replay.baseline_fit import fit_baseline as fit_baseline
    from surefoot.replay.baseline_fit import read_configuration as read_configuration
    from surefoot.replay.columns import Columns as Columns
    from surefoot.replay.comparison import compare as compare
    from surefoot.replay.evaluation import replay as replay
    from surefoot.replay.log import ArrayLog as ArrayLog
    from surefoot.replay.log import history as history
    from surefoot.replay.propensities import estimate_propensities as estimate_propensities
    from surefoot.replay.replayed_policy import Declared as Declared
    from surefoot.replay.replayed_policy import guarded as guarded
    from surefoot.replay.report import reward_figure as reward_figure
    from surefoot.replay.table_log import read_log as read_log
    from surefoot.replay.verdict import verdict_of as verdict_of

__getattr__, __dir__ = lazy(
    __name__,
    {
        "": ("datasets",),
        "baseline_fit": ("configuration_of", "fit_baseline", "read_configuration"),
        "columns": ("Columns",),
        "comparison": ("compare",),
        "evaluation": ("replay",),
        "log": ("ArrayLog", "history"),
        "propensities": ("estimate_propensities",),
        "replayed_policy": ("Declared", "guarded"),
        "report": ("reward_figure",),
        "table_log": ("read_log",),
        "verdict": ("verdict_of",),
    },
)

__all__ = [
    "ArrayLog",
    "Columns",
    "Declared",
    "compare",
    "configuration_of",
    "datasets",
    "estimate_propensities",
    "fit_baseline",
    "guarded",
    "history",
    "read_configuration",
    "read_log",
    "replay",
    "reward_figure",
    "verdict_of",
]
