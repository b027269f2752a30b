"""How long a replay will take, from its first rows."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

from surefoot.replay.batch import Log
from surefoot.replay.estimators import MODES, EvaluatorName
from surefoot.replay.memory_need import check_memory, replayed_matrices
from surefoot.replay.propensities import check_rewards
from surefoot.replay.replayed_policy import Declared, check_length, log_player
from surefoot.simulation.policy_specs import as_specs

REHEARSED = 32  # rows
LONG = 30.0  # seconds from which on one wants to know before


def expected_seconds(log: Log, specs: Sequence[Any], *, declared: Declared, evaluator: EvaluatorName) -> float | None:
    """What all policies need for the whole log if they go on as in its first rows; None where its length is unknown."""
    first = next(iter(log.compact_batches()), None)
    if first is None or log.rows is None:
        return None
    policies = as_specs(specs)
    check_memory(log, replayed_matrices(policies, first.blocks))
    part = first.part(0, REHEARSED)
    check_length(part, log.feature_bound)
    check_rewards(part, declared)
    players = [log_player(spec, declared, log, mode=MODES[evaluator], seed=0) for spec in policies]
    begun = perf_counter()
    for player in players:
        player.play(part, part.rewards, np.ones(len(part), dtype=np.bool_))
    return (perf_counter() - begun) * log.rows / len(part)


def told(seconds: float, log: Log) -> str:
    """The wait in words."""
    wait = f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"
    return f"About {wait}, for {log.rows:,} rows of {len(log.actions)} actions x {log.dim} features."
