"""Wrong uses of the commands that work on journals: a sentence, exit code 2, and nothing has changed."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest

import surefoot
import surefoot.errors
import surefoot.experiment
from surefoot.experiment import Experiment
from surefoot.journal import open_journal
from surefoot.service.requests import Name
from tests.cli.shell import Done, shell

LINEAR = ("dim=2", "alpha=0.1", "delta=0.01", "noise=0.5", "theta_bound=1", "feature_bound=1")
SET = [word for pair in LINEAR for word in ("--set", pair)]
OPS = ("--by", "ops", "--reason", "asked by letter")
NAMES = ["0", "2", "1"]  # of the rows


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A journal with a linear experiment, whose actions have numbers for names, and a guard."""
    with open_journal(tmp_path / "j.db") as journal:
        policy = surefoot.SafeLUCB(dim=2, alpha=0.1, delta=0.01, noise=0.5, theta_bound=1.0, feature_bound=1.0)
        shop = Experiment.create(journal, "shop", policy, sealed=True)
        shop.decide([[0.6, 0.0], [0.9, 0.0], [0.1, 0.1]], baseline=0, decision_id="visit-1", actions=NAMES)
        models = Experiment.create(journal, "models", surefoot.Guard(alpha=0.1, delta=0.05, seed=3), mode="guarded")
        models.decide(baseline="big", proposal="small", decision_id="visit-1")
        models.reward("visit-1", 0.5)
    return tmp_path


Command = Callable[..., Done]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return partial(shell, folder=tmp_path)


def stand(folder: Path) -> tuple[list[object], set[str]]:
    """The heads of the journal, and the files beside it."""
    beside = {path.name for path in folder.iterdir() if not path.name.startswith("j.db")}
    with open_journal(folder / "j.db", read_only=True) as journal:
        return [journal.head(name) for name in journal.names()], beside


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("experiment", "abandon", "slip.db", "shop", "visit-1"), "no such file"),
        (("experiment", "void", "slip.db", "shop", "visit-1"), "no such file"),
        (("experiment", "acknowledge", "slip.db", "shop", "stay", "--reason", "x"), "no such file"),
        (("experiment", "erase", "slip.db", "shop", "--person", "ada", *OPS), "no such file"),
        (("experiment", "archive", "slip.db", "shop", "a.db", *OPS), "no such file"),
        (("experiment", "delete", "slip.db", "shop", "--yes", *OPS), "no such file"),
        (("experiment", "correct", "slip.db", "shop", "visit-1", "1", *OPS), "no such file"),
        (("experiment", "fork", "slip.db", "shop", "new", *OPS), "no such file"),
        (("move", "slip.db", "to.db"), "no such file"),
        (("move", "j.db", "./j.db"), "source and target are the same file"),
        (("serve", "--port", "99999"), "The setting `port` must have the right type and size: expected"),
        (("experiment", "status", "j.db", "slip"), "`surefoot experiment list` lists"),
        (("replay", "."), "is a folder"),
        (("simulate", "."), "`.`: Is a directory"),
        (("demo", "--seconds", "-1"), "`seconds > 0` must hold"),
        (("experiment", "create", "new.db", "shop", "--mode", "open", *SET), "`mode` must be one of"),
        (("experiment", "create", "new.db", "", *SET), "`name` must be"),
        (("experiment", "create", "new.db", "shop", "--policy", "LeasedLUCB", *SET), "policy of one shard"),
        (("experiment", "create", "new.db", "shop", "--policy", "guard", *SET), "Did you mean 'Guard'?"),
        (("experiment", "list", "."), "is a folder"),
        (("audit", "."), "is a folder"),
        (("serve", "--database", ".", "--port", "0"), "is a folder"),
        (("backup", "j.db", "."), "must be a new file"),
        (("backup", "j.db", "nowhere/copy.db"), "a folder that exists"),
        (("experiment", "archive", "j.db", "shop", "nowhere/a.db", *OPS), "a folder that exists"),
        (("experiment", "export", "j.db", "shop", "nowhere/out.csv"), "a folder that exists"),
        (("experiment", "export", "j.db", "shop", ".", "--format", "csv"), "a folder that exists"),
        (("audit", "j.db", "--experiment", "shop", "--report", "nowhere/a.html"), "a folder that exists"),
        (("audit", "j.db", "--experiment", "shop", "--shard", "a=j.db"), "'shop' is not one"),
        (("experiment", "erase", "j.db", "shop", "--older-than", "-1", *OPS), "`--older-than`"),
        (("experiment", "erase", "j.db", "shop", "--older-than", "nan", *OPS), "`--older-than`"),
        (
            ("experiment", "erase", "j.db", "shop", "--decision-id", "visit-1", "--by", "", "--reason", " "),
            "who erases",
        ),
        (("restore", "to.db", "--from", "j.db", "--accept-loss", "--by", "", "--reason", "x"), "who restores"),
        (("restore", "postgresql://db/shop", "--from", "j.db", *OPS), "pg_restore"),
        (("token", "create", "--role", "read", "--tokens", "."), "is a folder"),
        (("token", "create", "--role", "read", "--days", "-1", "--tokens", "tokens"), "`--days`"),
        (("token", "list", "--tokens", "slip"), "there is none at slip"),
    ],
)
def test_a_wrong_use_ends_with_a_sentence_and_changes_nothing(
    folder: Path, command: Command, args: tuple[str, ...], words: str
) -> None:
    before = stand(folder)
    refused = command(*args)
    assert refused.code == 2, refused.err
    assert words in refused.err
    assert len(refused.err.splitlines()) == 1
    assert stand(folder) == before


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("HEADS", "nowhere/heads.jsonl", "no head would be kept"),
        ("SIGNING_KEY", "slip.key", "private key"),
        ("HUB", "postgresql://127.0.0.1:1/shop", "PostgreSQL"),
    ],
)
@pytest.mark.parametrize("database", ["j.db", "new.db"])
def test_what_a_server_cannot_run_with_is_found_beforehand(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch, database: str, key: str, value: str, words: str
) -> None:
    settings = {"DATABASE": database, "PORT": "0", key: value} | ({"SHARD": "a"} if key == "HUB" else {})
    for name, given in settings.items():
        monkeypatch.setenv(f"SUREFOOT_{name}", given)
    for args in (("config", "check"), ("serve",)):
        refused = command(*args)
        assert refused.code == 2
        assert words in refused.err


def test_a_name_that_is_a_number_is_no_row(folder: Path, command: Command) -> None:
    assert command("experiment", "void", "j.db", "shop", "visit-1", "--action", "2").code == 0
    with open_journal(folder / "j.db", read_only=True) as journal:
        found = Experiment.open(journal, "shop").find("visit-1")
    assert found.action == NAMES.index("2")


def test_a_guard_is_shown_by_its_share_and_banks_and_exported_with_its_coins(folder: Path, command: Command) -> None:
    shown = command("experiment", "status", "j.db", "models")
    assert shown.code == 0
    for word in ("proved safe up to", "reward allows least", "bank of reward", "of where both differ"):
        assert word in shown.out
    assert "floor" not in shown.out
    exported = command("experiment", "export", "j.db", "models", "models.csv")
    assert "probability of its coin" in exported.out
    assert "deterministic" not in exported.out


def test_a_password_is_not_printed(command: Command, url: str) -> None:
    url += "&password=geheim"
    for args in (
        ("experiment", "create", url, "shop", *SET),
        ("experiment", "list", url),
        ("restore", url, "--accept-loss", *OPS),
    ):
        done = command(*args)
        assert done.code == 0, done.err
        assert "geheim" not in done.out + done.err


@pytest.mark.parametrize("name", ["a b", "a/b", "-x", ".", "caf\u00e9", "a\n", "x" * 101, "shop@till"])
def test_a_name_that_fits_into_no_address_is_refused_as_over_http(command: Command, tmp_path: Path, name: str) -> None:
    done = command("experiment", "create", "--policy", "UCB", "--set", "arms=2", "new.db", "--", name)
    assert (done.code, (tmp_path / "new.db").exists()) == (2, False)
    assert "`name` must be 1 to 100 letters" in done.err
    with open_journal("memory:") as journal:
        with pytest.raises(surefoot.errors.InputError, match="name"):
            surefoot.experiment.create_shared(journal, name, surefoot.Guard(alpha=0.1, delta=0.05))
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(name, type=Name)
        assert journal.names() == []


def test_names_of_old_journals_still_open(command: Command, folder: Path) -> None:
    with open_journal(folder / "j.db") as journal:
        first = next(journal.view("models").read(limit=1))
        journal.create("a b", first.payload, time=1.0)  # as earlier versions did
        old = Experiment.open(journal, "a b")
        assert old.decide(baseline="big", proposal="small").round == 1
    assert command("experiment", "status", "j.db", "a b").code == 0
    assert "a b" in command("experiment", "list", "j.db").out
