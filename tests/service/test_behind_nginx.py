"""The walk of docs/operations.md, as it stands there: two servers behind nginx, an upgrade under load, a restore."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from surefoot.audit import audit, audit_journal
from surefoot.client import Client
from surefoot.journal import open_journal
from tests.journal.servers import PostgresServer, new_database
from tests.service.servers import await_ready, create, free_port

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
ROWS = {"blue": [0.6, 0.1], "red": [0.9, 0.3]}
HOW = "no nginx here: install Debian's, or set NGINX_PATH to one that you have"
pytestmark = pytest.mark.long


def block(language: str) -> str:
    """The first example of a language in the walk."""
    walk = PAGE[PAGE.index("## From nothing to two servers") :]
    found = re.search(rf"```{language}\n(.*?)```", walk, flags=re.DOTALL)
    assert found is not None
    return found[1]


def commands() -> list[str]:
    """The commands of the walk, without the prompt."""
    walk = PAGE[PAGE.index("## From nothing to two servers") : PAGE.index("## Probes")]
    return re.findall(r"^\$ ((?:.*\\\n)*.*)", walk, flags=re.MULTILINE)


class Installation:
    """What the walk sets up, in a folder and at ports of its own."""

    def __init__(self, folder: Path, postgres: PostgresServer) -> None:
        self.folder, self.database, self.postgres = folder, new_database(postgres), postgres
        self.ports, self.secure = [free_port(), free_port()], free_port()
        self.url = f"https://localhost:{self.secure}"
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        self.heads = folder / "heads.jsonl"
        self.secrets = [self.surefoot(command) for command in commands() if command.startswith("surefoot token")]
        text = block("toml").replace("postgresql://surefoot@localhost/shop", self.database)
        for number, port in enumerate(self.ports, start=1):
            (folder / f"{number}.toml").write_text(self.here(text.replace("8081", str(port))))

    def here(self, text: str) -> str:
        """Folders and ports of the page as they are here."""
        text = text.replace("/etc/surefoot", str(self.folder)).replace("/var/lib/surefoot", str(self.folder))
        for page, port in (("127.0.0.1:8081", self.ports[0]), ("127.0.0.1:8082", self.ports[1])):
            text = text.replace(page, f"127.0.0.1:{port}")
        text = text.replace("listen 443 ssl", f"listen 127.0.0.1:{self.secure} ssl")
        return text.replace("https://shop.example", self.url).replace(
            "curl ", f"curl -sk --cacert {self.folder}/cert.pem "
        )

    def surefoot(self, command: str) -> str:
        """What a command of the page prints."""
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        if self.secrets_known():
            environment |= {"ADMIN": self.secrets[0], "SHOP": self.secrets[1]}
        done = subprocess.run(
            ["bash", "-c", self.here(command)], capture_output=True, text=True, timeout=120, env=environment
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout.strip()

    def secrets_known(self) -> bool:
        return hasattr(self, "secrets")

    def start(self, number: int) -> None:
        command = [sys.executable, "-m", "surefoot.cli", "serve", "--config", str(self.folder / f"{number}.toml")]
        environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
        with (self.folder / f"{number}.log").open("ab") as log:
            self.running[number] = subprocess.Popen(command, stderr=log, env=environment)
        await_ready(f"http://127.0.0.1:{self.ports[number - 1]}")

    def stop(self, number: int) -> None:
        process = self.running.pop(number)
        process.terminate()
        assert process.wait(60) == 0

    def dump(self) -> bytes:
        command = [str(self.postgres.bin_path / "pg_dump"), "--schema=surefoot", self.database]
        return subprocess.run(command, capture_output=True, check=True).stdout

    def restore(self, dump: bytes) -> None:
        with psycopg.connect(self.database, autocommit=True) as connection:
            connection.execute("DROP SCHEMA surefoot CASCADE")
        psql = [str(self.postgres.bin_path / "psql"), "-q", "-v", "ON_ERROR_STOP=1", self.database]
        subprocess.run(psql, input=dump, check=True, capture_output=True)


@pytest.fixture
def shop(tmp_path: Path, server: PostgresServer) -> Iterator[Installation]:
    nginx = os.environ.get("NGINX_PATH") or shutil.which("nginx") or "/usr/sbin/nginx"
    if not Path(nginx).exists():
        pytest.skip(HOW)
    found = Installation(tmp_path, server)
    key = [
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        str(tmp_path / "key.pem"),
        "-out",
        str(tmp_path / "cert.pem"),
    ]
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(["openssl", "req", "-x509", *key, *subject, "-days", "2"], check=True, capture_output=True)
    places = "".join(
        f"{kind}_temp_path {tmp_path}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = f"daemon off;\npid {tmp_path}/nginx.pid;\nerror_log {tmp_path}/nginx.log;\nevents {{}}\n"
    config += f"http {{\naccess_log off;\n{places}{found.here(block('nginx'))}}}\n"
    (tmp_path / "nginx.conf").write_text(config)
    for number in (1, 2):
        found.surefoot(f"surefoot config check --config /etc/surefoot/{number}.toml")
        found.start(number)
    proxy = subprocess.Popen([nginx, "-e", str(tmp_path / "nginx.log"), "-c", str(tmp_path / "nginx.conf")])
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                httpx.get(f"{found.url}/readyz", verify=False, trust_env=False).raise_for_status()
                break
            except httpx.HTTPError:
                time.sleep(0.1)
        yield found
    finally:
        proxy.terminate()
        proxy.wait(30)
        for number in list(found.running):
            found.stop(number)


def client_of(shop: Installation) -> Client:
    transport = httpx.HTTPTransport(verify=False)
    return Client(shop.url, token=shop.secrets[1], timeout=20.0, transport=transport)


def test_from_nothing_to_a_rolling_upgrade_and_a_restore(shop: Installation) -> None:
    made, decided = (shop.surefoot(command) for command in commands() if command.startswith("curl"))
    assert json.loads(made)["name"] == "shop"
    assert json.loads(decided)["action_id"] == "blue"
    admin = {"authorization": f"Bearer {shop.secrets[0]}"}
    with httpx.Client(base_url=shop.url, headers=admin, verify=False, trust_env=False, timeout=60) as operator:
        assert operator.get("/metrics").status_code == 404
        assert operator.get("/v1/experiments/shop").json()["rounds"] == 1
        assert "<title>surefoot</title>" in operator.get("/").text

        # The upgrade: one server after the other, while a shop goes on asking.
        ended, fallbacks, rounds = threading.Event(), [0], [0]

        def load() -> None:
            with client_of(shop) as client:
                while not ended.is_set():
                    decision = client.decide("shop", ROWS)
                    client.reward("shop", decision.decision_id, 0.5)
                    fallbacks[0] += decision.is_fallback
                    rounds[0] += 1

        callers = [threading.Thread(target=load) for _ in range(3)]
        for caller in callers:
            caller.start()
        time.sleep(2.0)
        for number in (1, 2):
            shop.stop(number)
            time.sleep(1.0)
            shop.start(number)
        time.sleep(1.0)
        ended.set()
        for caller in callers:
            caller.join(60)
        assert fallbacks == [0]
        assert operator.get("/v1/experiments/shop").json()["rounds"] == 1 + rounds[0] > 50

        # A backup, something after it, and the disk dies.
        operator.put("/v1/experiments/shop/mode", json={"mode": "guarded"}).raise_for_status()
        dump = shop.dump()
        with client_of(shop) as client:
            lost = client.decide("shop", ROWS)
        for number in (1, 2):
            shop.stop(number)
        shop.restore(dump)
        process = subprocess.run(
            [sys.executable, "-m", "surefoot.cli", "serve", "--config", str(shop.folder / "1.toml")],
            capture_output=True,
            timeout=120,
            text=True,
        )
        assert process.returncode == 2
        assert "it is an older copy" in process.stderr
        told = (
            f"surefoot restore '{shop.database}' --expect {shop.heads} --by ops --reason 'the disk died' --accept-loss"
        )
        assert "Lost: shop had event" in shop.surefoot(told)
        for number in (1, 2):
            shop.start(number)
        time.sleep(2.5)  # nginx tries a server again that was down
        assert operator.get("/v1/experiments/shop").json()["mode"] == "paused"
        assert operator.get(f"/v1/experiments/shop/decisions/{lost.decision_id}").status_code == 404
        operator.put("/v1/experiments/shop/mode", json={"mode": "guarded", "reason": "looked at"}).raise_for_status()
        with client_of(shop) as client:
            assert not client.decide("shop", ROWS).is_fallback
    with open_journal(shop.database) as journal:
        assert audit_journal(journal).is_clean
        assert audit(journal, "shop").is_clean


def test_one_damaged_experiment_costs_the_others_no_answer(shop: Installation) -> None:
    admin = {"authorization": f"Bearer {shop.secrets[0]}"}
    body = {"actions": [{"id": name, "features": row} for name, row in ROWS.items()]}
    with httpx.Client(base_url=shop.url, headers=admin, verify=False, trust_env=False, timeout=60) as operator:
        for name in ("well", "damaged"):
            create(operator, name)
            assert operator.post(f"/v1/experiments/{name}/decisions", json=body).status_code == 201
        for number in (1, 2):
            shop.stop(number)
        with psycopg.connect(shop.database, autocommit=True) as connection:
            edited = connection.execute(
                "UPDATE surefoot.events SET kind = 'unheard of' WHERE number = 2 AND experiment = "
                "(SELECT id FROM surefoot.experiments WHERE name = 'damaged')"
            )
            assert edited.rowcount == 1
        for number in (1, 2):
            shop.start(number)
        statuses = Counter[tuple[str, int]]()
        for _ in range(150):
            for name in ("damaged", "well"):
                statuses[name, operator.post(f"/v1/experiments/{name}/decisions", json=body).status_code] += 1
        assert statuses == {("damaged", 503): 150, ("well", 201): 150}
