"""Honest experiments that every audit may copy and tamper with."""

from pathlib import Path

import pytest

import surefoot
from surefoot.journal import open_journal
from tests.experiment.honest import played, safe


@pytest.fixture(scope="session")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Honest experiments in files: rewards on arrival; in windows, with a catalogue; and known baseline rewards."""
    folder = tmp_path_factory.mktemp("audit")
    with open_journal(folder / "arrival.db") as journal:
        played(safe(alpha=0.02, reward_range=None), 90, journal=journal, lag=2)
    with open_journal(folder / "window.db") as journal:
        played(safe(), 90, journal=journal, window=5.0, changing=False, lost=0.2)
    with open_journal(folder / "known.db") as journal:
        played(lambda told: surefoot.CLUCB(alpha=0.3, **told), 60, journal=journal)
    return folder
