"""Proofs as lines of text, which the extracted checker reads (`driver.ml`).

A float is written as `top/k`, the fraction top / 2^k with a hexadecimal top; a list as its length and its entries; what
is no float, no vector or no fact that the checker knows as `!`, which is refused.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from surefoot.linear.ellipsoid import Ball, Ellipsoid
from surefoot.safety.bank_proof import RATE_GRID, BankProof, GuardProof
from surefoot.safety.facts import Box, Linear
from surefoot.safety.proof import Proof


def proof_line(proof: Proof, question: Any = None, facts: Sequence[Any] | None = None) -> str:
    """A proof with the question that was asked and the facts that are granted, as `surefoot.check` takes them."""
    words = ["proof", *_perhaps(question, _vector), *_vector(proof.question)]
    if isinstance(proof.value, float) and proof.value == -math.inf:
        return " ".join([*words, "none"])
    words += ["some", _number(proof.value), *_perhaps(facts, lambda each: _list(map(_fact, each)))]
    pieces = ([*_fact(piece.fact), *_vector(piece.vector), _number(piece.bound)] for piece in proof.pieces)
    return " ".join([*words, *_list(pieces), *_perhaps(proof.rest, _fact)])


def guard_line(proof: GuardProof) -> str:
    """A guard's proof with the rates of its bets, which have equal weights."""
    rates = _list([_number(1.0), _number(rate)] for rate in RATE_GRID)
    return " ".join(["guard", *rates, *_list(map(_bank, proof.banks))])


def _bank(bank: BankProof) -> list[str]:
    sides = {1.0: "1", -1.0: "0"}
    numbers = (bank.alpha, bank.low, bank.most, bank.delta, bank.share)
    amounts = (bank.bound, bank.owed, bank.reserve, bank.carried, bank.coins)
    words = [sides.get(bank.sign, "!"), str(int(bank.is_played)), *map(_number, numbers)]
    return [*words, *_vector(bank.log_wealth), *map(_number, amounts)]


def _fact(fact: Any) -> list[str]:
    if type(fact) is Linear:
        return ["linear", *_vector(fact.normal), _number(fact.level)]
    if type(fact) is Ball:
        return ["ball", _number(fact.radius)]
    if type(fact) is Ellipsoid:
        rows = _list(map(_vector, np.asarray(fact.whitener)))
        return ["ellipsoid", *_vector(fact.center), *rows, _number(fact.radius)]
    if type(fact) is Box:
        return ["box", _number(fact.low), _number(fact.high)]
    return ["!"]


def _vector(vector: Any) -> list[str]:
    entries = np.asarray(vector)
    return _list([_number(entry)] for entry in entries.tolist()) if entries.ndim == 1 else ["!"]


def _number(number: Any) -> str:
    if isinstance(number, np.generic):
        number = number.item()
    try:
        is_float = float(number) == number and math.isfinite(number)
    except (TypeError, ValueError, OverflowError):
        is_float = False
    if not is_float:
        return "!"
    top, bottom = float(number).as_integer_ratio()
    return f"{top:x}/{bottom.bit_length() - 1}"


def _list(entries: Iterable[list[str]]) -> list[str]:
    each = list(entries)
    return [str(len(each)), *(word for words in each for word in words)]


def _perhaps(what: Any, write: Callable[[Any], list[str]]) -> list[str]:
    return ["none"] if what is None else ["some", *write(what)]
