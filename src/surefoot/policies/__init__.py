"""Policies: what to play, one per file. Importing any of them makes all known to `Policy.from_state`."""

from surefoot.policies.clucb import CLUCB
from surefoot.policies.clucb2 import CLUCB2
from surefoot.policies.conservative_ucb import ConservativeUCB
from surefoot.policies.decision import Decision, GuardDecision
from surefoot.policies.guard import Guard
from surefoot.policies.lucb import LUCB
from surefoot.policies.policy import Policy
from surefoot.policies.safe_lucb import SafeLUCB
from surefoot.policies.ucb import UCB

__all__ = [
    "CLUCB",
    "CLUCB2",
    "LUCB",
    "UCB",
    "ConservativeUCB",
    "Decision",
    "Guard",
    "GuardDecision",
    "Policy",
    "SafeLUCB",
]
