"""Contextual bandits that explore under a floor: at least (1 - alpha) of what your current strategy would earn, proved.

>>> import surefoot
>>> policy = surefoot.CLUCB(
...     dim=4, alpha=0.1, delta=0.001, noise=1.0, ridge=1.0, theta_bound=1.0, feature_bound=4.0
... )
"""

from typing import TYPE_CHECKING

from surefoot._lazy import lazy
from surefoot.version import VERSION as __version__  # noqa: N811

if TYPE_CHECKING:
    from surefoot import errors as errors
    from surefoot import theory as theory
    from surefoot.client.client import AsyncClient as AsyncClient
    from surefoot.client.client import Client as Client
    from surefoot.errors import SurefootError as SurefootError
    from surefoot.experiment.asynchronous import AsyncExperiment as AsyncExperiment
    from surefoot.experiment.experiment import Experiment as Experiment
    from surefoot.journal import open_journal as open_journal
    from surefoot.linear.actions import Catalogue as Catalogue
    from surefoot.linear.actions import EuclideanBall as EuclideanBall
    from surefoot.linear.actions import Polytope as Polytope
    from surefoot.linear.actions import Vertices as Vertices
    from surefoot.linear.features import Disjoint as Disjoint
    from surefoot.linear.features import Interactions as Interactions
    from surefoot.linear.features import OneHot as OneHot
    from surefoot.linear.features import Shared as Shared
    from surefoot.policies.clucb import CLUCB as CLUCB
    from surefoot.policies.clucb2 import CLUCB2 as CLUCB2
    from surefoot.policies.conservative_ucb import ConservativeUCB as ConservativeUCB
    from surefoot.policies.decision import Decision as Decision
    from surefoot.policies.guard import Guard as Guard
    from surefoot.policies.lucb import LUCB as LUCB
    from surefoot.policies.policy import Policy as Policy
    from surefoot.policies.safe_lucb import SafeLUCB as SafeLUCB
    from surefoot.policies.ucb import UCB as UCB
    from surefoot.safety.certificate import Certificate as Certificate
    from surefoot.safety.check import check as check
    from surefoot.safety.metric import ceiling as ceiling
    from surefoot.safety.metric import floor as floor
    from surefoot.safety.proof import Proof as Proof
    from surefoot.safety.prove import prove as prove

__getattr__, __dir__ = lazy(
    __name__,
    {
        "": ("errors", "theory"),
        "client.client": ("AsyncClient", "Client"),
        "errors": ("SurefootError",),
        "experiment.asynchronous": ("AsyncExperiment",),
        "experiment.experiment": ("Experiment",),
        "journal": ("open_journal",),
        "linear.actions": ("Catalogue", "EuclideanBall", "Polytope", "Vertices"),
        "linear.features": ("Disjoint", "Interactions", "OneHot", "Shared"),
        "policies.clucb": ("CLUCB",),
        "policies.clucb2": ("CLUCB2",),
        "policies.conservative_ucb": ("ConservativeUCB",),
        "policies.decision": ("Decision",),
        "policies.guard": ("Guard",),
        "policies.lucb": ("LUCB",),
        "policies.policy": ("Policy",),
        "policies.safe_lucb": ("SafeLUCB",),
        "policies.ucb": ("UCB",),
        "safety.certificate": ("Certificate",),
        "safety.check": ("check",),
        "safety.proof": ("Proof",),
        "safety.metric": ("ceiling", "floor"),
        "safety.prove": ("prove",),
    },
)

__all__ = [
    "CLUCB",
    "CLUCB2",
    "LUCB",
    "UCB",
    "AsyncClient",
    "AsyncExperiment",
    "Catalogue",
    "Certificate",
    "Client",
    "ConservativeUCB",
    "Decision",
    "Disjoint",
    "EuclideanBall",
    "Experiment",
    "Guard",
    "Interactions",
    "OneHot",
    "Policy",
    "Polytope",
    "Proof",
    "SafeLUCB",
    "Shared",
    "SurefootError",
    "Vertices",
    "__version__",
    "ceiling",
    "check",
    "errors",
    "floor",
    "open_journal",
    "prove",
    "theory",
]
