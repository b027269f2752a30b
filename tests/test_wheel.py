"""The sdist and the wheel: what they hold, where they run, and that an empty environment can decide with them."""

import json
import os
import re
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, distributions, requires, version
from pathlib import Path

import httpx
import pytest
from packaging.requirements import Requirement

from tests.bare_python import SETTINGS, base_packages, first_decision, only
from tests.integrations.model_server import model_server
from tests.integrations.proxies import free_port

ROOT = Path(__file__).parents[1]
LARGEST = 10 * 2**20
FIVE_MINUTES = 300.0
pytestmark = pytest.mark.long


def quietly(*command: str | Path) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the sdist and of the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    quietly(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(made: Path) -> Path:
    (found,) = made.glob("*.whl")
    return found


def test_the_sdist_holds_what_a_build_needs_and_no_build(made: Path) -> None:
    (sdist,) = made.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"CMakeLists.txt", "pyproject.toml", "src/surefoot/core/elementary.hpp"} <= names
    assert not {name for name in names if name.endswith((".so", ".o")) or name.startswith(("build/", "dist/", ".venv"))}


def test_the_wheel_is_small_and_holds_no_sources_but_those_of_a_gpu(wheel: Path) -> None:
    assert wheel.stat().st_size <= LARGEST
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if name.endswith((".cpp", ".nbi", ".nbc")) or "/bindings/" in name]
    assert {"surefoot/core/ridge.hpp", "surefoot/core/gpu/play.cu", "surefoot/core/gpu/std/vector"} <= set(names)
    assert [name for name in names if name.startswith("surefoot/core/_") and name.endswith(".so")]


def test_the_wheel_holds_all_of_the_package_and_nothing_beside_it(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    package = ROOT / "src" / "surefoot"
    sources = {
        path
        for path in package.rglob("*")
        if path.is_file() and path.suffix not in (".cpp", ".pyc", ".so") and path.parent.name != "bindings"
    }
    assert {f"surefoot/{path.relative_to(package)}" for path in sources} - names == set()
    assert {"surefoot/py.typed", "surefoot/service/page/static/index.html", "surefoot/reports/style.css"} <= names
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"surefoot"}
    assert [name for name in names if name.endswith("dist-info/licenses/LICENSE")]


def test_the_wheel_is_a_manylinux_one(wheel: Path) -> None:
    said = " ".join(quietly(sys.executable, "-m", "auditwheel", "show", wheel).split())
    assert 'following platform tag: "manylinux_2_' in said


@pytest.mark.skipif(sys.version_info < (3, 12), reason="nanobind's stable ABI begins with Python 3.12")
def test_the_wheel_serves_later_pythons(wheel: Path) -> None:
    assert "-cp312-abi3-" in wheel.name


def test_the_wheel_decides_where_only_its_base_packages_are(wheel: Path, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    quietly(*pip, tmp_path / "wheel", wheel)
    start = only(tmp_path / "wheel", base_packages(tmp_path / "base"))
    for policy in SETTINGS:
        said = quietly(sys.executable, "-I", "-S", "-c", start + first_decision(policy))
        assert said.startswith("decided "), policy


def needed(name: str, extra: str) -> set[str]:
    """A package and all that it needs, as far as that is installed here."""
    found, rest = set[tuple[str, str]](), {(name, extra)}
    while rest:
        found.add(asking := rest.pop())
        with suppress(PackageNotFoundError):
            asked = [Requirement(one) for one in requires(asking[0]) or ()]
            here = [one for one in asked if one.marker is None or one.marker.evaluate({"extra": asking[1]})]
            rest |= {(one.name, extra) for one in here for extra in ("", *one.extras)} - found
    return {name for name, _ in found if any(distributions(name=name))}


class Newcomer:
    """Somebody with an empty environment, a wheel and a page of the documentation, who runs its commands as they stand.

    But for what they do not have: a clone, a key for a model of others, and perhaps a free port.
    """

    def __init__(self, folder: Path, wheel: Path, page: str) -> None:
        self.folder, self.wheel, self.port = folder, wheel, free_port()
        self.page = (ROOT / page).read_text()
        self.began = time.monotonic()
        quietly(sys.executable, "-m", "venv", folder / "venv")
        inherited = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "HTTP", "SSL"))}
        self.environment = {
            **inherited,
            "PATH": f"{folder / 'venv' / 'bin'}:/usr/bin:/bin",
            "HOME": str(folder),
            "USER": "ada",
        }
        self.environment |= {"PORT": str(self.port), "SUREFOOT_PORT": str(self.port)}

    def block(self, language: str, number: int) -> str:
        text = re.findall(rf"```{language}\n(.*?)```", self.page, re.DOTALL)[number].replace("\\\n", "")
        return re.sub(r"(localhost|127\.0\.0\.1):(4000|8080)", rf"\1:{self.port}", text)

    def commands(self, number: int) -> list[str]:
        """The lines of a block, without what is said of them."""
        return [re.sub(r" +# .*| &(?= |$)", "", line) for line in self.block("sh", number).splitlines()]

    def run(self, command: str) -> str:
        done = self.bash(command)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def bash(self, command: str) -> "subprocess.CompletedProcess[str]":
        bash = ["bash", "-ec", command]
        return subprocess.run(bash, cwd=self.folder, env=self.environment, capture_output=True, text=True)

    def export(self, commands: list[str]) -> None:
        lines = self.run("\n".join([*commands, "env"])).splitlines()
        self.environment |= dict(line.split("=", 1) for line in lines if "=" in line)

    def install(self, command: str) -> None:
        command = re.sub(r"'\.(\[.*?\])'", rf"'{self.wheel}\1'", command)
        assert str(self.wheel) in command
        done = self.bash(command)
        if "ResolutionImpossible" in done.stderr:  # an index without what LiteLLM asks for: as our own tests have it
            names = needed("litellm", "proxy") | needed("surefoot", "litellm")
            pins = [f"'{name}=={version(name)}'" for name in sorted(names - {"surefoot"})]
            self.run(f"pip install '{self.wheel}' && pip install --no-deps {' '.join(pins)}")
        else:
            assert done.returncode == 0, done.stderr[-3000:]

    @contextmanager
    def serving(self, command: str, probe: str) -> Iterator[None]:
        with (self.folder / "server.log").open("w") as log:
            server = subprocess.Popen(
                ["bash", "-ec", f"exec {command}"], cwd=self.folder, env=self.environment, stdout=log, stderr=log
            )
        try:
            while True:
                assert server.poll() is None, (self.folder / "server.log").read_text()[-3000:]
                opened = re.search(r"Open (http://\S+?)/? ", (self.folder / "server.log").read_text())
                address = opened[1] if opened else f"http://localhost:{self.port}"  # a demo takes a port that is free
                try:
                    httpx.get(f"{address}{probe}", trust_env=False).raise_for_status()
                    break
                except httpx.HTTPError:
                    time.sleep(0.1)
            yield
        finally:
            server.terminate()
            server.wait(60)

    def report(self, where: str) -> float:
        seconds = time.monotonic() - self.began
        print(f"\nfrom an empty environment to {where}: {seconds:.0f} s")
        return seconds

    def arrive(self, where: str) -> None:
        assert self.report(where) < FIVE_MINUTES


def test_a_newcomer_has_a_guarded_answer_of_litellm_within_five_minutes(wheel: Path, tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path, wheel, "docs/litellm.md")
    install, *exports, serve, wait = newcomer.block("sh", 0).splitlines()
    newcomer.install(install)
    (tmp_path / "config.yaml").write_text(newcomer.block("yaml", 0))
    with model_server("big") as big, model_server("small") as small:
        newcomer.export(exports)
        newcomer.environment |= {"BIG_URL": big.url, "SMALL_URL": small.url, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        with newcomer.serving(serve.removesuffix(" &"), "/health/liveliness"):
            newcomer.run(wait)
            (decision_id,) = re.findall(r"x-surefoot-decision-id: (\S+)", newcomer.run(newcomer.block("sh", 1)))
            newcomer.arrive("the first guarded answer of LiteLLM")
            reward = newcomer.run(newcomer.block("sh", 2))
    assert json.loads(reward) == {"decision_id": decision_id, "is_repeat": False}
    for command in ("surefoot experiment status chat.journal chat", "surefoot audit chat.journal"):
        assert f"`{command}`" in newcomer.page
        assert "chat" in newcomer.run(command)


def test_a_newcomer_has_a_guarded_flag_within_five_minutes(wheel: Path, tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path, wheel, "docs/openfeature.md")
    install, create, serve = newcomer.block("sh", 0).splitlines()
    newcomer.install(install)
    newcomer.run(create)
    with newcomer.serving(serve, "/readyz"):
        (tmp_path / "app.py").write_text(newcomer.block("python", 0))
        value, variant, _ = newcomer.run("python app.py").split()
        assert (value, variant) in (("False", "baseline"), ("True", "proposal"))
        newcomer.arrive("the first guarded flag")
        reward = newcomer.run(newcomer.block("sh", 1))
    assert json.loads(reward)["decision_id"]


def test_a_newcomer_sees_the_demo_as_the_readme_says(wheel: Path, tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path, wheel, "README.md")
    install, demo = newcomer.commands(0)
    newcomer.install(install)
    with newcomer.serving(demo, "/v1/experiments/front-page"):
        newcomer.report("the page of the demo")


def test_a_newcomer_runs_the_service_as_production_says(wheel: Path, tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path, wheel, "docs/production.md")
    install, write, token, check, serve = newcomer.commands(0)
    newcomer.install(install)
    newcomer.run(write)
    newcomer.export([token])
    newcomer.run(check)
    with newcomer.serving(serve, "/readyz"):
        said = newcomer.run(newcomer.block("sh", 1))
        newcomer.report("the first decision of a service")
    assert '"decision_id":"r1"' in said
    assert '{"decision_id":"r1","value":0.9,' in said
    assert "models" in newcomer.run(newcomer.block("sh", 2))  # the audit of a promise that was broken would fail


def test_a_newcomer_has_an_experiment_of_their_own_log(wheel: Path, tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path, wheel, "docs/use-my-data.md")
    install, *commands = newcomer.commands(0)
    newcomer.install(install)
    tutorial = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "tutorial-csv.md").read_text(), re.DOTALL)
    assert tutorial is not None
    (tmp_path / "log.py").write_text(tutorial[1].replace(">>> ", "").replace("tempfile.mkdtemp()", "'.'"))
    said = newcomer.run("\n".join(["python log.py", *commands]))
    newcomer.report("an experiment in shadow, of a log")
    assert "It pays" in said
    assert "'shadow'" in said
