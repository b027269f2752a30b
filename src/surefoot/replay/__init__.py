"""Replay: logged data in, evaluation out; what would a policy have done on our own logs?"""

from surefoot.replay.baseline_fit import fit_baseline
from surefoot.replay.estimators import replay
from surefoot.replay.experiment_toml import configuration_of, read_configuration
from surefoot.replay.open_log import read_log
from surefoot.replay.warm_start import history

__all__ = ["configuration_of", "fit_baseline", "history", "read_configuration", "read_log", "replay"]
