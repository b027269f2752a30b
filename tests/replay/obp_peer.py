"""obp, the Open Bandit Pipeline, as a peer: its estimators, its LinUCB, and the logs that its wheel carries."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pytest

TORCH = ("torch", "torch.nn", "torch.optim", "torch.utils", "torch.utils.data")


def obp(module: str) -> Any:
    """A module of obp; the test is skipped where it is not installed.

    obp imports torch, gigabytes for networks that are not asked here. Where it is missing, empty modules stand in for
    it while obp is imported, with the names that its annotations and base classes read.
    """
    if importlib.util.find_spec("obp") is None:
        pytest.skip("needs the package obp, which `make test-long` installs")
    if importlib.util.find_spec("torch") is not None:
        return importlib.import_module(module)
    with mock.patch.dict(sys.modules, {name: _hollow(name) for name in TORCH}):
        for name in TORCH[1:]:
            parent, _, child = name.rpartition(".")
            setattr(sys.modules[parent], child, sys.modules[name])
        found = importlib.import_module(module)
        kept = {name: one for name, one in sys.modules.items() if name.split(".")[0] == "obp"}
    sys.modules.update(kept)
    return found


def open_bandit(policy: str, campaign: str = "men") -> Path:
    """10,000 impressions that a policy, random or bts, gave to one campaign of a fashion shop. (Saito et al. 2020)"""
    place = Path(obp("obp").__path__[0]) / "dataset" / "obd" / policy / campaign / f"{campaign}.csv"
    assert place.is_file()
    return place


def _hollow(name: str) -> ModuleType:
    module = ModuleType(name)
    module.__path__ = []
    for used in ("Tensor", "Module", "Dataset", "DataLoader"):
        setattr(module, used, type(used, (), {}))
    return module
