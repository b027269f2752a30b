"""What `make` sets up in a clone where nothing is: only what a command needs, at the versions that are tested."""

import json
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from surefoot import core

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def planned(goal: str, folder: Path, *done: str) -> str:
    """What make would do in a fresh clone in which these files have been made."""
    for name in ("Makefile", "pyproject.toml", "CMakeLists.txt", "requirements"):
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, folder / name)
    (folder / "src/surefoot/core").mkdir(parents=True)
    for name in done:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    command = ["make", "--no-print-directory", "-n", goal]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


EXTRAS = {"reproduce": "simulation", "serve": "service", "demo": "service"}


@pytest.mark.parametrize("goal", EXTRAS)
def test_a_command_needs_no_tools_of_developers_and_says_each_step(goal: str, tmp_path: Path) -> None:
    plan = planned(goal, tmp_path)
    assert "-r requirements/dev.txt" not in plan
    assert plan.count("-c requirements/dev.txt") == 2
    assert f'["optional-dependencies"]["{EXTRAS[goal]}"]' in plan
    places = [plan.index(f'echo "{step} of 3: ') for step in (1, 2, 3)]
    assert places == sorted(places)
    assert plan.rstrip().endswith(f"surefoot {goal}")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="one build on other processors")
def test_the_experiment_builds_the_core_for_this_machine_alone(tmp_path: Path) -> None:
    best = core.runnable()[0]
    assert ("SUREFOOT_BUILDS" in planned("reproduce", tmp_path)) == (best != "x86_64")
    if best != "x86_64":
        (tmp_path / "again").mkdir()
        assert f"-C cmake.define.SUREFOOT_BUILDS={best} -e ." in planned("reproduce", tmp_path / "again")


def test_a_service_gets_a_quick_build_unless_a_simulation_has_built_the_core(tmp_path: Path) -> None:
    for number, goal in enumerate(EXTRAS):
        (tmp_path / str(number)).mkdir()
        assert ("SUREFOOT_QUICK=ON" in planned(goal, tmp_path / str(number))) == (EXTRAS[goal] == "service")
    (tmp_path / "again").mkdir()
    assert "SUREFOOT_QUICK" not in planned("demo", tmp_path / "again", ".venv/.lean-simulation")


@pytest.mark.parametrize("goal", EXTRAS)
def test_the_whole_set_up_serves_each_command_too(goal: str, tmp_path: Path) -> None:
    plan = planned(goal, tmp_path, ".venv/.installed", ".venv/.built")
    assert "pip install" not in plan
    assert plan.rstrip().endswith(f"surefoot {goal}")


def test_who_develops_gets_every_build(tmp_path: Path) -> None:
    plan = planned("setup", tmp_path)
    assert "-r requirements/dev.txt" in plan
    assert "SUREFOOT_BUILDS" not in plan


def test_long_tests_get_their_peers_without_what_those_ask_for(tmp_path: Path) -> None:
    plan = planned("test-long", tmp_path)
    assert "--no-deps -r requirements/long.txt" in plan
    assert plan.index("requirements/long.txt") < plan.index("pytest -q -m long")


@pytest.mark.long
def test_the_list_of_parts_has_those_of_the_service_and_no_tools_of_developers(tmp_path: Path) -> None:
    planned("sbom", tmp_path)
    shutil.copy(ROOT / "Containerfile", tmp_path)
    subprocess.run(["make", "sbom"], cwd=tmp_path, capture_output=True, check=True, timeout=600)
    found = json.loads((tmp_path / "build/sbom/surefoot.cdx.json").read_text())
    assert (found["bomFormat"], found["metadata"]["component"]["name"]) == ("CycloneDX", "surefoot")
    parts = {part["name"].lower(): part for part in found["components"]}
    assert {"numpy", "litestar", "uvicorn", "psycopg", "cryptography", "httpx", "pyjwt"} <= parts.keys()
    assert not {"pytest", "mypy", "pip", "cyclonedx-bom"} & parts.keys()
    assert all(part["version"] for part in parts.values())
    pins = (ROOT / "requirements" / "dev.txt").read_text().splitlines()
    assert f"litestar=={parts['litestar']['version']}" in pins
