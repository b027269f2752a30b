"""After a failed flush the journal opens its file again by itself; nothing acknowledged is lost, nothing doubled."""

import subprocess
import sys
from pathlib import Path

from surefoot.journal import open_journal
from tests.journal.failing_flush import failing_flush

WRITE = """
import sys
from pathlib import Path
from surefoot.errors import JournalError
from surefoot.journal import open_journal

switch = Path(sys.argv[2])
journal = open_journal(sys.argv[1])
journal.create("shop", b"{}", time=0.0)

def write(key):
    try:
        journal.transact("shop", lambda t: t.append("decision", b"{}", time=0.0, key=key))
        print("done", key, flush=True)
    except JournalError as error:
        print(type(error).__name__, key, flush=True)

for turn in range(3):
    write(f"before {turn}")
    switch.touch()
    for n in range(3):
        write(f"during {turn} {n}")
    try:
        journal.probe()
        print("probed")
    except JournalError as error:
        print("no probe", type(error).__name__)
    switch.unlink()
    write(f"after {turn}")
    journal.probe()
"""


def test_a_journal_heals_when_its_disk_does(tmp_path: Path) -> None:
    environment, switch = failing_flush(tmp_path)
    path = tmp_path / "shop.db"
    command = [sys.executable, "-c", WRITE, str(path), str(switch)]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()
    told = {key: word for word, _, key in (line.partition(" ") for line in said if "probe" not in line)}
    with open_journal(path) as journal:
        keys = [event.key for event in journal.read("shop", 1)]
    acknowledged = [key for key, word in told.items() if word == "done"]
    assert acknowledged == [f"{when} {turn}" for turn in range(3) for when in ("before", "after")]
    assert [key for key in keys if key in acknowledged] == acknowledged
    assert len(set(keys)) == len(keys)
    for turn in range(3):
        words = [told[f"during {turn} {n}"] for n in range(3)]
        assert words[0] == "OutcomeUnknownError"
        assert set(words[1:]) <= {"OutcomeUnknownError", "JournalUnavailableError"}
    assert "probed" not in said
    assert sum(line.startswith("no probe") for line in said) == 3
