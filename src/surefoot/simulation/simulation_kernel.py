"""The compiled loop: one policy through a block of rounds of one realisation, by the policies' own step functions."""

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, Vector
from surefoot.compiled import compiled, compiled_apart
from surefoot.linear.catalogue import learn_catalogue
from surefoot.linear.ridge import absorb
from surefoot.policies.arm_policy import observe_arm
from surefoot.policies.clucb import clucb_step
from surefoot.policies.clucb2 import clucb2_step
from surefoot.policies.conservative_ucb import conservative_ucb_step
from surefoot.policies.linear_step import FREE
from surefoot.policies.lucb import lucb_step
from surefoot.policies.safe_lucb import safe_step
from surefoot.policies.ucb import ucb_step
from surefoot.safety.safe_state import remember_reward, teaches, tell
from surefoot.simulation.rewards import reward_of

LUCB, CLUCB, CLUCB2, UCB, CONSERVATIVE_UCB, SAFE_LUCB = range(6)

# What is counted along a run; violations follow, one number per watched alpha.
ROUND, REGRET, EARNED, OWED, BASELINE_ROUNDS, LAST_BASELINE, WORST_SHARE, TALLY_HEAD = range(8)

SLACK = 1e-12  # relative rounding of the sums that a violation is judged by


@compiled
def largest(means: Matrix, k: int) -> float:
    """The best mean reward of one round."""
    best = means[k, 0]
    for i in range(1, means.shape[1]):
        best = max(best, means[k, i])
    return float(best)


@compiled
def count_round(tally: Vector, watched: Vector, mean: float, best: float, owed: float, is_learner: bool) -> None:
    """Add one round to the counts, and judge the constraint by the true means for every watched alpha."""
    tally[ROUND] += 1.0
    tally[REGRET] += best - mean
    tally[EARNED] += mean
    tally[OWED] += owed
    if not is_learner:
        tally[BASELINE_ROUNDS] += 1.0
        tally[LAST_BASELINE] = tally[ROUND]
    # As long as nothing is owed there is no share to speak of.
    if tally[OWED] > 0.0:
        tally[WORST_SHARE] = min(tally[WORST_SHARE], tally[EARNED] / tally[OWED])
    for i in range(watched.size):
        if tally[EARNED] < (1.0 - watched[i]) * tally[OWED] * (1.0 - SLACK):
            tally[TALLY_HEAD + i] += 1.0


@compiled
def learn_round(
    kind: int,
    state: Vector,
    memory: Vector,
    arms: Matrix,
    features: Vector,
    row: int,
    is_learner: bool,
    reward: float,
    rows: Matrix,
    columns: Matrix,
    scores: Matrix,
) -> None:
    """Let the policy learn the reward of a round that teaches."""
    if kind in (UCB, CONSERVATIVE_UCB):
        observe_arm(arms, row, reward)
        return
    if columns.size > 0:
        learn_catalogue(state, features, reward, rows, columns, scores)
    else:
        absorb(state, features, reward)
    if kind == SAFE_LUCB and is_learner:
        remember_reward(memory, features, reward)


@compiled
def does_teach(kind: int, memory: Vector, is_learner: bool) -> bool:
    """Whether the reward of the round just decided will be learned."""
    if kind == SAFE_LUCB:
        return teaches(memory, is_learner)
    return is_learner or kind != CLUCB


@compiled
def decide_round(
    kind: int,
    settings: Vector,
    state: Vector,
    ledger: Vector,
    memory: Vector,
    arms: Matrix,
    rows: Matrix,
    cached: bool,
    scores: Matrix,
    baseline: int,
    known: float,
    is_told: bool,
    round_: int,
    record: Vector,
) -> tuple[int, bool]:
    """The row that the policy plays, and whether it is the learner's."""
    if kind == LUCB:
        return lucb_step(settings, state, ledger, memory, rows, cached, scores, -1, known, FREE, record)
    if kind == CLUCB:
        action, is_learner = clucb_step(
            settings, state, ledger, memory, rows, cached, scores, baseline, known, FREE, record
        )
    elif kind == CLUCB2:
        action, is_learner = clucb2_step(
            settings, state, ledger, memory, rows, cached, scores, baseline, 0.0, FREE, record
        )
    elif kind == SAFE_LUCB:
        tell(settings, memory, known if is_told else 0.0, known if is_told else np.inf)
        action, is_learner = safe_step(
            settings, state, ledger, memory, rows, cached, scores, baseline, 0.0, FREE, record
        )
    elif kind == UCB:
        return ucb_step(arms, settings[0], round_, FREE)[0], True
    else:
        action, is_learner, _, _ = conservative_ucb_step(arms, settings, baseline, round_, FREE, scores)
    return (action if is_learner or action < 0 else baseline), is_learner


@compiled_apart
def play_block(
    kind: int,
    settings: Vector,
    state: Vector,
    ledger: Vector,
    memory: Vector,
    arms: Matrix,
    scores: Matrix,
    record: Vector,
    pending: Matrix,
    features: NDArray[np.float64],
    columns: Matrix,
    means: Matrix,
    baselines: NDArray[np.int64],
    draws: Vector,
    delays: NDArray[np.int64],
    is_told: bool,
    reward_kind: int,
    reward_scale: float,
    watched: Vector,
    tally: Vector,
    trace: NDArray[np.int64],
    checkpoints: NDArray[np.int64],
    kept: Matrix,
) -> int:
    """Play a block of rounds; counts at checkpoints go to `kept`, actions to `trace` if that has room.

    `pending` holds one row per reward that has not arrived: round due (0: free), row, is_learner, reward, features.
    Returns -1, or the first round whose features are longer than their bound.
    """
    is_fixed = features.shape[0] == 1
    cached = columns.size > 0
    best = largest(means, 0)
    place = 0
    # A run comes block by block, and continues behind the checkpoints of earlier ones.
    while place < checkpoints.size and checkpoints[place] <= tally[ROUND]:
        place += 1
    for t in range(draws.size):
        k = 0 if is_fixed else t
        if not is_fixed:
            best = largest(means, k)
        round_ = int(tally[ROUND]) + 1
        if pending.shape[0] > 0:
            learn_due(kind, state, memory, arms, pending, round_, features[k], columns, scores)
        baseline = baselines[t]
        owed = means[k, baseline]
        row, is_learner = decide_round(
            kind,
            settings,
            state,
            ledger,
            memory,
            arms,
            features[k],
            cached,
            scores,
            baseline,
            owed,
            is_told,
            round_,
            record,
        )
        if row < 0:
            return round_
        mean = means[k, row]
        reward = reward_of(reward_kind, reward_scale, mean, draws[t])
        played = features[k, row]
        if not does_teach(kind, memory, is_learner):
            pass
        elif pending.shape[0] > 0:  # even an immediate reward waits for those decided before
            put(pending, round_ + delays[t], row, is_learner, reward, played)
        else:
            learn_round(kind, state, memory, arms, played, row, is_learner, reward, features[k], columns, scores)
        count_round(tally, watched, mean, best, owed, is_learner)
        if t < trace.shape[0]:
            trace[t] = row if is_learner else -1 - row
        if place < checkpoints.size and checkpoints[place] == round_:
            for j in range(tally.size):
                kept[place, j] = tally[j]
            place += 1
    return -1


@compiled_apart
def put(pending: Matrix, due: int, row: int, is_learner: bool, reward: float, features: Vector) -> None:
    """Keep a reward until it is due, behind those that were decided before."""
    for i in range(pending.shape[0]):
        if pending[i, 0] == 0.0:
            pending[i, 0], pending[i, 1], pending[i, 2], pending[i, 3] = due, row, is_learner, reward
            for j in range(features.size):
                pending[i, 4 + j] = features[j]
            return


@compiled_apart
def learn_due(
    kind: int,
    state: Vector,
    memory: Vector,
    arms: Matrix,
    pending: Matrix,
    round_: int,
    rows: Matrix,
    columns: Matrix,
    scores: Matrix,
) -> None:
    """Learn in the order of the decisions, up to the first reward that has not arrived before this round."""
    done = 0
    while done < pending.shape[0] and 0.0 < pending[done, 0] <= round_:
        row, is_learner = int(pending[done, 1]), pending[done, 2] > 0.0
        # Rows matter to a catalogue only, and its rows are the same in every round.
        learn_round(
            kind, state, memory, arms, pending[done, 4:], row, is_learner, pending[done, 3], rows, columns, scores
        )
        done += 1
    if done == 0:
        return
    left = 0
    for i in range(done, pending.shape[0]):
        if pending[i, 0] == 0.0:
            break
        for j in range(pending.shape[1]):
            pending[left, j] = pending[i, j]
        left += 1
    for i in range(left, left + done):
        pending[i, 0] = 0.0
