"""Two versions side by side on one PostgreSQL, as during a rolling upgrade: one ledger, and no guess at what is new."""

import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest

from surefoot.audit import audit, audit_journal
from surefoot.journal import open_journal
from tests.journal.servers import new_database, running_server
from tests.service.servers import ACTIONS, POLICY, await_ready, create, free_port

ROOT = Path(__file__).parents[2]
# The last commit before events named who did something, rounds were confirmed and rewards corrected.
EARLIER = "be8200da94bd937bfc26e035818655d94210e965"
SHOP, SURE = "/v1/experiments/shop", "/v1/experiments/sure"
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has the earlier version, built from its commit, and the packages of this one."""
    folder = tmp_path_factory.mktemp("earlier")
    packed = subprocess.run(["git", "-C", ROOT, "archive", EARLIER], capture_output=True)
    if packed.returncode:
        pytest.skip("the earlier commit is not in this clone")
    with tarfile.open(fileobj=BytesIO(packed.stdout)) as archive:
        archive.extractall(folder / "source", filter="data")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    (site,) = (folder / "env" / "lib").glob("python*/site-packages")
    # As folders, so that no hook of this version's own installation is followed.
    (site / "packages.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    build: list[Path | str] = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--target",
        site,
    ]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(
        [*build, "-C", "cmake.define.SUREFOOT_BUILDS=x86_64", folder / "source"],
        check=True,
        timeout=1800,
        env={**os.environ, "PATH": path},
    )
    return folder / "env" / "bin" / "python"


class Server:
    """A server of one of the versions."""

    def __init__(self, python: Path | str, database: str) -> None:
        self._command, self.port = [str(python), "-m", "surefoot.cli", "serve", "--database", database], free_port()
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", trust_env=False, timeout=60)

    def __enter__(self) -> httpx.Client:
        environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
        self._process = subprocess.Popen(
            [*self._command, "--port", str(self.port)], stderr=subprocess.DEVNULL, cwd="/", env=environment
        )
        await_ready(str(self.client.base_url))
        return self.client

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self._process.terminate()
        assert self._process.wait(60) == 0


@pytest.fixture
def database() -> Iterator[str]:
    with running_server() as server:
        yield new_database(server)


def play(clients: list[httpx.Client], rounds: int, name: str = SHOP, first: int = 0) -> None:
    """Decisions and rewards by all servers in turn, each reward by another server than its decision."""
    for n in range(first, first + rounds):
        one, other = clients[n % len(clients)], clients[(n + 1) % len(clients)]
        decided = one.post(f"{name}/decisions", json={"decision_id": f"v{n}", "actions": ACTIONS})
        assert decided.status_code == 201, decided.text
        assert decided.json()["round"] == n + 1
        assert other.post(f"{name}/decisions/v{n}/reward", json={"value": 0.4}).status_code == 200


def is_version(python: Path | str, text: str) -> bool:
    found = subprocess.run([str(python), "-c", text], capture_output=True, text=True, cwd="/")
    return found.returncode == 0


def test_the_earlier_version_is_another(earlier: Path) -> None:
    text = "from surefoot.rounds.events import Corrected"
    assert is_version(sys.executable, text)
    assert not is_version(earlier, text)


@pytest.mark.parametrize("created_by", [0, 1])
def test_both_versions_play_one_experiment(earlier: Path, database: str, created_by: int) -> None:
    with Server(earlier, database) as old, Server(sys.executable, database) as new:
        create([old, new][created_by])
        play([old, new], 60)
        new.put(f"{SHOP}/mode", json={"mode": "paused", "reason": "a look"})
        assert old.get(SHOP).json()["mode"] == "paused"
        old.put(f"{SHOP}/mode", json={"mode": "guarded"})
        for one in (old, new):
            one.post(f"{SHOP}/decisions", json={"decision_id": f"fallback-{one.base_url.port}", "actions": ACTIONS})
        statuses = [one.get(SHOP).json() for one in (old, new)]
        same = ("rounds", "learner_rounds", "margin", "learned", "events", "head_hash", "mode")
        assert [statuses[0][field] for field in same] == [statuses[1][field] for field in same]
        assert statuses[0]["rounds"] == 62
    with open_journal(database) as journal:
        report = audit(journal, "shop")
        assert report.is_clean, list(report.findings)
        assert audit_journal(journal).is_clean


def test_what_is_new_stays_with_the_new_server_and_the_rest_goes_on(earlier: Path, database: str) -> None:
    with Server(sys.executable, database) as new:
        with Server(earlier, database) as old:
            create(new)
            create(new, "sure", settings={**POLICY, "alpha": 0.5}, confirm_within=0.2)
            for n in range(400):
                answer = new.post(f"{SURE}/decisions", json={"decision_id": f"s{n}", "actions": ACTIONS}).json()
                if answer["source"] == "learner":
                    break
                new.post(f"{SURE}/decisions/s{n}/reward", json={"value": 0.5})
            assert answer["confirm_within"] == 0.2
            deadline = time.monotonic() + 60
            while new.get(SURE).json()["unconfirmed"] != 1 and time.monotonic() < deadline:
                time.sleep(0.1)
            refused: Any = old.post(f"{SURE}/decisions", json={"actions": ACTIONS})
            assert refused.status_code == 503, "it does not guess what a new kind of event means"
            listed = old.get("/v1/experiments").json()
            assert [one["name"] for one in listed["damaged"]] == ["sure"]
            assert "update this one" in listed["damaged"][0]["reason"]
            play([old, new], 20)
            assert new.post(f"{SURE}/decisions", json={"actions": ACTIONS}).status_code == 201
        # The upgrade: the old one is gone, and a second new one takes its place.
        with Server(sys.executable, database) as second:
            play([new, second], 20, first=20)
            assert second.get("/v1/experiments").json()["damaged"] == []
            assert second.post(f"{SURE}/decisions", json={"actions": ACTIONS}).status_code == 201
    with open_journal(database) as journal:
        assert all(audit(journal, name).is_clean for name in journal.names())
