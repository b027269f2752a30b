"""The audit stands alone: in an empty interpreter it brings rounds, the journal and errors, and nothing it checks."""

import subprocess
import sys

CODE = """
import sys
import surefoot.audit
print(*sorted(name for name in sys.modules if name.startswith("surefoot.")))
"""
OWN = (
    "surefoot.audit",
    "surefoot.rounds",
    "surefoot.journal",
    "surefoot.errors",
    "surefoot._lazy",
)
OF_THE_JOURNAL = {"surefoot.hints", "surefoot.ids", "surefoot.values", "surefoot.version"}


def test_the_audit_loads_nothing_that_it_checks() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "surefoot.audit.recorded_proof" in loaded
    assert {name for name in loaded if not name.startswith(OWN)} <= OF_THE_JOURNAL
