"""Debian's Chromium without a window, driven by its DevTools protocol: what the tests of the page need."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pytest
from websockets.sync.client import ClientConnection, connect

NAMES = ("chromium", "chromium-browser", "google-chrome")
HOW = "no Chromium here: `make browser` installs Debian's (as root), or set CHROMIUM to one that you have"
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # tests often run as root, where Chromium refuses its sandbox; it sees this machine's page only
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--no-proxy-server",
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
    "--force-color-profile=srgb",
)


def chromium() -> str:
    """Where Chromium is; without one the test is skipped, and says how to get it."""
    named = os.environ.get("CHROMIUM")
    found = next((path for name in ([named] if named else NAMES) if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(HOW)
    return found


class Tab:
    """One tab; everything it complains of is kept in `complaints`."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection, self.number = connection, 0
        self.complaints: list[str] = []
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command of the protocol, and its result."""
        self.number += 1
        self.connection.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            message = json.loads(self.connection.recv(timeout=60))
            if message.get("id") == self.number:
                assert "error" not in message, message["error"]
                result: dict[str, Any] = message["result"]
                return result
            self.hear(message)

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, script: str, *, seconds: float = 30.0) -> Any:
        """The value of an expression, as soon as it is true."""
        deadline = time.monotonic() + seconds
        while not (value := self.run(script)):
            assert time.monotonic() < deadline, f"{script} stayed {value!r}; the page says:\n{self.text()}"
            time.sleep(0.1)
        return value

    def text(self) -> str:
        """What a reader sees."""
        return str(self.run("document.body.innerText"))

    def open(self, url: str) -> Self:
        """Go to a page."""
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")
        return self

    def size(self, width: int, height: int, *, scale: float = 1.0) -> None:
        """Be a screen of this size."""
        is_phone = width < 600
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=is_phone
        )

    def theme(self, name: str) -> None:
        """Prefer light or dark."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def press(self, key: str, code: int) -> None:
        """Press a key and let it go."""
        text = {"Enter": "\r", " ": " "}.get(key, "")
        about = {"key": key, "windowsVirtualKeyCode": code, "nativeVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **about)
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.call("Input.insertText", text=text)

    def shoot(self, file: Path) -> None:
        """A picture of the whole page."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(found["data"]))

    def hear(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        if message.get("method") == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(params["args"]))
        if message.get("method") == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")


class Browser:
    """Chromium, and the port at which it can be driven."""

    def __init__(self, port: int) -> None:
        self.port = port

    @contextmanager
    def tab(self) -> Iterator[Tab]:
        """A new tab, which is closed in the end."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/json/new?about:blank", method="PUT")
        with urllib.request.urlopen(request, timeout=30) as answer:
            target = json.load(answer)
        with connect(target["webSocketDebuggerUrl"], max_size=None, proxy=None, ping_interval=None) as connection:
            yield Tab(connection)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/json/close/{target['id']}", timeout=30) as answer:
            answer.read()


@contextmanager
def browser() -> Iterator[Browser]:
    """Chromium with a profile of its own, ended in the end."""
    path = chromium()
    with tempfile.TemporaryDirectory(prefix="surefoot-browser-", ignore_cleanup_errors=True) as profile:
        command = [path, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield Browser(_port(Path(profile) / "DevToolsActivePort", process))
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _port(file: Path, process: "subprocess.Popen[bytes]") -> int:
    deadline = time.monotonic() + 60
    while not (file.exists() and file.read_text().strip()):
        assert process.poll() is None, f"Chromium ended at once, with {process.returncode}"
        assert time.monotonic() < deadline, "Chromium did not open its port"
        time.sleep(0.05)
    return int(file.read_text().split()[0])
