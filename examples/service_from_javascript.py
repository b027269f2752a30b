"""The service, from JavaScript.

`surefoot serve` answers over HTTP, so any language will do. The client, `service_from_javascript.mjs`, is thirty
lines of fetch: it creates an experiment, asks for decisions, and hands in rewards. This script starts a server, runs
the client with Node, and draws what it printed.
"""

import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

client = Path(__file__).with_suffix(".mjs")
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
address = f"http://127.0.0.1:{port}"

with tempfile.TemporaryDirectory() as folder:
    command = [sys.executable, "-m", "surefoot", "serve", "--port", str(port), "--database", f"{folder}/shop.journal"]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)  # its log
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{address}/readyz")
                break
            except OSError:
                time.sleep(0.1)
        said = subprocess.run(
            ["node", str(client), address], stdout=subprocess.PIPE, text=True, check=True, timeout=120
        ).stdout
    finally:
        server.terminate()
        server.wait()

visits = [json.loads(line) for line in said.splitlines()]
is_learner = np.array([visit["source"] == "learner" for visit in visits])
last = [visit["action"] for visit in visits[-100:]]
print(f"{is_learner.sum()} of {len(visits)} visits the learner's, {last.count('one-click')} of the last 100 one-click")

figure, ax = plt.subplots(figsize=(6.4, 2.6))
for place, action in enumerate(("classic", "guest", "one-click")):
    shown = [visit["visit"] for visit in visits if visit["action"] == action]
    ax.plot(shown, [place] * len(shown), "|", markersize=12)
ax.set_yticks(range(3), ["classic (today)", "guest", "one-click"])
ax.set(xlabel="visits", ylim=(-0.5, 2.5))
figure.savefig("service_from_javascript.svg")
