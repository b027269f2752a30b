"""Learners: anything that proposes, under a guard; adapters for scikit-learn, Vowpal Wabbit, ONNX and functions.

An adapter loads its library when it is first used, and says how to install it where it is missing.
"""

from typing import TYPE_CHECKING

from surefoot._lazy import lazy

if TYPE_CHECKING:
    from surefoot.learners.guarded_learner import GuardedLearner as GuardedLearner
    from surefoot.learners.learner import CallableLearner as CallableLearner
    from surefoot.learners.learner import Learner as Learner
    from surefoot.learners.learner import Proposal as Proposal
    from surefoot.learners.learner import SamplingLearner as SamplingLearner
    from surefoot.learners.learner import StatefulLearner as StatefulLearner
    from surefoot.learners.linear_learner import LinearLearner as LinearLearner
    from surefoot.learners.onnx_learner import OnnxLearner as OnnxLearner
    from surefoot.learners.sklearn_learner import SklearnLearner as SklearnLearner
    from surefoot.learners.vw_learner import VWLearner as VWLearner

__getattr__, __dir__ = lazy(
    __name__,
    {
        "guarded_learner": ("GuardedLearner",),
        "learner": ("CallableLearner", "Learner", "Proposal", "SamplingLearner", "StatefulLearner"),
        "linear_learner": ("LinearLearner",),
        "onnx_learner": ("OnnxLearner",),
        "sklearn_learner": ("SklearnLearner",),
        "vw_learner": ("VWLearner",),
    },
)

__all__ = [
    "CallableLearner",
    "GuardedLearner",
    "Learner",
    "LinearLearner",
    "OnnxLearner",
    "Proposal",
    "SamplingLearner",
    "SklearnLearner",
    "StatefulLearner",
    "VWLearner",
]
