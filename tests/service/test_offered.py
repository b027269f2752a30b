"""The usual question, read in one go: the same as when it is read part by part, and what is odd is left to that."""

import string
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.errors import SurefootError
from surefoot.experiment.question import read, read_offered
from surefoot.service.catalogues import question_of
from surefoot.service.request_models import Action, Decide
from surefoot.service.settings import Limits

LIMITS = Limits(actions=6, dimensions=3)
TEXTS = st.one_of(st.text(string.ascii_letters, min_size=1, max_size=3), st.text(max_size=3), st.just("a" * 201))
NUMBERS = st.one_of(st.floats(), st.floats(-2.0, 2.0))
ROWS = st.one_of(st.none(), st.lists(NUMBERS, max_size=4), st.lists(NUMBERS, min_size=2, max_size=2))
ACTIONS = st.lists(st.builds(Action, id=TEXTS, features=ROWS), max_size=8)
EVEN = (
    st.integers(1, 4)
    .flatmap(lambda dim: st.dictionaries(TEXTS, st.lists(NUMBERS, min_size=dim, max_size=dim), min_size=1, max_size=7))
    .map(lambda rows: [Action(id=name, features=row) for name, row in rows.items()])
)
IDS = st.one_of(st.none(), st.sampled_from(["visit-1", "visit-1\n", "x" * 201]))
CONTEXTS = st.one_of(st.none(), st.just({"age": 41, "person": "p"}), st.just({"bad": float("nan")}))
REWARDS = st.one_of(st.none(), st.floats(), st.lists(st.floats(0, 1), min_size=2, max_size=2))


def part_by_part(asked: Decide, sealed: bool) -> Any:
    return read(question_of(asked, None, LIMITS), sealed=sealed)


@given(st.one_of(ACTIONS, EVEN), st.data(), IDS, CONTEXTS, REWARDS, st.booleans())
def test_a_question_is_read_alike_both_ways(
    actions: list[Action], data: st.DataObject, decision_id: str | None, context: Any, reward: Any, sealed: bool
) -> None:
    baseline = data.draw(st.one_of(st.none(), st.sampled_from(["no such", *(one.id for one in actions)])))
    told = {"baseline": baseline, "baseline_reward": reward, "decision_id": decision_id, "context": context}
    sizes = (LIMITS.actions, LIMITS.dimensions)
    refused, quick = "", None
    try:
        quick = read_offered(actions, sizes=sizes, sealed=sealed, **told)
    except SurefootError as error:
        refused = str(error)
    if refused:
        with pytest.raises(SurefootError) as slow:
            part_by_part(Decide(actions=actions, **told), sealed)
        assert str(slow.value) == refused
    if quick is None:
        return
    found = part_by_part(Decide(actions=actions, **told), sealed)
    assert quick.rows is not None
    np.testing.assert_array_equal(quick.rows, found.rows)
    assert quick.told == found.told
    if decision_id is not None:
        assert (quick.decision_id, quick.key) == (found.decision_id, found.key)


@pytest.mark.parametrize(
    "actions",
    [
        [],
        [Action(id="a")],
        [Action(id="a", features=[])],
        [Action(id="a", features=[0.1]), Action(id="a", features=[0.2])],
        [Action(id="a", features=[0.1]), Action(id="b", features=[0.2, 0.3])],
        [Action(id="", features=[0.1])],
        [Action(id="\ud800", features=[0.1])],
        [Action(id="a", features=[1])],  # not a float: nobody has decoded it
        [Action(id="a", features=[0.1] * 4)],
        [Action(id=str(n), features=[0.1]) for n in range(7)],
    ],
)
def test_what_is_odd_is_left_to_those_who_refuse_it_in_words(actions: list[Action]) -> None:
    told: dict[str, Any] = {"baseline": None, "baseline_reward": None, "decision_id": "visit-1", "context": None}
    assert read_offered(actions, sizes=(LIMITS.actions, LIMITS.dimensions), sealed=True, **told) is None


def test_a_question_of_usual_size_is_read_in_one_go() -> None:
    actions = [Action(id=name, features=[0.25, -1.5]) for name in ("a", "b", "\u00e9")]
    told: dict[str, Any] = {"baseline": "b", "baseline_reward": None, "decision_id": None, "context": {"age": 41}}
    found = read_offered(actions, sizes=(LIMITS.actions, LIMITS.dimensions), sealed=True, **told)
    assert found is not None
    assert (found.told.actions, found.told.baseline, found.features) == (["a", "b", "\u00e9"], 1, [[0.25, -1.5]] * 3)
