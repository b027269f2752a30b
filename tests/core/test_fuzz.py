"""Damaged states and wrong shapes: a clear error or none, never a crash; and what was taken still decides and learns.

A crash ends the whole run of the tests, so these need not look for one.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surefoot
from surefoot.arrays import Matrix
from surefoot.core import native
from surefoot.errors import SurefootError
from surefoot.linear.radius import RADII
from surefoot.linear.ridge import sized
from surefoot.safety.constraints import Constraint
from surefoot.safety.gates import GATES, OPTIMISMS
from tests.core.structs import STRUCTS, rows_of
from tests.linear.scoring import settings_with

REFUSED = (ValueError, TypeError)
ODD = (
    0.0, -0.0, 1.0, -1.0, 0.5, 12.0, 13.0, 16.0, 100.0, 1e4, 1e9, 2.0**31, 2.0**53, 2.0**63, 1e300, -1e300, 5e-324,
    math.nan, math.inf, -math.inf,
)  # fmt: skip
NUMBERS = st.one_of(st.sampled_from(ODD), st.floats(), st.integers(-20, 20).map(float))
WRONG: tuple[Any, ...] = (None, "numbers", 7, -1, math.nan, math.inf, [[1.0], [2.0, 3.0]], {}, b"12345678")
USUAL = b'{"actions":[{"id":"a","features":[0.1,2]},{"id":"b","features":[3e-4,-5]}],"context":{"a":"\\""}}'
BODY = (
    b'{"actions":[',
    b'{"id":"a"',
    b',"features":[',
    b"0.5",
    b"-",
    b"e",
    b'"',
    b"\\",
    b"{",
    b"}",
    b"]",
    b",",
    b"\xff",
)
EXAMPLES = settings(max_examples=60, deadline=None, derandomize=True)
LINEAR = [name[:-1] for name, kind in vars(native).items() if name.endswith("N") and hasattr(kind, "decide_given")]
CONSTRAINTS = {kind.name: kind.code for kind in Constraint.__subclasses__() if kind.__module__ == Constraint.__module__}
CHOICES = {"radius": RADII, "gate": GATES, "optimism": OPTIMISMS, "constraint": CONSTRAINTS}


@pytest.mark.parametrize("name", CHOICES)
def test_the_core_has_every_choice_that_python_names_and_no_other(name: str) -> None:
    told, codes = native.LinearSettings(), sorted(CHOICES[name].values())
    assert codes == list(range(len(codes)))
    for code in codes:
        setattr(told, name, code)
        assert getattr(told, name) == code
    for code in (-1, len(codes)):
        with pytest.raises(ValueError, match="no such choice"):
            setattr(told, name, code)


@st.composite
def damages(draw: st.DrawFn) -> Callable[[Any], Any]:
    """A way to damage an array: other numbers, more or fewer of them, another shape or type."""
    how = draw(st.sampled_from(["numbers", "numbers", "numbers", "all", "short", "long", "shape", "type"]))
    places = draw(st.lists(st.tuples(st.integers(0, 2**20), NUMBERS), min_size=1, max_size=6))
    near_front = draw(st.booleans())  # where counts stand

    def damaged(saved: Any) -> Any:
        array = np.array(saved, dtype=np.float64)
        flat = array.reshape(-1)
        if how == "short":
            return flat[: places[0][0] % max(flat.size, 1)].copy()
        if how == "long":
            return np.append(flat, [value for _, value in places])
        if how == "shape":
            return array[None].copy()
        if how == "type":
            return WRONG[places[0][0] % len(WRONG)]
        if how == "all":
            flat[:] = places[0][1]
        for place, value in places:
            if flat.size:
                flat[place % (min(flat.size, 30) if near_front else flat.size)] = value
        return array

    return damaged


@pytest.mark.parametrize("name", STRUCTS)
@EXAMPLES
@given(damage=damages())
def test_a_struct_refuses_damage_and_stays_as_it_was_or_takes_it_whole(name: str, damage: Callable[[Any], Any]) -> None:
    struct = STRUCTS[name]
    state, other = struct.make(), struct.make()
    before = struct.save(state)
    try:
        struct.load(state, damage(before))
    except REFUSED:
        assert struct.save(state).tobytes() == before.tobytes()
        return
    taken = struct.save(state)
    struct.load(other, taken)
    assert struct.save(other).tobytes() == taken.tobytes()
    struct.use(state)


@pytest.mark.parametrize("name", STRUCTS)
def test_no_odd_number_in_any_place_is_more_than_a_struct_can_bear(name: str) -> None:
    struct = STRUCTS[name]
    saved = struct.save(struct.make())
    for place in range(saved.size):
        for value in ODD:
            state, changed = struct.make(), saved.copy()
            changed.reshape(-1)[place] = value
            try:
                struct.load(state, changed)
            except native.DamagedState:
                continue
            struct.use(state)


FACTS = -(3 + 8) * (3 + 3)  # where the facts of a memory start, from its end: room for dim + 8 of them
COUNTS = [("ridge-3", (1, 8, 9, 10)), ("ledger-3", (0, 1)), ("memory-3", (12, 15, 16, 17, 18, 21)), ("UCB", (0, 3))]


@pytest.mark.parametrize("value", [-1.0, 0.5, 1e300, math.nan, math.inf])
@pytest.mark.parametrize(("name", "places"), COUNTS)
def test_a_count_that_is_none_is_refused(name: str, places: tuple[int, ...], value: float) -> None:
    struct = STRUCTS[name]
    saved = struct.save(struct.make())
    for place in places:
        changed = saved.copy()
        changed.reshape(-1)[place] = value
        with pytest.raises(native.DamagedState, match="count"):
            struct.load(struct.make(), changed)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("ridge-3", 9, 16.0),
        ("ridge-3", 0, 4.0),
        ("memory-3", 16, 12.0),
        ("memory-3", FACTS, 13.0),
        ("memory-3", FACTS, 1e4),
    ],
)
def test_more_rows_facts_or_kinds_than_there_are_are_refused(name: str, place: int, value: float) -> None:
    struct = STRUCTS[name]
    saved = struct.save(struct.make())
    saved[place] = value
    with pytest.raises(native.DamagedState):
        struct.load(struct.make(), saved)


@pytest.mark.parametrize("dim", [3, 4])
@pytest.mark.parametrize("rule", LINEAR)
@EXAMPLES
@given(
    damage=damages(), part=st.sampled_from(["ridge", "ledger", "memory"]), choices=st.tuples(*[st.integers(0, 4)] * 2)
)
def test_a_policy_of_the_core_goes_on_with_whatever_a_part_of_it_took(
    rule: str, dim: int, damage: Callable[[Any], Any], part: str, choices: tuple[int, int]
) -> None:
    rows, told = rows_of(dim, 60), settings_with(radius=choices[0], constraint=choices[1], alpha=0.3, sum_delta=0.01)
    told.range_low, told.range_high, told.optimism, told.watchful = 0.0, 1.0, choices[0] % 2, bool(choices[1] % 2)
    core = sized(rule, dim)(dim, told)
    go_on(core, rows)
    with suppress(*REFUSED):
        getattr(core, part).load(damage(getattr(core, part).save()))
    go_on(core, rows)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(value=NUMBERS, place=st.integers(0, 10**6), is_spread=st.booleans())
def test_many_long_rows_are_screened_by_damaged_numbers_without_a_crash(
    value: float, place: int, is_spread: bool
) -> None:
    dim = 64  # from which rows are looked at in single precision first
    core, rows = sized("LUCB", dim)(dim, settings_with()), rows_of(dim, 70)
    core.learn(rows[0].tobytes(), 0.4, True)
    saved = core.ridge.save()
    head = 12  # theta, then the whitener
    saved[head + place % (dim + dim * dim) :: 7 if is_spread else saved.size] = value
    saved[head + dim + dim * dim :] = core.ridge.save()[head + dim + dim * dim :]
    core.ridge.load(saved)
    action, *_ = core.decide(rows, False, 1, 0.0, 0.0, math.inf, native.FREE)
    assert 0 <= action < len(rows)


def go_on(core: Any, rows: Matrix) -> None:
    """Every way to decide, and to learn."""
    for is_catalogue in (False, True):
        if is_catalogue:
            core.adopt(rows)
        for order in (native.FREE, native.HOLD, 2):
            *_, evidence = core.decide(rows, is_catalogue, 1, 0.4, 0.3, 0.5, order)
            _ = evidence.split, evidence.question, evidence.features
            core.learn(evidence.features, 0.4, evidence.is_learner)
    *_, evidence = core.conclude(rows[0], rows[1], 0.7, 0.4, 0.3, 0.5, native.FREE)
    core.learn(evidence.features, 0.4, core.teaches(True))
    core.judge(rows, 0, 1)
    core.catalogue_scores()


# ---------------------------------------------------------------------------------- saved policies

TOLD: dict[str, Any] = {"delta": 0.1, "noise": 0.3, "ridge": 0.3, "theta_bound": 1.2, "feature_bound": 1.0}
POLICIES: dict[str, Callable[[], Any]] = {
    "LUCB": lambda: surefoot.LUCB(dim=3, **TOLD),
    "CLUCB": lambda: surefoot.CLUCB(dim=4, alpha=0.3, **TOLD),
    "CLUCB2": lambda: surefoot.CLUCB2(dim=3, alpha=0.3, nesting="latest", **TOLD),
    "CLUCB2-exact": lambda: surefoot.CLUCB2(dim=3, alpha=0.3, **TOLD),
    "SafeLUCB": lambda: surefoot.SafeLUCB(dim=3, alpha=0.3, reward_range=(0.0, 1.0), **TOLD),
    "SafeLUCB-dual": lambda: surefoot.SafeLUCB(dim=4, alpha=0.3, radius="dual", optimism="facts", **TOLD),
    "SafeLUCB-clicks": lambda: surefoot.SafeLUCB(dim=3, alpha=0.3, reward_bounds=(-1.0, 2.0), **TOLD),
    "SafeLUCB-watched": lambda: surefoot.SafeLUCB(dim=3, alpha=0.3, holdout=0.2, watch_share=0.3, seed=3, **TOLD),
    "UCB": lambda: surefoot.UCB(arms=5),
    "ConservativeUCB": lambda: surefoot.ConservativeUCB(arms=5, alpha=0.5, delta=0.1),
    "ConservativeUCB-bounded": lambda: surefoot.ConservativeUCB(arms=5, alpha=0.5, delta=0.1, reward_bounds=(-1, 2)),
}


def play(policy: Any, rounds: int) -> None:
    rows = surefoot.Catalogue(rows_of(getattr(policy, "dim", 3)))
    known = 0.4 if isinstance(policy, (surefoot.CLUCB, surefoot.SafeLUCB)) else None
    for number in range(rounds):
        decision = policy.decide(rows, baseline=1, baseline_reward=known)
        _ = decision.certificate.proof
        if number % 3:
            policy.observe(decision, 0.5)


def some_key(state: dict[str, Any], number: int) -> str:
    """Any key of a state, the arrays more often."""
    arrays = [key for key, value in state.items() if isinstance(value, np.ndarray)]
    return [*state, *arrays, *arrays][number % (len(state) + 2 * len(arrays))]


@pytest.mark.parametrize("name", POLICIES)
@EXAMPLES
@given(damage=damages(), number=st.integers(0, 10**6), wrong=st.sampled_from(WRONG), setting=st.integers(0, 30))
def test_a_damaged_state_is_refused_or_goes_on(
    name: str, damage: Callable[[Any], Any], number: int, wrong: Any, setting: int
) -> None:
    policy = POLICIES[name]()
    play(policy, 4)
    state = policy.state()
    key = some_key(state, number)
    if isinstance(state[key], np.ndarray):
        state[key] = damage(state[key])
    elif key == "settings" and setting < len(state[key]):
        state[key] = {**state[key], list(state[key])[setting]: wrong}
    else:
        state[key] = wrong
    try:
        again = surefoot.Policy.from_state(state)
    except SurefootError:
        return
    try:
        play(again, 4)
    except (SurefootError, *REFUSED):
        return
    again.state()


# ---------------------------------------------------------------------------------- arguments

KINDS: dict[str, Any] = {
    name: kind for name, kind in vars(native).items() if isinstance(kind, type) and kind.__module__ != "builtins"
}


def instances() -> dict[str, Any]:
    """One of every bound class."""
    metric = native.MetricSettings(
        sign=1.0, alpha=0.1, low=0.0, most_baseline=1.0, event=0.01, reserve=0.1, is_played=False, coin_event=0.01
    )
    guard = native.GuardSettings([metric], ramp="earn", largest_share=0.5)
    made: dict[str, Any] = {
        "LinearSettings": settings_with(), "MetricSettings": metric, "GuardSettings": guard, "Bets": native.Bets(),
        "Bank": native.Bank.new(metric), "GuardBooks": native.GuardBooks(guard), "Tally": native.Tally([0.1]),
        "GuardRuns": native.GuardRuns(guard, runs=2, delay=1), "SideEstimate": native.Bank.new(metric).learner,
        "Drift": native.Bets().seen_by_best(0.1),
    }  # fmt: skip
    for rule in ("UCB", "ConservativeUCB"):
        made[rule] = getattr(native, rule)(arms=3, noise=0.5, alpha=0.3, delta=0.1, known=-1.0)
    for dim, end in ((3, "N"), (4, "4")):
        made[f"Ridge{end}"] = getattr(native, f"Ridge{end}")(dim, 0.3)
        made[f"Ledger{end}"], made[f"Memory{end}"] = (
            getattr(native, f"{name}{end}")(dim) for name in ("Ledger", "Memory")
        )
        for rule in LINEAR:
            made[f"{rule}{end}"] = getattr(native, f"{rule}{end}")(dim, settings_with())
        made[f"Evidence{end}"] = made[f"LUCB{end}"].judge(rows_of(dim), 0, 1)
    return made


def signatures() -> dict[str, str]:
    """What every bound function takes, by its name."""
    found: dict[str, str] = {}
    for name, bound in vars(native).items():
        if isinstance(bound, type):
            methods = {f"{name}.{method}": getattr(bound, method) for method in dir(bound)}
        else:
            methods = {name: bound}
        found |= {key: method.__nb_signature__[0][0] for key, method in methods.items() if has_signature(method)}
    return {key: text for key, text in found.items() if not key.endswith("__new__")}


def has_signature(method: Any) -> bool:
    return hasattr(method, "__nb_signature__") and isinstance(method.__nb_signature__[0][0], str)


SIGNATURES = signatures()


def split_parameters(text: str) -> list[str]:
    """The parameters of a signature, without `self`; commas within brackets separate nothing."""
    inside, depth, parts = text[text.index("(") + 1 : text.rindex(") ->")], 0, [""]
    for letter in inside:
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip() not in ("self", "/", "")]


def array_for(kind: str, draw: Callable[..., Any]) -> Any:
    size = st.sampled_from([0, 1, 2, 3, 3, 3, 4, 4, 4, 5, 7])
    shape = tuple(draw(size) for _ in range(kind.split("shape=(")[1].split(")")[0].count("*")))
    total = math.prod(shape)
    few = draw(st.lists(NUMBERS, min_size=1, max_size=5))
    array = np.resize(np.array(few), total).reshape(shape)
    if "int64" in kind:
        return np.resize(np.array(draw(st.lists(st.integers(-3, 8), min_size=1, max_size=5))), total).reshape(shape)
    return array > 0 if "bool" in kind else array


def argument(kind: str, made: dict[str, Any], draw: Callable[..., Any]) -> Any:
    """Something of the type that is asked for, and now and then of another."""
    if draw(st.integers(0, 30)) == 0:
        return draw(st.sampled_from(WRONG))
    if kind.startswith("collections.abc.Sequence["):
        inner = kind[len("collections.abc.Sequence[") :].split(" | ")[0].removesuffix("]")
        return [argument(inner, made, draw) for _ in range(draw(st.integers(0, 4)))]
    if kind.startswith("tuple["):
        return tuple(argument(part, made, draw) for part in split_parameters(f"({kind[6:-1]}) ->"))
    if kind.startswith("ndarray"):
        return array_for(kind, draw)
    name = kind.split(".")[-1].split(" ")[0]
    if name == "object":  # rows as a caller gives them
        return array_for("shape=(*, *)", draw)
    if name in made:
        return made[name]
    plain = {"int": st.integers(-5, 40), "float": NUMBERS, "bool": st.booleans(), "str": st.sampled_from(["auto", "x"])}
    if name == "bytes":
        zeros = st.sampled_from([0, 7, 24, 32, 40]).map(bytes)
        marks = st.lists(st.sampled_from(BODY), max_size=30).map(b"".join)
        return draw(st.one_of(zeros, marks, st.integers(0, 200).map(lambda end: USUAL[:end])))
    return draw(plain[name])


@pytest.mark.parametrize("key", SIGNATURES)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(data=st.data())
def test_arguments_that_do_not_fit_are_refused(key: str, data: st.DataObject) -> None:
    made = instances()
    positional, named, is_named = [], {}, False
    for parameter in split_parameters(SIGNATURES[key]):
        if parameter == "*":
            is_named = True
            continue
        name, kind = parameter.split(": ", 1)
        value = argument(kind.split(" = ")[0], made, data.draw)
        if is_named:
            named[name] = value
        else:
            positional.append(value)
    owner, _, method = key.rpartition(".")
    if not owner:
        called = getattr(native, method)
    elif method in ("__init__", "new"):
        called = KINDS[owner] if method == "__init__" else KINDS[owner].new
    else:
        called = getattr(made[owner], method)
    with suppress(*REFUSED):
        called(*positional, **named)
    for state in made.values():  # whatever was done to it, it can be saved
        if hasattr(state, "save"):
            state.save()


@pytest.mark.parametrize("number", [0, -3, 2.5, 2.0**63, 1e300, math.inf, math.nan])
def test_a_pending_round_has_a_number(number: float) -> None:
    policy = surefoot.SafeLUCB(dim=2, alpha=0.1, delta=0.1, noise=0.1, theta_bound=1.0, feature_bound=1.0)
    policy.decide(np.eye(2), baseline=0)
    state = policy.state() | {"pending_rounds": np.array([number])}
    with pytest.raises(SurefootError, match="counted from 1 on"):
        surefoot.SafeLUCB.from_state(state)
