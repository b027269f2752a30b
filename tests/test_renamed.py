"""Modules that were renamed are still found by their old names, with a warning that says the new one."""

import importlib
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import surefoot
from surefoot._renamed import RENAMED

SOURCE = Path(surefoot.__file__).parent


@pytest.mark.parametrize("old", RENAMED)
def test_an_old_name_leads_to_the_module_of_today_and_warns(old: str) -> None:
    new, parent = RENAMED[old], old.rpartition(".")[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module(f"surefoot.{parent}")
    sys.modules.pop(f"surefoot.{old}", None)
    with pytest.warns(DeprecationWarning, match=f"is called `surefoot.{new}` now"):
        found = importlib.import_module(f"surefoot.{old}")
    assert found is importlib.import_module(f"surefoot.{new}")
    del sys.modules[f"surefoot.{old}"]


def test_no_old_name_is_the_name_of_a_module_of_today() -> None:
    taken = [old for old in RENAMED if (SOURCE / (old.replace(".", "/") + ".py")).exists()]
    assert taken == []


def test_importing_surefoot_warns_of_nothing_and_loads_no_policy() -> None:
    code = "import sys, surefoot; sys.exit(any(name.startswith('surefoot.policies') for name in sys.modules))"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
