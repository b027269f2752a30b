"""From a request to an experiment's question: limits, actions, catalogues and feature maps."""

from collections import OrderedDict
from collections.abc import Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np

import surefoot
from surefoot.edge.bundle import EdgeActions, map_of
from surefoot.errors import InputError
from surefoot.experiment import Question
from surefoot.journal import canonical
from surefoot.service import request_models
from surefoot.service.problems import Fault, ProblemError
from surefoot.service.registry import OpenExperiment, Registry
from surefoot.service.settings import Limits

MOST_CATALOGUES = 64  # kept in memory; others are read from the journal again


class RegisteredCatalogue:
    """A registered catalogue, ready for use: the rows of its actions, or the map from a context to them."""

    def __init__(self, catalogue: request_models.Catalogue) -> None:
        self.names = [action.id for action in catalogue.actions]
        rows = rows_of(catalogue.actions)
        if rows is None:
            raise InputError("`features` must be given for every action of a catalogue.")
        self.rows = surefoot.Catalogue(rows)
        self._map = catalogue.feature_map
        self.map = _map_of(catalogue.feature_map, rows)
        self.dim = int(self.rows.rows.shape[1]) if self.map is None else self.map.dim

    def bundled(self) -> bytes:
        """The actions as an edge takes them."""
        told = self._map
        feature_map = None if told is None else (told.kind, told.context_dim, told.context_bound)
        return canonical(EdgeActions(self.names, self.rows.rows.tolist(), feature_map))

    @property
    def size(self) -> int:
        """Numbers that have to be made for a decision; none where the rows stay the same."""
        return 0 if self.map is None else len(self.names) * self.dim

    def features(self, context: Sequence[float] | None) -> Any:
        """What the policy is given."""
        if self.map is None:
            if context is not None:
                raise InputError("`context_features` must be left out: this catalogue has no feature map for them.")
            return self.rows
        if context is None:
            raise InputError(f"`context_features` must hold {self.map.context_dim} numbers for this catalogue's map.")
        return self.map(context)


class Catalogues:
    """The catalogues of all experiments, by their hash; the journal keeps them as attachments."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: OrderedDict[tuple[str, str], RegisteredCatalogue] = OrderedDict()

    async def register(
        self, opened: OpenExperiment, catalogue: request_models.Catalogue
    ) -> tuple[str, RegisteredCatalogue]:
        """Register a catalogue; twice is once."""
        refuse_names(catalogue.actions)
        # Made first: a catalogue that cannot be used must not reach the journal.
        known = await self._registry.run(RegisteredCatalogue, catalogue)
        most = self._registry.settings.limits.dimensions
        if known.dim > most:
            rule = f"at most {most} features are taken, but this map makes {known.dim}"
            raise ProblemError("invalid", f"In `feature_map`, {rule}.", [Fault("feature_map.context_dim", rule)])
        data = canonical(catalogue)
        digest = await self._registry.run(
            self._registry.journal.transact, opened.name, lambda transaction: transaction.attach(data)
        )
        return digest, self._remember(opened.name, digest, known)

    async def find(self, opened: OpenExperiment, digest: str) -> RegisteredCatalogue:
        """A catalogue that was registered before."""
        found = self._known.get((opened.name, digest))
        if found is not None:
            return found
        data = await self._registry.run(self._registry.journal.attachment, opened.name, digest)
        try:
            return self._remember(
                opened.name,
                digest,
                RegisteredCatalogue(msgspec.json.decode(data or b"", type=request_models.Catalogue)),
            )
        except msgspec.MsgspecError:  # another kind of attachment, or none
            raise ProblemError("unknown-catalogue") from None

    def _remember(self, name: str, digest: str, known: RegisteredCatalogue) -> RegisteredCatalogue:
        self._known[name, digest] = known
        while len(self._known) > MOST_CATALOGUES:
            self._known.popitem(last=False)
        return known


def question_of(
    asked: request_models.Decide, known: RegisteredCatalogue | None, limits: Limits, *, is_configured: bool = False
) -> Question:
    """What the experiment is asked; one with a configuration makes the rows of the context itself."""
    if is_configured and known is None and (asked.actions is None or rows_of(asked.actions) is None):
        names = None if asked.actions is None else [action.id for action in asked.actions]
        return Question(
            None, asked.baseline, asked.baseline_reward, asked.decision_id, names, asked.context, asked.confirms
        )
    if (asked.actions is None) == (known is None):
        raise InputError("`actions` must be given, or the `catalogue` that they were registered as, and not both.")
    if asked.actions is not None:
        if asked.context_features is not None:
            raise InputError("`context_features` must come with a `catalogue` that has a feature map.")
        refuse_size(asked.actions, limits)
        names, features = [action.id for action in asked.actions], rows_of(asked.actions)
    else:
        assert known is not None
        names, features = known.names, known.features(asked.context_features)
    baseline = 0 if asked.baseline is None else asked.baseline
    return Question(features, baseline, asked.baseline_reward, asked.decision_id, names, asked.context, asked.confirms)


def rows_of(actions: Sequence[request_models.Action]) -> Any:
    """One row per action; None where no action has features."""
    rows: list[Any] = [action.features for action in actions]
    lengths = [None if row is None else len(row) for row in rows]
    first = lengths[0] if lengths else None
    if lengths.count(first) == len(lengths):
        if first is None:
            return None
        # Flat first: NumPy takes longer to find out how lists are nested than to read them.
        return np.fromiter(chain.from_iterable(rows), np.float64, first * len(rows)).reshape(len(rows), first)
    index = next(at for at, length in enumerate(lengths) if length is None or length != first)
    rule = f"every action must have as many features as the first, {first}"
    if first is None:
        rule = "every action must have features, or none"
    raise ProblemError("invalid", f"In `actions`, {rule}.", [Fault(f"actions[{index}].features", rule)])


def refuse_size(actions: Sequence[request_models.Action], limits: Limits) -> None:
    """Refuse more actions or dimensions than the server's limits allow."""
    if len(actions) > limits.actions:
        rule = f"at most {limits.actions} actions are taken, but got {len(actions)}"
        raise ProblemError("invalid", f"In `actions`, {rule}.", [Fault("actions", rule)])
    longest = max([len(action.features or ()) for action in actions])
    if longest > limits.dimensions:
        rule = f"at most {limits.dimensions} features are taken, but got {longest}"
        raise ProblemError("invalid", f"In `actions`, {rule}.", [Fault("actions[].features", rule)])


def refuse_names(actions: Sequence[request_models.Action]) -> None:
    """Refuse names that occur twice."""
    names = [action.id for action in actions]
    if len(set(names)) < len(names):
        raise InputError("`actions` must have different ids, but some occur twice.")


def _map_of(given: request_models.FeatureMap | None, rows: Any) -> surefoot.Shared | surefoot.Interactions | None:
    if given is None:
        return None
    return map_of(given.kind, rows, given.context_dim, given.context_bound)
