"""What was played and what it earned, as plain arrays: what a policy needs for a warm start."""

import numpy as np

from surefoot.arrays import Matrix, Vector, count
from surefoot.errors import EvidenceError
from surefoot.replay.batch import Log


def history(log: Log, *, most: int = 1_000_000) -> tuple[Matrix, Vector]:
    """Feature rows and rewards of the logged actions, for a policy's `warm_start` or `Experiment.create(history=...)`.

    They may enter a confidence set if actions were chosen without looking at the rewards to come. Scale them as the
    experiment will: a log read with the experiment's own configuration does.

    Parameters
    ----------
    log : Log
        What `read_log` returned, or an `ArrayLog`.
    most : int
        How many rows to take at most, from the start.

    Returns
    -------
    tuple of ndarray
        Rows of shape (rounds, dim), and their rewards.

    Raises
    ------
    EvidenceError
        If the log is a table of labels or ratings, in which nothing was played.

    Examples
    --------
    >>> from surefoot.replay import ArrayLog
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
