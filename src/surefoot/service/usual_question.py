"""The usual question, read from its body in one go: actions with features, and no more than an experiment needs.

A question like that is nearly every one that a server is asked. Any other, and all that are to be refused, are read
part by part (`surefoot.service.request_bodies`), which takes four times as long and has words for what is wrong.
"""

import re

import msgspec
import numpy as np

from surefoot.arrays import Matrix
from surefoot.core import native
from surefoot.experiment.question import LONGEST_ID, Read, key_of, read_baseline_reward, read_context
from surefoot.ids import new_id
from surefoot.records import Asked
from surefoot.service.request_models import ID_PATTERN

_is_id = re.compile(ID_PATTERN).fullmatch


def usual_question(body: bytes, *, sizes: tuple[int, int], sealed: bool) -> Read | None:
    """The question, with at most `sizes` actions and dimensions; None where there is anything unusual in it."""
    found = native.offered(body, *sizes, LONGEST_ID)
    if found is None:
        return None
    names, numbers, dim, baseline, baseline_reward, decision_id, context = found
    if (decision_id is not None and not _is_id(decision_id)) or (baseline is not None and baseline not in names):
        return None
    try:
        told = Asked(
            actions=names,
            baseline=0 if baseline is None else names.index(baseline),
            baseline_reward=None if baseline_reward is None else read_baseline_reward(baseline_reward),
            context=None if context is None else read_context(msgspec.json.decode(context)),
        )
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    chosen = new_id() if decision_id is None else decision_id
    rows: Matrix = np.ndarray((len(names), dim), np.float64, numbers)
    return Read(chosen, key_of(chosen, sealed=sealed), rows, None, told)
