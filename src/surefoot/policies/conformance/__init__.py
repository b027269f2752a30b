"""The contract of `surefoot.Policy` as checks that run on any policy.

A policy of your own passes every one of `CHECKS`:

>>> import surefoot
>>> def make(world):
...     return surefoot.LUCB(**world.settings(ridge=0.3, delta=0.05))
>>> for rule in CHECKS:
...     rule(Subject(make))
"""

from surefoot.policies.conformance import decision_checks, state_checks
from surefoot.policies.conformance.subject import CHECKS, Subject, check_policy
from surefoot.policies.conformance.trial_world import TrialWorld

__all__ = ["CHECKS", "Subject", "TrialWorld", "check_policy", "decision_checks", "state_checks"]
