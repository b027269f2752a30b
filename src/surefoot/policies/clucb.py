"""CLUCB: the paper's Algorithm 1, for a baseline whose rewards are known."""

from surefoot.arrays import Matrix, Vector
from surefoot.compiled import compiled, compiled_apart
from surefoot.linear.radius import radius_of
from surefoot.linear.scores import propose
from surefoot.policies.linear import LinearPolicy
from surefoot.safety.gates import BETA, OPTIMISM, known_gate, known_proof, note_played, pose
from surefoot.safety.ledger import book_baseline, book_learner


@compiled
def clucb_judge(
    settings: Vector,
    state: Vector,
    ledger: Vector,
    proposal: Vector,
    displaced: Vector,
    baseline_reward: float,
    record: Vector,
) -> bool:
    """Ask the gate for a known baseline, and book what is played.  (paper, Algorithm 1, lines 5 to 13)"""
    pose(settings, state, ledger, proposal, displaced, record)
    is_safe = known_gate(settings, state, ledger, baseline_reward, record)
    if is_safe:
        note_played(record, proposal)
        book_learner(ledger, proposal, displaced, baseline_reward)
    else:
        note_played(record, displaced)
        book_baseline(ledger, displaced, baseline_reward)
    return is_safe


@compiled_apart
def clucb_step(
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
    """One round of Algorithm 1: the proposal's row, and whether it is played."""
    record[BETA] = radius_of(settings, state)
    action, record[OPTIMISM] = propose(settings, state, rows, cached, scores, record[BETA])
    if action < 0:
        return action, False
    return action, clucb_judge(settings, state, ledger, rows[action], rows[baseline], baseline_reward, record)


class CLUCB(LinearPolicy):
    """Conservative linear UCB with known baseline rewards.

    Plays the optimistic action if, whatever theta in the confidence set is the true one, everything earned so far
    and this action still make (1 - alpha) of the baseline's reward; otherwise it plays the baseline. It learns from
    its own rounds only, and needs `baseline_reward` in every round.

    >>> import numpy as np
    >>> policy = CLUCB(dim=2, alpha=0.1, delta=0.01, noise=0.1, ridge=1.0, theta_bound=1.0, feature_bound=1.0)
    >>> rows = np.array([[1.0, 0.0], [0.6, 0.0]])
    >>> decision = policy.decide(rows, baseline=1, baseline_reward=0.5)
    >>> decision.source, round(decision.certificate.margin, 3)
    ('baseline', -1.45)
    >>> policy.observe(decision, 0.5)
    """

    needs_baseline_reward = True
    learns_baseline_rounds = False
    _step = clucb_step
    _judge = clucb_judge
    _prove = staticmethod(known_proof)

    def __init__(
        self,
        *,
        dim: int,
        alpha: float,
        delta: float,
        noise: float,
        ridge: float,
        theta_bound: float,
        feature_bound: float,
    ) -> None:
        super().__init__(
            dim=dim,
            alpha=alpha,
            delta=delta,
            noise=noise,
            ridge=ridge,
            theta_bound=theta_bound,
            feature_bound=feature_bound,
        )
