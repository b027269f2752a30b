"""Logs in which no action has any effect: in some the context drives both the action and the reward, in others chance.

Twenty kinds: ten contexts, each with two actions that are said to have had equal chances, and with three whose shares
are stated. Of every kind there is a clean twin, whose actions are drawn as it is said.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Columns = dict[str, NDArray[np.generic]]
ROWS = 4_000
SHARES = {2: np.array([0.5, 0.5]), 3: np.array([0.5, 0.3, 0.2])}


def _phone(rng: np.random.Generator) -> tuple[Columns, Vector]:
    phone = rng.random(ROWS) < 0.5
    return {"device": np.where(phone, "phone", "desktop")}, np.where(phone, 1.0, -1.0)


def _rare(rng: np.random.Generator) -> tuple[Columns, Vector]:
    pro = rng.random(ROWS) < 0.1
    return {"plan": np.where(pro, "pro", "basic")}, np.where(pro, 3.0, -1 / 3)


def _age(rng: np.random.Generator) -> tuple[Columns, Vector]:
    age = rng.integers(18, 70, ROWS)
    return {"age": age}, np.asarray((age - 44.0) / 15.0)


def _middle(rng: np.random.Generator) -> tuple[Columns, Vector]:
    age = rng.integers(18, 70, ROWS)
    return {"age": age}, np.where(np.abs(age - 44.0) < 13.0, 1.0, -1.0)


def _city(rng: np.random.Generator) -> tuple[Columns, Vector]:
    city = rng.integers(0, 6, ROWS)
    return {"city": np.array(list("ABCDEF"))[city]}, np.array([-1.5, -0.9, -0.3, 0.3, 0.9, 1.5])[city]


def _many(rng: np.random.Generator) -> tuple[Columns, Vector]:
    columns = rng.normal(size=(ROWS, 8))
    return {f"x{k}": columns[:, k] for k in range(8)}, columns.sum(axis=1) / np.sqrt(8)


def _hour(rng: np.random.Generator) -> tuple[Columns, Vector]:
    hour = rng.integers(0, 24, ROWS)
    return {"hour": hour}, np.sqrt(2) * np.sin(2 * np.pi * hour / 24)


def _spend(rng: np.random.Generator) -> tuple[Columns, Vector]:
    spend = rng.lognormal(3.0, 1.0, ROWS)
    return {"spent": spend}, np.clip((np.log(spend) - 3.0), -2, 2)


def _both(rng: np.random.Generator) -> tuple[Columns, Vector]:
    phone, age = rng.random(ROWS) < 0.5, rng.integers(18, 70, ROWS)
    columns = {"device": np.where(phone, "phone", "desktop"), "age": age, "noise": rng.random(ROWS)}
    return columns, ((2.0 * phone - 1.0) + (age - 44.0) / 15.0) / np.sqrt(2)


def _hidden(rng: np.random.Generator) -> tuple[Columns, Vector]:
    """What drives both is not logged, but a column that follows it is."""
    driver = rng.normal(size=ROWS)
    return {"proxy": driver + 0.7 * rng.normal(size=ROWS), "other": rng.random(ROWS)}, driver


CONTEXTS: dict[str, Callable[[np.random.Generator], tuple[Columns, Vector]]] = {
    "phone": _phone, "rare plan": _rare, "age": _age, "middle age": _middle, "city": _city, "many columns": _many,
    "hour": _hour, "spending": _spend, "device and age": _both, "a proxy": _hidden,
}  # fmt: skip
KINDS = [(context, actions) for context in CONTEXTS for actions in (2, 3)]


@dataclass(frozen=True)
class NullLog:
    """A table, and whether its propensities are stated; otherwise all actions are said to have had equal chances."""

    table: pl.DataFrame
    is_stated: bool


def null_log(context: str, actions: int, seed: int, *, tilt: float = 0.4) -> NullLog:
    """Rewards follow the context alone, and so do actions where they are tilted; a log without a tilt is clean."""
    rng = np.random.default_rng([39, list(CONTEXTS).index(context), actions, seed])
    columns, driver = CONTEXTS[context](rng)
    shares = SHARES[actions]
    odds = np.exp(np.outer(driver, np.linspace(-tilt, tilt, actions)))
    for _ in range(200):  # until every action has its share of all rows
        odds *= shares / (odds / odds.sum(axis=1, keepdims=True)).mean(axis=0)
    chances = odds / odds.sum(axis=1, keepdims=True)
    played = (rng.random((ROWS, 1)) > np.cumsum(chances, axis=1)).sum(axis=1).clip(0, actions - 1)
    mean = np.clip(0.3 + 0.12 * driver, 0.02, 0.98) if actions == 2 else np.clip(0.08 + 0.05 * driver, 0.01, 0.9)
    names = np.array(["old", "new", "other"])
    given = {"action": names[played], "reward": (rng.random(ROWS) < mean).astype(int)}
    stated = {"propensity": shares[played]} if actions > 2 else {}
    return NullLog(pl.DataFrame({**columns, **given, **stated}), bool(stated))
