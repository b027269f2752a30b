"""Small random worlds for tests: those in which the conformance checks try a policy."""

from surefoot.policies.conformance import TrialWorld as World
from surefoot.policies.conformance.trial_world import Array

__all__ = ["Array", "World"]
