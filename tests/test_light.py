"""What runs without the packages of an extra, and what importing a part of the package brings along."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import surefoot
from surefoot import __version__
from tests.bare_python import base_packages, only

SOURCES = sorted(Path(surefoot.__file__).parent.rglob("*.py"))


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)


def test_the_client_brings_httpx_and_msgspec_and_neither_numpy_nor_the_core() -> None:
    done = run("import sys, surefoot.client; surefoot.Client, surefoot.AsyncClient; print(*sys.modules)")
    loaded = set(done.stdout.split())
    assert {"httpx", "msgspec", "surefoot.client.client"} <= loaded
    assert not loaded & {"numpy", "scipy", "numba", "clarabel", "surefoot.core", "surefoot.arrays"}


def test_a_base_install_asks_for_three_packages() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert {re.split("[^a-z]", each)[0] for each in project["dependencies"]} == {"numpy", "msgspec", "clarabel"}


def test_no_module_asks_for_scipy() -> None:
    asks = re.compile(r"^\s*(import|from) scipy\b", re.MULTILINE)
    assert [path for path in SOURCES if asks.search(path.read_text())] == []


@pytest.mark.parametrize("command", ["surefoot.cli", "surefoot"])
def test_python_dash_m_is_the_command(command: str) -> None:
    done = subprocess.run([sys.executable, "-m", command, "version"], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == __version__


def test_the_version_needs_no_extra_and_other_commands_name_theirs() -> None:
    without = "import sys; sys.modules['typer'] = None; from surefoot.cli import main; main()"
    assert run(without, "--version").stdout.strip() == __version__
    done = run(without, "simulate")
    assert done.returncode == 2
    assert done.stderr == (
        "surefoot: this needs a few more packages: pip install 'surefoot[simulation]' (typer is missing)\n"
    )


@pytest.mark.parametrize(
    ("missing", "extra", "words"),
    [
        ("psycopg", "postgres", "experiment list postgresql://127.0.0.1:1/none"),
        ("psycopg", "postgres", "move shop.db postgresql://127.0.0.1:1/none"),
        ("psycopg", "postgres", "serve --database postgresql://127.0.0.1:1/none --port 0"),
        ("psycopg", "postgres", "config check --config surefoot.toml"),
        ("httpx", "client", "reward http://127.0.0.1:1 shop --from rewards.csv"),
    ],
    ids=lambda text: text.split(" ")[0],
)
def test_a_journal_or_service_that_needs_a_package_names_its_extra(
    missing: str, extra: str, words: str, tmp_path: Path
) -> None:
    with surefoot.open_journal(tmp_path / "shop.db") as journal:
        surefoot.Experiment.create(journal, "shop", surefoot.UCB(arms=2))
    (tmp_path / "surefoot.toml").write_text('database = "postgresql://127.0.0.1:1/none"\n')
    (tmp_path / "rewards.csv").write_text("decision_id,reward\nvisit-1,1\n")
    code = f"import os, sys; sys.modules[{missing!r}] = None; os.chdir({str(tmp_path)!r})"
    done = run(f"{code}; from surefoot.cli import main; main()", *words.split())
    said = done.stderr + done.stdout
    assert done.returncode != 0
    assert f"pip install 'surefoot[{extra}]'" in said
    assert said.count("pip install") == 1
    assert "Traceback" not in said


def test_a_bare_install_names_all_that_a_command_lacks_at_once(tmp_path: Path) -> None:
    # Metadata of this package alone, and none of the packages of its extras.
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    needs = {extra: project["optional-dependencies"][extra] for extra in ("service", "simulation")}
    lines = [f"Requires-Dist: {one.replace(';', ' ;')}" for one in project["dependencies"]]
    for extra, packages in needs.items():
        for one in packages:
            name, _, marker = one.partition(";")
            condition = f"({marker.strip()}) and " if marker else ""
            lines.append(f"Requires-Dist: {name} ; {condition}extra == '{extra}'")
    folder = tmp_path / "surefoot-0.1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("\n".join(["Metadata-Version: 2.1", "Name: surefoot", "Version: 0.1.0", *lines]))
    start = only(tmp_path, Path(surefoot.__file__).parents[1], base_packages(tmp_path / "base"))
    code = start + "from surefoot.cli import main; main()"
    for command, extra in (("serve", "service"), ("demo", "service"), ("reproduce", "simulation")):
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", code, command], capture_output=True, text=True, timeout=60
        )
        names = sorted(re.split("[^a-z-]", one)[0].replace("-", "_") for one in needs[extra])
        assert done.returncode == 2
        assert done.stderr == (
            f"surefoot: this needs a few more packages: pip install 'surefoot[{extra}]' "
            f"({', '.join(names)} are missing)\n"
        )


def test_the_version_is_an_option_that_help_lists() -> None:
    from typer.testing import CliRunner

    from surefoot.cli.commands import app

    assert CliRunner().invoke(app, ["--version"]).stdout.strip() == __version__
    assert "--version" in CliRunner().invoke(app, ["--help"]).stdout


def test_importing_surefoot_emits_no_warning_and_loads_no_policy() -> None:
    code = "import sys, surefoot; sys.exit(any(name.startswith('surefoot.policies') for name in sys.modules))"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
