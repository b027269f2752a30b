"""A lane: the way to one experiment, with a limit to how many may wait on it."""

import asyncio
from concurrent.futures import Executor
from typing import Any

from surefoot.experiment import AsyncExperiment, Experiment
from surefoot.experiment.asynchronous import Gathered
from surefoot.service.problems import ProblemError


class Lane(AsyncExperiment):
    """An experiment that turns callers away when too many wait."""

    def __init__(self, experiment: Experiment, executor: Executor, *, most: int) -> None:
        super().__init__(experiment, executor=executor)
        self._most = most

    def _put(self, waiting: Gathered, ready: list[Any]) -> asyncio.Future[list[Any]]:
        if waiting.size + len(ready) > self._most:
            raise ProblemError("busy", f"{waiting.size} requests wait for this experiment already.", Retry_After="1")
        return super()._put(waiting, ready)
