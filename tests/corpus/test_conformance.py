"""Every verb of an experiment, on every kind of policy, in every place, audited; what cannot be is a line in HOLES.

A service is an experiment in a process that is asked over HTTP: what it adds is tested in tests/service.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import ConfigError, DecisionError, InputError, ModeError, SurefootError
from surefoot.experiment import fork as begin_from
from surefoot.experiment.export import pair_rounds, row_rounds
from tests.corpus.days import KINDS, Day
from tests.corpus.places import AtEdge, Process, Shard

PLACES: dict[str, Any] = {"process": Process, "shard": Shard, "edge": AtEdge}
ANY, SHARED = ("rows", "arms", "pair"), ("shard", "edge")
VERBS: dict[str, Callable[["Cell"], None]] = {}
OPTIONS: dict[str, dict[str, Any]] = {"erase": {"sealed": True}, "correct": {"reward_window": 3600.0}}

# Verb (of all: ""), kinds, places, the error that says so, and its words. docs/experiment.md has the same table.
HOLES: list[tuple[str, tuple[str, ...], tuple[str, ...], type[SurefootError], str]] = [
    ("", ("arms",), SHARED, ConfigError, "Only SafeLUCB and Guard can be leased"),
    ("erase", ANY, ("shard",), ConfigError, "sealed"),
    ("erase", ANY, ("edge",), InputError, "Only a sealed experiment"),  # the service makes it without
    ("fork", ANY, SHARED, ConfigError, "shared by shards"),
    ("fork", ("arms",), ("process",), ConfigError, "takes no history"),
    ("fork", ("pair",), ("process",), ConfigError, "its banks count what the coins"),
    ("set_mode", ANY, ("edge",), ModeError, "change it at the service"),
]


class Cell:
    """One kind in one place."""

    def __init__(self, kind: str, place: str, folder: Path, **options: Any) -> None:
        self.kind, self.place = kind, PLACES[place](folder, *KINDS[kind], **options)
        self.day = Day(kind, self.place, seed=7)

    @property
    def shop(self) -> Any:
        return self.place.shop

    def request(self) -> dict[str, Any]:
        asked = self.day.request()
        return {"features" if name == "rows" else name: value for name, value in asked.items()}

    def decide(self) -> Any:
        return self.shop.decide(**self.request())

    def learners(self) -> Any:
        """A round that the learner played by another action than the baseline's."""
        for number in range(400):
            request = self.request()
            answer = self.shop.decide(**request)
            if answer.source == "learner" and answer.action != request["baseline"]:
                return answer
            self.shop.reward(answer.decision_id, self.reward())
            if number % 20 == 19:
                self.place.renew()
        raise AssertionError("the learner never played")

    def reward(self) -> Any:
        return self.day.reward("baseline")


def verb(function: Callable[[Cell], None]) -> Callable[[Cell], None]:
    VERBS[function.__name__] = function
    return function


@verb
def decide(cell: Cell) -> None:
    first, second = cell.decide(), cell.decide()
    assert (first.round, second.round) == (1, 2)
    assert cell.shop.find(first.decision_id).action == first.action


@verb
def decide_again(cell: Cell) -> None:
    request = cell.request()
    first, again = (cell.shop.decide(**request, decision_id="mine") for _ in range(2))
    assert (first.action, first.round) == (again.action, again.round)
    assert again.is_repeat
    assert cell.shop.status().rounds == 1


@verb
def reward(cell: Cell) -> None:
    answer, value = cell.decide(), cell.reward()
    assert cell.shop.reward(answer.decision_id, value).is_accepted
    assert cell.shop.reward(answer.decision_id, value).is_repeat
    assert cell.shop.status().rewards == 1


@verb
def book(cell: Cell) -> None:
    assert cell.shop.book(**cell.request(), decision_id="mine", by="till").source == "baseline"
    assert cell.shop.reward("mine", cell.reward()).is_accepted


@verb
def void(cell: Cell) -> None:
    with contextlib.suppress(DecisionError):  # the first leases of rows are over with the round that it is about
        assert cell.shop.void(cell.learners().decision_id, reason="too late")
    if cell.shop.status().voided == 0:
        assert cell.shop.void(cell.learners().decision_id, reason="too late")
    assert cell.shop.status().voided == 1


@verb
def abandon(cell: Cell) -> None:
    assert cell.shop.abandon(cell.decide().decision_id, reason="lost")
    assert cell.shop.status().abandoned == 1


@verb
def correct(cell: Cell) -> None:
    answer = cell.decide()
    cell.shop.reward(answer.decision_id, cell.reward())
    assert cell.shop.correct(answer.decision_id, cell.reward(), reason="misread", by="ops")


@verb
def erase(cell: Cell) -> None:
    assert cell.shop.erase([cell.decide().decision_id], reason="asked for", by="legal") >= 1


@verb
def restart(cell: Cell) -> None:
    answer = cell.decide()
    cell.place.restart()
    assert cell.shop.status().rounds == 1
    assert cell.shop.reward(answer.decision_id, cell.reward()).is_accepted


@verb
def set_mode(cell: Cell) -> None:
    cell.shop.set_mode("paused", reason="holidays", by="ops")
    cell.place.renew()
    assert cell.decide().is_held


@verb
def export(cell: Cell) -> None:
    cell.shop.reward(cell.decide().decision_id, cell.reward())
    rows = (pair_rounds if cell.kind == "pair" else row_rounds)(cell.shop.journal, cell.shop.name)
    assert len(list(rows)) == 1


@verb
def fork(cell: Cell) -> None:
    cell.shop.reward(cell.decide().decision_id, cell.reward())
    begin_from(cell.shop.journal, cell.shop.name, "again", reason="anew")


@pytest.mark.parametrize("place", PLACES)
def test_rewards_come_in_parts_in_every_place(place: str, tmp_path: Path) -> None:
    cell = Cell("metrics", place, tmp_path)
    with contextlib.closing(cell.place):
        answer, value = cell.decide(), {"quality": 0.5, "cost": 0.3}
        for name in ("cost", "quality"):
            assert cell.shop.reward(answer.decision_id, {name: value[name]}).is_accepted
        assert cell.shop.status().pending == 0
        assert cell.shop.reward(answer.decision_id, {"cost": 0.4}).refused is not None


def played(name: str, kind: str, place: str, folder: Path) -> None:
    cell = Cell(kind, place, folder, **OPTIONS.get(name, {}))
    with contextlib.closing(cell.place):
        VERBS[name](cell)
        assert is_clean(cell.place.end()["audit"])


def is_clean(verdict: dict[str, Any]) -> bool:
    """Of one chain, or of each that there is."""
    return verdict["is_clean"] if "is_clean" in verdict else all(map(is_clean, verdict.values()))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ANY)
@pytest.mark.parametrize("name", VERBS)
def test_every_verb_works_on_every_kind_in_every_place(name: str, kind: str, place: str, tmp_path: Path) -> None:
    holes = [one[3:] for one in HOLES if one[0] in ("", name) and kind in one[1] and place in one[2]]
    error, words = holes[0] if holes else (None, "")
    with pytest.raises(error, match=words) if error else contextlib.nullcontext():
        played(name, kind, place, tmp_path)
