"""Experiments: a policy, a journal and a clock in one object, what it answers, and where it stands."""

from surefoot.experiment.asynchronous import AsyncExperiment
from surefoot.experiment.configuration import Configuration, read_configuration
from surefoot.experiment.creation import create_shared
from surefoot.experiment.experiment import Experiment, read_status
from surefoot.experiment.export import export
from surefoot.experiment.fork import Fork, fork
from surefoot.experiment.removal import archive, delete
from surefoot.experiment.restore import restore
from surefoot.experiment.status import GuardStatus, HubStatus, Lift, MetricStatus, ShardStatus, Status
from surefoot.rounds import Answer, Receipt

__all__ = [
    "Answer",
    "AsyncExperiment",
    "Configuration",
    "Experiment",
    "Fork",
    "GuardStatus",
    "HubStatus",
    "Lift",
    "MetricStatus",
    "Receipt",
    "ShardStatus",
    "Status",
    "archive",
    "create_shared",
    "delete",
    "export",
    "fork",
    "read_configuration",
    "read_status",
    "restore",
]
