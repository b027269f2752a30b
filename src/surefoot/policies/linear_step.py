"""One round of a linear policy, compiled: propose, ask the gate, book. Policies differ only in the gate.

A gate is a `judge` (may the proposal be played?) and, if it remembers more than the ledger, a `note` that is written
once it is decided who plays.
"""

import math
import types
from collections.abc import Callable
from typing import Any, TypeVar

from surefoot.arrays import Matrix, Vector
from surefoot.compiled import Compiled, compiled
from surefoot.linear.catalogue import propose
from surefoot.linear.radius import MISFIT, THETA_BOUND, WATCHFUL, radius_of
from surefoot.safety.paper_gates import BETA, OPTIMISM, book
from surefoot.safety.safe_state import LOW, REFUTED

R = TypeVar("R")
TOO_HIGH = 2.0  # in place of REFUTED: a declared reward of the baseline that its features do not allow
# Orders: let the gate decide; play the baseline whatever it says, at the caller's wish, while the alarm is on, or by
# the coin of a holdout. A number of at least 0 is a row that the learner plays.
FREE, HOLD, ALARMED, HELD_OUT = -1, -2, -3, -4


@compiled
def no_note(
    settings: Vector,
    state: Vector,
    ledger: Vector,
    memory: Vector,
    displaced: Vector,
    is_learner: bool,
    record: Vector,
    d: int,
) -> None:
    """The paper's policies remember nothing beside the ledger."""


@compiled
def plain_choice(
    settings: Vector, state: Vector, memory: Vector, rows: Matrix, cached: bool, scores: Matrix, record: Vector
) -> tuple[int, float]:
    """The row with the largest UCB over the confidence set."""
    return propose(settings, state, rows, cached, scores, record[BETA])


@compiled
def is_too_high(settings: Vector, displaced: Vector, least: float, d: int) -> bool:
    """Whether no theta of the declared length lets the baseline earn what it is said to earn at least."""
    square = 0.0
    for i in range(d):
        square += displaced[i] * displaced[i]
    # An alarm must rest on more than rounding.
    return bool(least > settings[THETA_BOUND] * math.sqrt(square) * (1.0 + 1e-9) + settings[MISFIT])


# Placeholders: `step_with` links every policy's own functions under these names.
@compiled
def judge(
    settings: Vector,
    state: Vector,
    ledger: Vector,
    memory: Vector,
    rows: Matrix,
    proposal: Vector,
    displaced: Vector,
    known: float,
    record: Vector,
    d: int,
) -> bool:
    """Whether the proposal may be played; every policy brings its own."""
    return False


note: Compiled[..., None] = no_note
choose: Compiled[..., tuple[int, float]] = plain_choice


def _conclude(
    settings: Vector,
    state: Vector,
    ledger: Vector,
    memory: Vector,
    rows: Matrix,
    proposal: Vector,
    displaced: Vector,
    known: float,
    order: int,
    record: Vector,
    d: int,
) -> bool:
    # Replay declares one mean for all contexts, which single rows may contradict; a live policy must not accept that.
    if (
        settings[WATCHFUL] > 0.0
        and memory[REFUTED] == 0.0
        and is_too_high(settings, displaced, max(known, memory[LOW]), d)
    ):
        memory[REFUTED] = TOO_HIGH
    is_safe = judge(settings, state, ledger, memory, rows, proposal, displaced, known, record, d)
    is_safe = is_safe and memory[REFUTED] != TOO_HIGH
    is_learner = order >= 0 or (order == FREE and is_safe)
    book(ledger, proposal, displaced, known, is_learner, record, d)
    note(settings, state, ledger, memory, displaced, is_learner, record, d)
    return is_learner


conclude: Compiled[..., bool] = compiled(_conclude)


def _step(
    settings: Vector,
    state: Vector,
    ledger: Vector,
    memory: Vector,
    rows: Matrix,
    cached: bool,
    scores: Matrix,
    baseline: int,
    known: float,
    order: int,
    record: Vector,
) -> tuple[int, bool]:
    """One round: the proposal's row, and whether it is played; for row r that breaks the bound D, (-1 - r, False)."""
    record[BETA] = radius_of(settings, state)
    action, record[OPTIMISM] = choose(settings, state, memory, rows, cached, scores, record)
    if action < 0:
        return action, False
    if order >= 0:
        action = order
    proposal, displaced = rows[action], rows[action if baseline < 0 else baseline]
    # The same code twice: with a constant dimension, the paper's 4, the compiler unrolls every loop.
    if rows.shape[1] == 4:
        return action, conclude(settings, state, ledger, memory, rows, proposal, displaced, known, order, record, 4)
    d = rows.shape[1]
    return action, conclude(settings, state, ledger, memory, rows, proposal, displaced, known, order, record, d)


def conclude_with(judge: Compiled[..., bool], note: Compiled[..., None] = no_note) -> Compiled[..., bool]:
    """Ask this gate about a proposal, and book what is played."""
    return compiled(_linked(_conclude, f"{judge.__name__}_conclude", judge=judge, note=note))


def step_with(
    conclude: Compiled[..., bool], choose: Compiled[..., tuple[int, float]] = plain_choice
) -> Compiled[..., tuple[int, bool]]:
    """One round with this gate."""
    return compiled(_linked(_step, f"{conclude.__name__}_step", conclude=conclude, choose=choose))


def _linked(function: Callable[..., R], name: str, **parts: Compiled[..., Any]) -> Callable[..., R]:
    """The same function with other parts behind the names it calls."""
    # numba links callees by the names in a function's globals, so each gate needs a copy with its own.
    linked: Any = types.FunctionType(function.__code__, {**function.__globals__, **parts}, name)
    linked.__qualname__, linked.__doc__ = name, function.__doc__
    made: Callable[..., R] = linked
    return made
