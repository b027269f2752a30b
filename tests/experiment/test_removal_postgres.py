"""An experiment that goes while another process plays it, on a real PostgreSQL."""

import threading
import time
from pathlib import Path

import surefoot
from surefoot.audit import ExpectedHead, audit, audit_journal
from surefoot.errors import JournalNotFoundError
from surefoot.experiment import Experiment
from surefoot.experiment.removal import archive
from surefoot.journal import Head, open_journal


def test_every_decision_that_was_acknowledged_while_it_was_archived_is_in_the_archive(tmp_path: Path, url: str) -> None:
    acknowledged, begun = list[Head](), threading.Event()
    with open_journal(url) as ours, open_journal(url) as theirs:
        Experiment.create(ours, "shop", surefoot.UCB(arms=2))

        def play() -> None:
            shop = Experiment.open(theirs, "shop")
            try:
                while True:
                    head = shop.decide(baseline=0).head
                    assert head is not None
                    acknowledged.append(Head(head.number, head.hash))
                    if len(acknowledged) > 20:
                        begun.set()
                        time.sleep(0.02)  # a server has moments without a caller
            except JournalNotFoundError:
                return

        thread = threading.Thread(target=play)
        thread.start()
        assert begun.wait(60)
        head = archive(ours, "shop", tmp_path / "kept.db", by="ops", reason="a test")
        thread.join(60)
        assert not thread.is_alive()
        whole = audit_journal(ours, expect=[ExpectedHead("shop", *one) for one in acknowledged])
        assert whole.is_clean, list(whole.findings)
    assert max(acknowledged) <= head
    with open_journal(tmp_path / "kept.db", read_only=True) as kept:
        assert audit(kept, "shop", expect=acknowledged).is_clean
