"""Experiments: a policy, a journal and a clock; decisions that are durable before they are returned."""

from surefoot.experiment.answer import Answer, Receipt
from surefoot.experiment.async_experiment import AsyncExperiment
from surefoot.experiment.experiment import Experiment
from surefoot.experiment.experiment_toml import read_configuration
from surefoot.experiment.forking import Fork, fork
from surefoot.experiment.guard_answer import GuardAnswer
from surefoot.experiment.guard_question import GuardQuestion
from surefoot.experiment.guard_status import GuardStatus
from surefoot.experiment.lift import Lift
from surefoot.experiment.modes import MODES
from surefoot.experiment.question import Question
from surefoot.experiment.sharded import ShardedExperiment
from surefoot.experiment.sharded_creation import create_sharded
from surefoot.experiment.status import Status

__all__ = [
    "MODES",
    "Answer",
    "AsyncExperiment",
    "Experiment",
    "Fork",
    "GuardAnswer",
    "GuardQuestion",
    "GuardStatus",
    "Lift",
    "Question",
    "Receipt",
    "ShardedExperiment",
    "Status",
    "create_sharded",
    "fork",
    "read_configuration",
]
