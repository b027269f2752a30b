"""From what was sent to the arguments of `Experiment.decide`: limits, actions, catalogues and feature maps."""

from collections import OrderedDict
from collections.abc import Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np

import surefoot
from surefoot.errors import InputError
from surefoot.experiment.kinds import NUMBER_BYTES
from surefoot.journal import canonical
from surefoot.service import requests
from surefoot.service.problems import Fault, ProblemError
from surefoot.service.registry import OpenExperiment, Registry
from surefoot.service.settings import Limits

MOST_AT_ONCE = 20_000  # numbers of a decision's rows that are made in the event loop
MOST_CATALOGUES = 64  # kept in memory; others are read from the journal again


class RegisteredCatalogue:
    """A registered catalogue, ready for use: the rows of its actions, or the map from a context to them."""

    def __init__(self, catalogue: requests.RegisterCatalogue) -> None:
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

    async def register(
        self, opened: OpenExperiment, catalogue: requests.RegisterCatalogue
    ) -> tuple[str, RegisteredCatalogue]:
        """Register a catalogue; twice is once."""
        refuse_names(catalogue.actions)
        # Made first: a catalogue that cannot be used must not reach the journal.
        known = await self._registry.run(RegisteredCatalogue, catalogue)
        most = self._registry.settings.limits.dimensions
        if known.dim > most:
            rule = f"at most {most} features are taken, but this map makes {known.dim}"
            raise ProblemError("invalid", f"In `feature_map`, {rule}.", [Fault("feature_map.context_dim", rule)])
        refuse_bytes(known.size, self._registry.settings.limits)
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
                RegisteredCatalogue(msgspec.json.decode(data or b"", type=requests.RegisterCatalogue)),
            )
        except msgspec.MsgspecError:  # another kind of attachment, or none
            raise ProblemError("unknown-catalogue") from None

    async def arguments(self, opened: OpenExperiment, request: requests.Decide) -> dict[str, Any]:
        """The arguments of `Experiment.decide` for what was sent, with the rows of `actions` or of a catalogue."""
        arguments = request.arguments()
        if not opened.takes_rows:
            return arguments
        actions, digest = arguments.pop("actions", None), arguments.pop("catalogue", None)
        context = arguments.pop("context_features", None)
        known = None if digest is None else await self.find(opened, digest)
        if actions is not None and known is None:
            if context is not None:
                raise InputError("`context_features` must come with a `catalogue` that has a feature map.")
            arguments["actions"], features = [action.id for action in actions], rows_of(actions)
            dimensions = 0 if features is None else features.shape[1]
            refuse_size(len(actions), dimensions, self._registry.settings.limits)
        elif known is not None and actions is None:
            refuse_bytes(known.size, self._registry.settings.limits)
            # Rows that take long to make would keep every other caller waiting.
            is_large = known.size > MOST_AT_ONCE
            features = await self._registry.run(known.features, context) if is_large else known.features(context)
            arguments["actions"] = known.names
        elif opened.is_configured and known is None:
            features = None
        else:
            raise InputError("`actions` must be given, or the `catalogue` that they were registered as, and not both.")
        if features is not None:
            arguments["features"] = features
        if features is not None or not opened.is_configured:  # a configuration makes the rows of the context
            arguments.setdefault("baseline", 0)
        return arguments

    def _remember(self, name: str, digest: str, known: RegisteredCatalogue) -> RegisteredCatalogue:
        self._known[name, digest] = known
        while len(self._known) > MOST_CATALOGUES:
            self._known.popitem(last=False)
        return known


def rows_of(actions: Sequence[requests.Action]) -> Any:
    """One array of the features of actions; None where no action has any."""
    rows = [action.features for action in actions]
    if rows[0] is None and rows.count(None) == len(rows):
        return None
    if None not in rows:
        lengths = list(map(len, rows))  # type: ignore[arg-type]
        if lengths.count(lengths[0]) == len(lengths):
            # Flat first: NumPy takes longer to find out how lists are nested than to read them.
            flat = chain.from_iterable(rows)  # type: ignore[arg-type]
            return np.fromiter(flat, np.float64, len(rows) * lengths[0]).reshape(len(rows), lengths[0])
    rule = "every action must have features, or none"
    first = rows[0]
    if first is not None:
        rule = f"every action must have as many features as the first, {len(first)}"
        index = next(at for at, row in enumerate(rows) if row is None or len(row) != len(first))
    else:
        index = next(at for at, row in enumerate(rows) if row is not None)
    raise ProblemError("invalid", f"In `actions`, {rule}.", [Fault(f"actions[{index}].features", rule)])


def refuse_size(actions: int, dimensions: int, limits: Limits) -> None:
    """Refuse more actions or dimensions than the server's limits allow."""
    if actions > limits.actions:
        rule = f"at most {limits.actions} actions are taken, but got {actions}"
        raise ProblemError("invalid", f"In `actions`, {rule}.", [Fault("actions", rule)])
    if dimensions > limits.dimensions:
        rule = f"at most {limits.dimensions} features are taken, but got {dimensions}"
        raise ProblemError("invalid", f"In `actions`, {rule}.", [Fault("actions[].features", rule)])


def refuse_bytes(numbers: int, limits: Limits) -> None:
    """Refuse rows that nobody sent, and that would take more room in the journal than what may be sent."""
    if NUMBER_BYTES * numbers > limits.body_bytes:
        rule = f"rows that are made of a context have at most {limits.body_bytes // NUMBER_BYTES} numbers in all"
        raise ProblemError("invalid", f"{rule.capitalize()}, but these have {numbers}.", [Fault("catalogue", rule)])


def refuse_names(actions: Sequence[requests.Action]) -> None:
    """Refuse names that occur twice."""
    names = [action.id for action in actions]
    if len(set(names)) < len(names):
        raise InputError("`actions` must have different ids, but some occur twice.")


def _map_of(
    feature_map: requests.FeatureMapSettings | None, rows: Any
) -> surefoot.Shared | surefoot.Interactions | None:
    if feature_map is None:
        return None
    kind = surefoot.Shared if feature_map.kind == "shared" else surefoot.Interactions
    return kind(rows, context_dim=feature_map.context_dim, context_bound=feature_map.context_bound)
