"""The builds of the core: all are there, one is chosen, another one can be named, and a broken install says so."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from surefoot import core

INTEL = ["x86_64_v4", "x86_64_v3", "x86_64"]
SHOW = "from surefoot import core; print(core.name, *core.built())"


def ask(code: str = SHOW, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SUREFOOT_")}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env={**clean, **environment}, capture_output=True, text=True, timeout=60)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="one build on other processors")
def test_an_install_holds_a_build_for_each_kind_of_processor() -> None:
    assert ask().stdout.split()[1:] == INTEL


def test_a_build_that_the_processor_can_run_is_chosen() -> None:
    chosen = ask().stdout.split()[0]
    assert core.NEEDS[chosen] <= core._flags()


def test_a_build_can_be_named() -> None:
    for name in ask().stdout.split()[1:]:
        if core.NEEDS[name] <= core._flags():
            assert ask(SUREFOOT_CORE=name).stdout.split()[0] == name


def test_a_build_that_is_not_there_is_refused_by_its_name() -> None:
    said = ask(SUREFOOT_CORE="x86_64_v9").stderr
    assert "SUREFOOT_CORE must be one of" in said
    assert "but got 'x86_64_v9'" in said


def test_a_build_in_a_further_folder_is_taken_only_where_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "_strange.so").write_bytes(b"no module at all")
    assert ask(SUREFOOT_CORE_DIR=str(tmp_path)).stdout.split() == [*ask().stdout.split(), "strange"]
    assert "_strange.so" in ask(SUREFOOT_CORE="strange", SUREFOOT_CORE_DIR=str(tmp_path)).stderr


def test_an_install_without_a_build_says_how_to_get_one() -> None:
    hide = "from pathlib import Path; Path.glob = lambda self, pattern: iter(())\n"
    said = ask(hide + SHOW).stderr
    assert said.endswith(
        "ImportError: The compiled core of surefoot is missing. Build it with `make setup`, or install a wheel.\n"
    )
