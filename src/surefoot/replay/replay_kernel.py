"""The compiled loops over a log: the policies' own steps, fed with logged rounds instead of simulated ones."""

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, Vector
from surefoot.compiled import compiled, compiled_apart
from surefoot.linear.ridge import absorb
from surefoot.linear.ridge_layout import theta_of
from surefoot.linear.scores import SCREEN_FROM, first_bad_row, score_rows
from surefoot.safety.paper_gates import GUARANTEED, REQUIRED
from surefoot.simulation.simulation_kernel import decide_round, does_teach, learn_round

# How a logged round answers a decision.
REJECTION, IMPORTANCE, FULL = range(3)
# What became of a row.
REJECTED, BASELINE, LEARNER = range(3)


@compiled
def copy_into(target: Vector, source: Vector) -> None:
    """Copy one array over another of its size."""
    for i in range(source.size):
        target[i] = source[i]


@compiled_apart
def replay_block(
    mode: int,
    kind: int,
    settings: Vector,
    state: Vector,
    ledger: Vector,
    memory: Vector,
    arms: Matrix,
    scores: Matrix,
    record: Vector,
    columns: Matrix,
    booked: Vector,
    remembered: Vector,
    features: NDArray[np.float64],
    baselines: NDArray[np.int64],
    known: Vector,
    is_told: bool,
    actions: NDArray[np.int64],
    rewards: Matrix,
    usable: NDArray[np.bool_],
    rounds: int,
    chosen: NDArray[np.int64],
    fates: NDArray[np.int64],
    margins: Vector,
) -> int:
    """Take one policy through a block of logged rows; returns the first row with features beyond their bound, or -1.

    `rewards` has one column, the logged action's, or one per action in mode FULL. A rejected row leaves the policy as
    it was: ledger and memory are put back, and nothing is learned. `rounds` were counted before this block. Rows were
    checked once for all policies (`first_long`), so that here they are scored right away.
    """
    # Beyond this size a decision screens rows in single precision, and scores only some of them.
    scored = min(features.shape[1], features.shape[2]) < SCREEN_FROM
    for t in range(actions.size):
        chosen[t], fates[t], margins[t] = -1, REJECTED, np.nan
        if not usable[t]:
            continue
        if mode == REJECTION:
            # The ridge state needs no copy: deciding changes hints in it, and nothing that it says.
            copy_into(booked, ledger)
            copy_into(remembered, memory)
        if scored:
            score_rows(state, features[t], scores)
        row, is_learner = decide_round(
            kind,
            settings,
            state,
            ledger,
            memory,
            arms,
            features[t],
            scored,
            scores,
            baselines[t],
            known[t],
            is_told,
            rounds + 1,
            record,
        )
        if row < 0:
            return t
        chosen[t] = row
        if mode == REJECTION and row != actions[t]:
            copy_into(ledger, booked)
            copy_into(memory, remembered)
            continue
        if mode == IMPORTANCE:
            # Every logged row is learned from, whoever played it, as a warm start does: any data may enter the set.
            absorb(state, features[t, actions[t]], rewards[t, 0])
        elif does_teach(kind, memory, is_learner):
            reward = rewards[t, row] if mode == FULL else rewards[t, 0]
            learn_round(
                kind, state, memory, arms, features[t, row], row, is_learner, reward, features[t], columns, scores
            )
        rounds += 1
        fates[t] = LEARNER if is_learner else BASELINE
        margins[t] = record[GUARANTEED] - record[REQUIRED]
    return -1


@compiled_apart
def first_long(features: NDArray[np.float64], bound: float) -> int:
    """The first round with a row that is longer than the bound or not finite, or -1."""
    for t in range(features.shape[0]):
        if first_bad_row(features[t], bound) >= 0:
            return t
    return -1


@compiled_apart
def predict_block(
    state: Vector, features: NDArray[np.float64], actions: NDArray[np.int64], rewards: Vector, predicted: Matrix
) -> None:
    """Predict every action's reward from the rows before it, then learn the row: no prediction has seen its reward."""
    for t in range(actions.size):
        theta = theta_of(state)
        for a in range(features.shape[1]):
            total = 0.0
            for j in range(theta.size):
                total += theta[j] * features[t, a, j]
            predicted[t, a] = total
        absorb(state, features[t, actions[t]], rewards[t])
