"""Replay: logged data in, evaluation out; what would a policy have done on our own logs?"""

from typing import TYPE_CHECKING

from surefoot._lazy import lazy

if TYPE_CHECKING:
    from surefoot.replay import datasets as datasets
    from surefoot.replay.baseline_fit import fit_baseline as fit_baseline
    from surefoot.replay.batch import ArrayLog as ArrayLog
    from surefoot.replay.columns import Columns as Columns
    from surefoot.replay.estimators import replay as replay
    from surefoot.replay.fitted_configuration import configuration_of as configuration_of
    from surefoot.replay.fitted_configuration import read_configuration as read_configuration
    from surefoot.replay.guarded_lucb import guarded as guarded
    from surefoot.replay.open_log import read_log as read_log
    from surefoot.replay.propensity_model import estimate_propensities as estimate_propensities
    from surefoot.replay.replay_figures import lift_figure as lift_figure
    from surefoot.replay.replay_figures import margin_figure as margin_figure
    from surefoot.replay.replay_figures import reward_figure as reward_figure
    from surefoot.replay.replay_figures import share_figure as share_figure
    from surefoot.replay.replay_text import verdict_of as verdict_of
    from surefoot.replay.replayed_policy import Declared as Declared
    from surefoot.replay.warm_start import history as history

__getattr__, __dir__ = lazy(
    __name__,
    {
        "": ("datasets",),
        "baseline_fit": ("fit_baseline",),
        "batch": ("ArrayLog",),
        "columns": ("Columns",),
        "estimators": ("replay",),
        "fitted_configuration": ("configuration_of", "read_configuration"),
        "guarded_lucb": ("guarded",),
        "open_log": ("read_log",),
        "propensity_model": ("estimate_propensities",),
        "replay_figures": ("lift_figure", "margin_figure", "reward_figure", "share_figure"),
        "replay_text": ("verdict_of",),
        "replayed_policy": ("Declared",),
        "warm_start": ("history",),
    },
)

__all__ = [
    "ArrayLog",
    "Columns",
    "Declared",
    "configuration_of",
    "datasets",
    "estimate_propensities",
    "fit_baseline",
    "guarded",
    "history",
    "lift_figure",
    "margin_figure",
    "read_configuration",
    "read_log",
    "replay",
    "reward_figure",
    "share_figure",
    "verdict_of",
]
