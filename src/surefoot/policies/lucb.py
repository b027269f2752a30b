"""LUCB: optimism alone, the learner without a floor."""

import math

from surefoot.arrays import Matrix, Vector
from surefoot.compiled import compiled, compiled_apart
from surefoot.linear.ellipsoid import Ball, Ellipsoid, support
from surefoot.linear.radius import radius_of
from surefoot.linear.scores import propose
from surefoot.policies.linear import LinearPolicy
from surefoot.safety.gates import BETA, GUARANTEED, OPTIMISM, RADIUS, REQUIRED, note_played, part_of, pose, vectors_of
from surefoot.safety.ledger import book_learner
from surefoot.safety.proof import Proof, prove


@compiled
def lucb_judge(
    settings: Vector,
    state: Vector,
    ledger: Vector,
    proposal: Vector,
    displaced: Vector,
    baseline_reward: float,
    record: Vector,
) -> bool:
    """Always yes: book the optimistic action, and note the least it leaves us with; `displaced` does not matter."""
    pose(settings, state, ledger, proposal, displaced, record)
    mean, spread = support(settings, state, record[RADIUS], part_of(record, 0))
    record[GUARANTEED] = mean - spread
    record[REQUIRED] = -math.inf
    note_played(record, proposal)
    book_learner(ledger, proposal, displaced, 0.0)
    return True


@compiled_apart
def lucb_step(
    settings: Vector,
    state: Vector,
    ledger: Vector,
    rows: Matrix,
    cached: bool,
    scores: Matrix,
    baseline: int,
    baseline_reward: float,
    record: Vector,
) -> tuple[int, bool]:
    """One round: play argmax over actions of UCB(phi)."""
    record[BETA] = radius_of(settings, state)
    action, record[OPTIMISM] = propose(settings, state, rows, cached, scores, record[BETA])
    if action < 0:
        return action, False
    return action, lucb_judge(settings, state, ledger, rows[action], rows[action], baseline_reward, record)


def lucb_proof(settings: Vector, record: Vector, known: Ball | Ellipsoid) -> Proof:
    """What all learner rounds have earned for sure, this one included."""
    played = vectors_of(record)[0]
    return prove(played, [(known, played)])


class LUCB(LinearPolicy):
    """Linear UCB: play the action with the highest upper confidence bound, always.

    The learner that the paper makes safe (Abbasi-Yadkori et al. 2011), with the paper's radius. A baseline given to
    `decide` is ignored, so that it can stand in for any other policy.

    >>> import numpy as np
    >>> policy = LUCB(dim=2, delta=0.01, noise=0.1, ridge=1.0, theta_bound=1.0, feature_bound=1.0)
    >>> decision = policy.decide(np.array([[1.0, 0.0], [0.6, 0.0]]))
    >>> decision.action, decision.source
    (0, 'learner')
    >>> policy.observe(decision, 0.7)
    """

    needs_baseline = False
    _step = lucb_step
    _judge = lucb_judge
    _prove = staticmethod(lucb_proof)

    def __init__(
        self, *, dim: int, delta: float, noise: float, ridge: float, theta_bound: float, feature_bound: float
    ) -> None:
        super().__init__(
            dim=dim, delta=delta, noise=noise, ridge=ridge, theta_bound=theta_bound, feature_bound=feature_bound
        )
