"""Every verb of an experiment, on every kind of policy, in every place, audited; what cannot be is a line in HOLES."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from surefoot.client import ServiceError
from surefoot.errors import AlarmError, ConfigError, DecisionError, InputError, ModeError
from tests.corpus.days import KINDS, Day
from tests.corpus.places import AtEdge, Process, Served, Shard

PLACES: dict[str, Any] = {"process": Process, "service": Served, "shard": Shard, "edge": AtEdge}
ANY, ALONE, SHARED = ("rows", "arms", "pair"), ("process", "service"), ("shard", "edge")
EVERYWHERE = (*ALONE, *SHARED)
VERBS: dict[str, Callable[["Cell"], None]] = {}
# What an experiment, or the policy of one kind, is created with for a verb.
OPTIONS: dict[str, dict[str, Any]] = {
    "erase": {"sealed": True},
    "correct": {"reward_window": 3600.0},
    "close_windows": {"reward_window": 0.1},
    "confirm": {"confirm_within": 3600.0},
}
BOUNDS = {"reward_bounds": [0.0, 1.0]}
OPTIONS_OF: dict[tuple[str, str], dict[str, Any]] = {("acknowledge", "rows"): BOUNDS, ("acknowledge", "arms"): BOUNDS}
SETTINGS_OF: dict[tuple[str, str], dict[str, Any]] = {("find_unit", "pair"): {"unit_window": 5, "default_reward": 0.0}}

# Verb (of all: ""), kinds, places, the error that says so, and its words. docs/experiment.md has the same table.
HOLES: list[tuple[str, tuple[str, ...], tuple[str, ...], type[Exception], str]] = [
    ("confirm", ANY, ("edge",), ConfigError, "`confirm_within` must be left out of a sharded ledger"),
    ("", ("arms",), SHARED, ConfigError, "Only SafeLUCB and Guard can be leased"),
    ("erase", ANY, ("shard",), ConfigError, "sealed"),
    ("erase", ANY, ("edge",), InputError, "Only a sealed experiment"),  # the service makes it without
    ("fork", ANY, SHARED, ConfigError, "shared by shards"),
    ("fork", ("arms",), ALONE, ConfigError, "takes no history"),
    ("fork", ("pair",), ALONE, ConfigError, "its banks count what the coins"),
    ("set_mode", ANY, ("edge",), ModeError, "change it at the service"),
    ("confirm", ("arms", "pair"), ALONE, ConfigError, "`confirm_within` is for SafeLUCB"),
    ("confirm", ANY, ("shard",), ConfigError, "confirm_within"),
    ("acknowledge", ANY, SHARED, AlarmError, "shared floor cannot be answered"),
    ("acknowledge", ("pair",), ALONE, AlarmError, "There must be an alarm"),  # a reward out of bounds is refused
    ("close_windows", ANY, ("service",), AttributeError, "close_windows"),  # the server does it by itself
    ("find_unit", ANY, ("service",), AttributeError, "find_unit"),  # `decide` finds it, and so does a flag
    ("find_unit", ("rows", "arms"), EVERYWHERE, InputError, "names a unit of a guard"),
    ("find_unit", ANY, SHARED, ConfigError, "unit_window"),
]


class Cell:
    """One kind in one place."""

    def __init__(self, kind: str, place: str, folder: Path, *, verb: str = "") -> None:
        policy, settings = KINDS[kind]
        settings = settings | SETTINGS_OF.get((verb, kind), {})
        options = OPTIONS.get(verb, {}) | OPTIONS_OF.get((verb, kind), {})
        self.kind, self.place = kind, PLACES[place](folder, policy, settings, **options)
        self.day = Day(kind, self.place, seed=7)

    @property
    def shop(self) -> Any:
        return self.place.shop

    def request(self) -> dict[str, Any]:
        request = self.day.request()
        return {"features" if name == "rows" else name: value for name, value in request.items()}

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
def acknowledge(cell: Cell) -> None:
    with contextlib.suppress(ServiceError):  # a guard refuses it, and raises no alarm
        cell.shop.reward(cell.decide().decision_id, 7.0)
    cell.shop.acknowledge("stay", reason="looked at", by="ops")
    assert cell.shop.status().alarm_answer == "stay"


@verb
def confirm(cell: Cell) -> None:
    answer = cell.learners()
    assert cell.shop.confirm([answer.decision_id, "nobody"]) == 1
    assert cell.shop.confirm([answer.decision_id]) == 0


@verb
def close_windows(cell: Cell) -> None:
    cell.decide()
    cell.place.wait(0.2)
    assert cell.shop.close_windows() == 1
    assert cell.shop.status().learned == 1


@verb
def find_unit(cell: Cell) -> None:
    assert cell.shop.find_unit("anna") is None
    answer = cell.shop.decide(**cell.request(), unit="anna")
    assert cell.shop.find_unit("anna").decision_id == answer.decision_id


@verb
def export(cell: Cell) -> None:
    cell.shop.reward(cell.decide().decision_id, cell.reward())
    assert len(cell.place.export()) == 1


@verb
def fork(cell: Cell) -> None:
    cell.shop.reward(cell.decide().decision_id, cell.reward())
    cell.place.fork("again")


@pytest.mark.parametrize("place", PLACES)
def test_rewards_come_in_parts_in_every_place(place: str, tmp_path: Path) -> None:
    cell = Cell("metrics", place, tmp_path)
    with contextlib.closing(cell.place):
        answer, value = cell.decide(), {"quality": 0.5, "cost": 0.3}
        for name in ("cost", "quality"):
            assert cell.shop.reward(answer.decision_id, {name: value[name]}).is_accepted
        assert cell.shop.status().pending == 0
        assert cell.place.reward(answer.decision_id, {"cost": 0.4}) == "conflict"


def played(name: str, kind: str, place: str, folder: Path) -> None:
    cell = Cell(kind, place, folder, verb=name)
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
    errors = (error, ServiceError) if error else ()
    with pytest.raises(errors, match=words) if errors else contextlib.nullcontext():
        played(name, kind, place, tmp_path)
