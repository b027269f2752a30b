"""The state of a linear policy as plain arrays, and back: the core's structs in the order in which they are saved."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix
from surefoot.core import native
from surefoot.errors import StateError
from surefoot.linear.actions import Catalogue

LIST_SHARE = 8  # a short list holds at most this part of the actions (`core/short_list.hpp`)
BEFORE_DEBT = 20  # numbers of a memory before its debt, which older ones have not
# Rows of saved scores: means, squares, one without meaning, and the short list behind its length and three bounds. One
# more than the observations that other rows have missed follows it; 0, also of older states, says that they are lost.
MEANS, SQUARES, _, LIST, ROWS = range(5)  # ROWS: how many
BOUNDS = 4
MOST_MISSED = 2**31 - 1


def arrays_of(core: Any, catalogue: Catalogue | None) -> dict[str, Any]:
    """Everything that a core's policy remembers."""
    arrays: dict[str, Any] = {"ridge": core.ridge.save(), "ledger": core.ledger.save(), "memory": core.memory.save()}
    likelihood = core.save_likelihood()
    if likelihood.size:
        arrays["likelihood"] = likelihood
    if catalogue is not None:
        arrays["catalogue"] = catalogue.rows.copy()
        arrays["catalogue_scores"] = _scores_of(core, catalogue.rows.shape[0])
    return arrays


def restore(core: Any, arrays: Mapping[str, Any], dim: int) -> Catalogue | None:
    """Restore what `arrays_of` returned; the catalogue, if there was one."""
    memory = _numbers(arrays["memory"])
    # Before there were restarts a memory had no debt and no rounds before it, which were both 0.
    if memory.size == core.memory.save().size - 2:
        memory = np.insert(memory, BEFORE_DEBT, [0.0, 0.0])
    for name, part, saved in (
        ("ridge", core.ridge, _numbers(arrays["ridge"])),
        ("ledger", core.ledger, _numbers(arrays["ledger"])),
        ("memory", core.memory, memory),
    ):
        if saved.size != part.save().size:
            raise StateError(f"`{name}` must have shape {part.save().shape}, but got {np.shape(arrays[name])}.")
        try:
            part.load(saved)
        except native.DamagedState as error:
            raise StateError(f"`{name}` must be the state of a policy with these settings, but {error}.") from None
    if core.save_likelihood().size:
        try:
            core.load_likelihood(_numbers(arrays["likelihood"]))
        except native.DamagedState as error:
            raise StateError(f"`likelihood` must be the state of a policy with these settings, but {error}.") from None
    if not core.ridge.is_sound(core.settings.ridge):
        raise StateError("`ridge` must be the state of a ridge regression with these settings, but it is not.")
    if "catalogue" not in arrays:
        return None
    catalogue = Catalogue(arrays["catalogue"])
    if catalogue.dim != dim:
        raise StateError(f"`catalogue` must have dim={dim} columns, but has {catalogue.dim}.")
    core.adopt(catalogue.rows)
    _restore_scores(core, np.asarray(arrays["catalogue_scores"], dtype=np.float64), catalogue.rows.shape[0])
    return catalogue


def _numbers(saved: Any) -> NDArray[np.float64]:
    array = np.ascontiguousarray(saved, dtype=np.float64)
    if array.ndim != 1:
        raise StateError(f"A part of this state must be a line of numbers, but has shape {array.shape}.")
    return array


def _scores_of(core: Any, actions: int) -> Matrix:
    means, squares, listed, travel, reach, bar = core.catalogue_scores()
    scores = np.zeros((ROWS, actions))
    scores[MEANS], scores[SQUARES] = means, squares
    if listed:
        told = [len(listed), travel, reach, bar, *listed, core.catalogue_missed + 1]
        scores[LIST, : len(told)] = told
    return scores


def _restore_scores(core: Any, saved: Matrix, actions: int) -> None:
    if saved.shape not in ((ROWS, actions), (LIST, actions)):  # older states have no short list
        raise StateError(f"`catalogue_scores` must have shape {(ROWS, actions)}, but got {saved.shape}.")
    row = saved[LIST] if len(saved) > LIST else np.zeros(actions)
    length = row[0]
    is_length = 0 <= length <= actions // LIST_SHARE and length == np.floor(length)
    listed = row[BOUNDS : BOUNDS + int(length)] if is_length else row[:0]
    if not (is_length and (listed >= 0).all() and (listed < actions).all() and (listed == np.floor(listed)).all()):
        raise StateError("`catalogue_scores` must end with a short list of rows, but it does not.")
    travel, reach, bar = row[1:BOUNDS].tolist() if length else (0.0, 0.0, 0.0)
    missed = row[BOUNDS + int(length)] - 1.0 if length else -1.0
    if not (-1 <= missed <= MOST_MISSED and missed == np.floor(missed)):
        raise StateError(f"`catalogue_scores` must tell how many observations were missed, but got {missed + 1}.")
    means, squares = np.ascontiguousarray(saved[MEANS]), np.ascontiguousarray(saved[SQUARES])
    core.restore_scores(means, squares, [int(i) for i in listed], travel, reach, bar, int(missed))
