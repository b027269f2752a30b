"""The Containerfile: its last stage is replayed as an unprivileged user who can write in one folder only."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.servers import free_port

ROOT = Path(__file__).parents[1]
DATA = "/var/lib/surefoot"
LINES = [
    line.partition(" ")
    for line in (ROOT / "Containerfile").read_text().splitlines()
    if line.strip() and not line.startswith("#")
]
BUILD = LINES[: [word for word, _, _ in LINES].index("FROM", 1)]
FINAL = LINES[len(BUILD) :]


def told(word: str) -> list[str]:
    return [rest for found, _, rest in FINAL if found == word]


def as_nobody(folder: Path) -> list[str]:
    """A command that runs another with no right to write but in a folder; it may read, since Python may be root's."""
    if os.getuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed, and tests run as root")
    user, _, group = told("USER")[0].partition(":")
    os.chown(folder, int(user), int(group))
    reading = ["--inh-caps", "-all,+dac_read_search", "--ambient-caps", "-all,+dac_read_search"]
    return ["setpriv", "--reuid", user, "--regid", group, "--clear-groups", *reading, "--no-new-privs"]


class Container:
    """What the image would run, with its folder elsewhere, and a port that is free."""

    def __init__(self, folder: Path) -> None:
        self.port, self.folder = free_port(), folder
        self.environment = {
            name: value.replace(DATA, str(folder)) for name, value in (env.split("=", 1) for env in told("ENV"))
        }
        here = Path(sys.executable).parent
        self.environment |= {"PATH": f"{here}:{os.environ['PATH']}", "SUREFOOT_PORT": str(self.port)}
        self.nobody = as_nobody(folder)

    def start(self, command: list[str]) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*self.nobody, *command],
            cwd=self.folder,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def run(self, command: list[str]) -> int:
        process = self.start(command)
        process.communicate(timeout=120)
        return process.returncode


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    folder = Path("/tmp") / f"surefoot-container-{os.getpid()}"  # pytest's own folders are closed to other users
    folder.mkdir(mode=0o700)
    yield Container(folder)
    shutil.rmtree(folder)


ENTRY, SERVE = json.loads(told("ENTRYPOINT")[0]), json.loads(told("CMD")[0])
CHECK = json.loads(told("HEALTHCHECK")[0].partition(" CMD ")[2])


def test_the_image_runs_as_nobody_in_particular_and_without_a_compiler() -> None:
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", told("USER")[0])
    assert told("VOLUME") == told("WORKDIR") == [DATA]
    assert not [step for step in told("RUN") if re.search(r"apt|pip|g\+\+", step)]


def test_the_build_copies_what_is_there_and_installs_extras_that_exist() -> None:
    copied = [source for word, _, rest in BUILD if word == "COPY" for source in rest.split()[:-1]]
    assert [source for source in copied if not (ROOT / source).exists()] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (extras,) = re.findall(r"'\.\[([\w,]+)\]'", (ROOT / "Containerfile").read_text())
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    assert {project["readme"], "LICENSE", "CMakeLists.txt"} <= set(copied)


def test_the_image_serves_is_healthy_and_stops_as_an_unprivileged_user(container: Container) -> None:
    assert container.run(CHECK) != 0
    assert container.run([*ENTRY, "token", "create", "--role", "admin", "--note", "first"]) == 0
    server = container.start([*ENTRY, *SERVE])
    try:
        deadline = time.monotonic() + 120
        while container.run(CHECK) != 0:
            assert server.poll() is None, "the server ended"
            assert time.monotonic() < deadline
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"http://127.0.0.1:{container.port}/v1/experiments", timeout=30)
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=60)
    assert server.returncode == 0
    assert container.run(CHECK) != 0
    assert {path.name.partition("-")[0] for path in container.folder.iterdir()} <= {
        "surefoot.journal",
        "surefoot.tokens",
        "surefoot.tokens.trail",
        ".surefoot.tokens.lock",
    }


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody who may write nowhere")
def test_the_replay_really_may_write_nowhere_else(container: Container, tmp_path: Path) -> None:
    write = ["python", "-c", f"open({str(tmp_path / 'x')!r}, 'w')"]
    assert container.run(write) != 0
    assert container.run(["python", "-c", "open('x', 'w')"]) == 0


@pytest.mark.long
def test_what_the_build_copies_is_enough_to_install(tmp_path: Path) -> None:
    for word, _, rest in BUILD:
        for source in rest.split()[:-1] if word == "COPY" else ():
            copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
            copy(ROOT / source, tmp_path / source)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    one = ["-C", "cmake.define.SUREFOOT_BUILDS=x86_64", "--target", str(tmp_path / "opt")]
    subprocess.run([*pip, *one, "."], cwd=tmp_path, check=True, timeout=1800)
    code = "import surefoot; print(surefoot.__file__, surefoot.Guard(alpha=0.1, delta=0.1).share)"
    paths = os.pathsep.join([str(tmp_path / "opt"), *filter(None, sys.path)])
    done = subprocess.run([sys.executable, "-S", "-c", code], env={"PYTHONPATH": paths}, capture_output=True, text=True)
    assert done.stdout.startswith(str(tmp_path / "opt")), done.stderr
