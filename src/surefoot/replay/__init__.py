"""Replay: logged data in, evaluation out; what would a policy have done on our own logs?"""

from surefoot.replay.configuration import configuration_of, read_configuration
from surefoot.replay.evaluate import replay
from surefoot.replay.fit import fit_baseline
from surefoot.replay.history import history
from surefoot.replay.reading import read_log

__all__ = ["configuration_of", "fit_baseline", "history", "read_configuration", "read_log", "replay"]
