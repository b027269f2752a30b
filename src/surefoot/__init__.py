"""Contextual bandits that explore under a floor: at least (1 - alpha) of what your current strategy would earn, proved.

>>> import surefoot
>>> policy = surefoot.CLUCB(
...     dim=4, alpha=0.1, delta=0.001, noise=1.0, ridge=1.0, theta_bound=1.0, feature_bound=4.0
... )
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from surefoot._renamed import install as _find_old_names

if TYPE_CHECKING:
    from surefoot import errors as errors
    from surefoot import theory as theory
    from surefoot.client.async_client import AsyncClient as AsyncClient
    from surefoot.client.client import Client as Client
    from surefoot.errors import SurefootError as SurefootError
    from surefoot.experiment.async_experiment import AsyncExperiment as AsyncExperiment
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
    from surefoot.policies.lucb import LUCB as LUCB
    from surefoot.policies.policy import Decision as Decision
    from surefoot.policies.policy import Policy as Policy
    from surefoot.policies.safe_lucb import SafeLUCB as SafeLUCB
    from surefoot.policies.ucb import UCB as UCB
    from surefoot.safety.certificate import Certificate as Certificate
    from surefoot.safety.check import check as check
    from surefoot.safety.proof import Proof as Proof
    from surefoot.safety.prove import prove as prove

# Names are looked up when first used, so that `import surefoot` costs next to nothing.
_HOMES = {
    "AsyncClient": "client.async_client",
    "AsyncExperiment": "experiment.async_experiment",
    "CLUCB": "policies.clucb",
    "CLUCB2": "policies.clucb2",
    "Catalogue": "linear.actions",
    "Certificate": "safety.certificate",
    "Client": "client.client",
    "ConservativeUCB": "policies.conservative_ucb",
    "Decision": "policies.policy",
    "Disjoint": "linear.features",
    "EuclideanBall": "linear.actions",
    "Experiment": "experiment.experiment",
    "Interactions": "linear.features",
    "LUCB": "policies.lucb",
    "OneHot": "linear.features",
    "Policy": "policies.policy",
    "Polytope": "linear.actions",
    "Proof": "safety.proof",
    "SafeLUCB": "policies.safe_lucb",
    "Shared": "linear.features",
    "SurefootError": "errors",
    "UCB": "policies.ucb",
    "Vertices": "linear.actions",
    "check": "safety.check",
    "errors": "",
    "open_journal": "journal",
    "prove": "safety.prove",
    "theory": "",
}

_find_old_names()

__version__ = "0.1.0"
__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'surefoot' has no attribute {name!r}")
    home = _HOMES[name]
    found = getattr(import_module(f"surefoot.{home}"), name) if home else import_module(f"surefoot.{name}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
