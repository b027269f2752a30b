"""What was played and what it earned, as plain arrays: what a policy needs to start warm."""

import numpy as np

from surefoot.arrays import Matrix, Vector, count
from surefoot.errors import EvidenceError
from surefoot.replay.batch import Log


def history(log: Log, *, most: int = 1_000_000) -> tuple[Matrix, Vector]:
    """Feature rows (rounds, dim) and rewards of the logged actions, the first `most` of them.

    They may enter a confidence set as long as actions were chosen without looking at the rewards to come. Scale them as
    the experiment will: a log read with the experiment's own configuration does.

    >>> from surefoot.replay.batch import ArrayLog
    >>> rows = [[[1.0, 0.0], [0.0, 1.0]]] * 2
    >>> history(ArrayLog(features=rows, actions=[1, 0], rewards=[0.5, 0.2], baselines=0))
    (array([[0., 1.], [1., 0.]]), array([0.5, 0.2]))
    """
    count("most", most, hint="most is the number of rows to take.")
    if log.is_full:
        raise EvidenceError("A table of labels or ratings has no history: nothing in it was played.")
    features, rewards, taken = [np.zeros((0, log.dim))], [np.zeros(0)], 0
    for batch in log.batches():
        part = batch.part(0, most - taken)
        features.append(part.features[np.arange(len(part)), part.actions])
        rewards.append(part.rewards[:, 0])
        taken += len(part)
        if taken >= most:
            break
    return np.concatenate(features), np.concatenate(rewards)
