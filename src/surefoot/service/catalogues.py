"""From what was sent to the arguments of `Experiment.decide`: limits, actions, catalogues and feature maps."""

from collections import OrderedDict
from collections.abc import Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np

import surefoot
from surefoot.errors import InputError
from surefoot.journal import canonical
from surefoot.service import requests
from surefoot.service.problems import Fault, ProblemError
from surefoot.service.registry import OpenExperiment, Registry
from surefoot.service.settings import Limits

MOST_CATALOGUES = 64  # kept in memory; others are read from the journal again


class RegisteredCatalogue:
    """A registered catalogue, ready for use: the rows of its actions, or the map from a context to them."""

    def __init__(self, catalogue: requests.Catalogue) -> None:
        self.names = [action.id for action in catalogue.actions]
        rows = rows_of(catalogue.actions)
        if rows is None:
            raise InputError("`features` must be given for every action of a catalogue.")
        self.rows = surefoot.Catalogue(rows)
        self.map = _map_of(catalogue.feature_map, rows)
        self.dim = int(self.rows.rows.shape[1]) if self.map is None else self.map.dim

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

    async def register(self, opened: OpenExperiment, catalogue: requests.Catalogue) -> tuple[str, RegisteredCatalogue]:
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
                RegisteredCatalogue(msgspec.json.decode(data or b"", type=requests.Catalogue)),
            )
        except msgspec.MsgspecError:  # another kind of attachment, or none
            raise ProblemError("unknown-catalogue") from None

    def _remember(self, name: str, digest: str, known: RegisteredCatalogue) -> RegisteredCatalogue:
        self._known[name, digest] = known
        while len(self._known) > MOST_CATALOGUES:
            self._known.popitem(last=False)
        return known


def arguments_of(
    arguments: dict[str, Any], known: RegisteredCatalogue | None, limits: Limits, *, is_configured: bool = False
) -> dict[str, Any]:
    """The arguments of `Experiment.decide` for what was sent: the rows of `actions`, or of a catalogue."""
    actions: list[requests.Action] | None = arguments.pop("actions", None)
    context = arguments.pop("context_features", None)
    if known is not None and actions is None:
        arguments["features"], arguments["actions"] = known.features(context), known.names
    elif actions is not None and known is None:
        if context is not None:
            raise InputError("`context_features` must come with a `catalogue` that has a feature map.")
        refuse_size(actions, limits)
        arguments["actions"] = [action.id for action in actions]
        rows = rows_of(actions)
        if rows is None and is_configured:  # made of the context
            return arguments
        if rows is not None:
            arguments["features"] = rows
    elif is_configured and known is None:
        return arguments
    else:
        raise InputError("`actions` must be given, or the `catalogue` that they were registered as, and not both.")
    arguments.setdefault("baseline", 0)
    return arguments


def rows_of(actions: Sequence[requests.Action]) -> Any:
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


def refuse_size(actions: Sequence[requests.Action], limits: Limits) -> None:
    """Refuse more actions or dimensions than the server's limits allow."""
    if len(actions) > limits.actions:
        rule = f"at most {limits.actions} actions are taken, but got {len(actions)}"
        raise ProblemError("invalid", f"In `actions`, {rule}.", [Fault("actions", rule)])
    longest = max([len(action.features or ()) for action in actions])
    if longest > limits.dimensions:
        rule = f"at most {limits.dimensions} features are taken, but got {longest}"
        raise ProblemError("invalid", f"In `actions`, {rule}.", [Fault("actions[].features", rule)])


def refuse_names(actions: Sequence[requests.Action]) -> None:
    """Refuse names that occur twice."""
    names = [action.id for action in actions]
    if len(set(names)) < len(names):
        raise InputError("`actions` must have different ids, but some occur twice.")


def _map_of(feature_map: requests.FeatureMap | None, rows: Any) -> surefoot.Shared | surefoot.Interactions | None:
    if feature_map is None:
        return None
    kind = surefoot.Shared if feature_map.kind == "shared" else surefoot.Interactions
    return kind(rows, context_dim=feature_map.context_dim, context_bound=feature_map.context_bound)
