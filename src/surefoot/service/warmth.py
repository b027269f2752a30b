"""Machine code that is loaded before anyone waits for it: the first decision of a policy may take seconds otherwise."""

from contextlib import suppress

import numpy as np

from surefoot.errors import SurefootError
from surefoot.experiment.policy import make_policy
from surefoot.experiment.records import Created
from surefoot.policies.linear_policy import LinearPolicy

_warm: set[str] = set()


def warm_up(created: Created) -> None:
    """Have a policy of the same kind decide and learn once; it is thrown away."""
    if created.policy in _warm:
        return
    policy = make_policy(created.policy, created.settings)
    rows = np.zeros((2, policy.dim)) if isinstance(policy, LinearPolicy) else None
    known = 0.5 if getattr(policy, "needs_baseline_reward", False) else None
    with suppress(SurefootError):
        for _ in range(2):
            decision = policy.decide(rows, baseline=0, baseline_reward=known)  # type: ignore[arg-type]
            policy.observe(decision, 0.5)
    _warm.add(created.policy)
