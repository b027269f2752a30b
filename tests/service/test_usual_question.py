"""The usual question, read in one go: the same as when it is read part by part, and what is odd is left to that."""

import json
import math
import re
import string
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from surefoot.experiment.question import Read, read

from surefoot.errors import SurefootError
from surefoot.service.catalogues import question_of
from surefoot.service.problems import ProblemError
from surefoot.service.request_bodies import DECIDE, read_question_body
from surefoot.service.settings import Limits
from surefoot.service.usual_question import usual_question

LIMITS = Limits(actions=6, dimensions=3)
TEXTS = st.one_of(st.text(string.ascii_letters, min_size=1, max_size=3), st.text(max_size=3), st.just("a" * 201))
NUMBERS = st.one_of(st.floats(), st.floats(-2.0, 2.0), st.integers(-3, 3), st.integers())
ROWS = st.one_of(st.none(), st.lists(NUMBERS, max_size=4), st.lists(NUMBERS, min_size=2, max_size=2))
ACTIONS = st.lists(st.fixed_dictionaries({"id": TEXTS}, optional={"features": ROWS}), max_size=8)
EVEN = (
    st.integers(1, 4)
    .flatmap(lambda dim: st.dictionaries(TEXTS, st.lists(NUMBERS, min_size=dim, max_size=dim), min_size=1, max_size=7))
    .map(lambda rows: [{"id": name, "features": row} for name, row in rows.items()])
)
IDS = st.sampled_from([None, "visit-1", "visit-1\n", "x" * 201, "-x", "a b", "\u00e9"])
CONTEXTS = st.sampled_from([None, {}, {"age": 41, "person": "p"}, {"deep": {"}": '"\\'}}, {"bad": math.nan}, [1]])
REWARDS = st.one_of(st.none(), st.floats(), st.lists(st.floats(0, 1), min_size=2, max_size=2))
BESIDE = st.fixed_dictionaries(
    {},
    optional={
        "decision_id": IDS,
        "context": CONTEXTS,
        "baseline_reward": REWARDS,
        "confirms": st.just([]),
        "catalogue": st.none(),
        "unknown": st.just(1),
    },
)


def in_one_go(body: bytes, *, sealed: bool) -> Read | None:
    return usual_question(body, sizes=(LIMITS.actions, LIMITS.dimensions), sealed=sealed)


def part_by_part(body: bytes, *, sealed: bool) -> Read:
    return read(question_of(read_question_body(DECIDE, body, is_guard=False), None, LIMITS), sealed=sealed)


def check(body: bytes, *, sealed: bool = True) -> Read | None:
    """What is read in one go; it must be what is read part by part."""
    try:
        quick = in_one_go(body, sealed=sealed)
    except SurefootError as error:
        with pytest.raises(SurefootError, match=re.escape(str(error))):
            part_by_part(body, sealed=sealed)
        return None
    if quick is None:
        return None
    found = part_by_part(body, sealed=sealed)
    assert quick.rows is not None
    assert found.rows is not None
    assert quick.rows.tobytes() == found.rows.tobytes()
    assert quick.rows.shape == found.rows.shape
    assert quick.told == found.told
    if b"decision_id" in body:
        assert (quick.decision_id, quick.key) == (found.decision_id, found.key)
    return quick


@settings(max_examples=400)
@given(st.one_of(ACTIONS, EVEN), BESIDE, st.data(), st.booleans(), st.booleans())
def test_a_question_is_read_alike_both_ways(
    actions: list[Any], beside: dict[str, Any], data: st.DataObject, is_ascii: bool, sealed: bool
) -> None:
    baseline = data.draw(st.sampled_from([None, "no such", *(one["id"] for one in actions)]))
    told = {"actions": actions, **({} if baseline is None else {"baseline": baseline}), **beside}
    body = json.dumps(told, ensure_ascii=is_ascii, indent=data.draw(st.sampled_from([None, 1])))
    check(body.encode("utf-8", "surrogatepass"), sealed=sealed)


USUAL = {
    "actions": [{"id": name, "features": [0.25, -1.5e-3]} for name in ("a", "b", "\u00e9")],
    "baseline": "b",
    "baseline_reward": 0.5,
    "decision_id": "visit-1",
    "context": {"age": 41, "words": ["}", '"', "\\"]},
}


@settings(max_examples=600)
@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 2), st.integers(0, 255)), min_size=1, max_size=3))
def test_a_damaged_body_is_read_alike_both_ways(damages: list[tuple[int, int, int]]) -> None:
    body = bytearray(json.dumps(USUAL, ensure_ascii=False).encode())
    marks = b'{}[]",:0123456789.eE+-\\ \n\x00\x80'
    for place, how, byte in damages:
        at = place % len(body)
        put = bytes([marks[byte % len(marks)]])
        body[at : at + (how > 0)] = b"" if how == 2 else put
    check(bytes(body))


ODD = [
    b"",
    b"[]",
    b"{}",
    b'{"actions":[]}',
    b'{"actions":[{"id":"a"}]}',
    b'{"actions":[{"features":[1.0]}]}',
    b'{"actions":[{"id":"a","features":[]}]}',
    b'{"actions":[{"id":"a","features":[0.1]},{"id":"a","features":[0.2]}]}',
    b'{"actions":[{"id":"a","features":[0.1]},{"id":"b","features":[0.2,0.3]}]}',
    b'{"actions":[{"id":"a","id":"b","features":[0.1]}]}',
    b'{"actions":[{"id":"a","features":[0.1],"features":[0.2]}]}',
    b'{"actions":[{"id":"a","features":[0.1]}],"actions":[{"id":"b","features":[0.1]}]}',
    b'{"actions":[{"id":"","features":[0.1]}]}',
    b'{"actions":[{"id":"\\u0061","features":[0.1]}]}',
    b'{"actions":[{"id":"\xff","features":[0.1]}]}',
    b'{"actions":[{"id":"a\nb","features":[0.1]}]}',
    b'{"actions":[{"id":"a","features":[1e400]}]}',
    b'{"actions":[{"id":"a","features":[01]}]}',
    b'{"actions":[{"id":"a","features":[1.]}]}',
    b'{"actions":[{"id":"a","features":[.5]}]}',
    b'{"actions":[{"id":"a","features":[+1]}]}',
    b'{"actions":[{"id":"a","features":[-]}]}',
    b'{"actions":[{"id":"a","features":[1e]}]}',
    b'{"actions":[{"id":"a","features":[-0]}]}',
    b'{"actions":[{"id":"a","features":[NaN]}]}',
    b'{"actions":[{"id":"a","features":["1"]}]}',
    b'{"actions":[{"id":"a","features":[null]}]}',
    b'{"actions":[{"id":"a","features":[1.0],"more":1}]}',
    b'{"actions":[{"id":"a","features":[0.1,0.1,0.1,0.1]}]}',
    b'{"actions":[' + b",".join(b'{"id":"%d","features":[0.1]}' % n for n in range(7)) + b"]}",
    b'{"actions":[{"id":"a","features":[0.1]},]}',
    b'{"actions":[{"id":"a","features":[0.1,]}]}',
    b'{"actions":[{"id":"a","features":[0.1]}],}',
    b'{"actions":[{"id":"a","features":[0.1]}]} x',
    b'{"actions":[{"id":"a","features":[0.1]}],"baseline":"b"}',
    b'{"actions":[{"id":"a","features":[0.1]}],"decision_id":"a b"}',
    b'{"actions":[{"id":"a","features":[0.1]}],"decision_id":null}',
    b'{"actions":[{"id":"a","features":[0.1]}],"catalogue":null}',
    b'{"actions":[{"id":"a","features":[0.1]}],"context":{"a":}}',
    b'{"actions":[{"id":"a","features":[0.1]}],"context":{"a":1}',
    b'{"actions":[{"id":"a","features":[0.1]}],"context":{"a":' + b"[" * 60 + b"]" * 60 + b"}}",
    b'{"actions":[{"id":"a","features":[0.1]}],"context":' + b'{"a":' * 2000 + b"1" + b"}" * 2001,
]


@pytest.mark.parametrize("body", ODD, ids=lambda body: body[:60].decode("latin-1"))
def test_what_is_odd_is_left_to_those_who_refuse_it_in_words(body: bytes) -> None:
    assert in_one_go(body, sealed=True) is None


def test_a_body_that_is_nested_too_deeply_is_refused_and_no_error_of_ours() -> None:
    with pytest.raises((ProblemError, SurefootError)):
        part_by_part(ODD[-1], sealed=True)


@pytest.mark.parametrize("indent", [None, 2])
def test_a_question_of_usual_shape_is_read_in_one_go(indent: int | None) -> None:
    found = check(json.dumps(USUAL, ensure_ascii=False, indent=indent).encode())
    assert found is not None
    assert (found.told.actions, found.told.baseline, found.told.baseline_reward) == (["a", "b", "\u00e9"], 1, 0.5)
    assert (found.features, found.told.context) == ([[0.25, -1.5e-3]] * 3, USUAL["context"])
    np.testing.assert_array_equal(found.rows, [[0.25, -1.5e-3]] * 3)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_is_read_to_the_bit(number: float) -> None:
    body = b'{"actions":[{"id":"a","features":[%s]}]}' % repr(number).encode()
    found = check(body)
    # A number too small to be told apart from 0 is left to the other reader.
    assert found is None or found.features == [[number]]
    assert found is not None or abs(number) < 1e-300
