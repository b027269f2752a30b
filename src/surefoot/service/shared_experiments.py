"""A server as one of the shards that share a floor: which experiments are shared, and how they are joined."""

from collections.abc import Callable
from typing import Any

from surefoot.errors import ConfigError, JournalError, JournalNotFoundError
from surefoot.experiment import Experiment, create_shared
from surefoot.experiment.lease_renewal import Leases
from surefoot.journal import Journal, open_journal
from surefoot.rounds import decode
from surefoot.rounds.events import Created
from surefoot.service.problems import ProblemError
from surefoot.service.settings import Settings
from surefoot.service.trusted_clock import TrustedClock


class SharedExperiments:
    """Where shards meet, if this server is one of them."""

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        self._settings, self._clock = settings, clock
        self._hub: Journal | None = None
        self._shared: dict[str, bool] = {}  # by name of what is where shards meet, which never changes

    @property
    def hub(self) -> Journal:
        """Where shards meet."""
        if self._hub is None:
            raise ConfigError("`hub` and `shard` must be set for a server whose experiments are sharded.")
        return self._hub

    def open(self) -> None:
        """Open the journal where shards meet, if there is one."""
        if self._settings.hub is not None and self._hub is None:
            self._hub = open_journal(self._settings.hub)
            shared = self._hub.clock()
            if shared is not None and isinstance(self._clock, TrustedClock):
                # Before anything is stamped: rounds are learned in the order of their moments over all shards.
                self._clock.start_from(shared)

    def close(self) -> None:
        """Close it."""
        if self._hub is not None:
            self._hub.close()

    def create(self, name: str, policy: Any, **settings: Any) -> None:
        """Start an experiment whose floor is shared."""
        create_shared(self.hub, name, policy, clock=self._clock, **settings)

    def names(self) -> list[str]:
        """The experiments that are shared; none while the hub is away, for a shard goes on without it."""
        if self._hub is None:
            return []
        try:
            return [name for name in self._hub.names() if self._is_shared(self._hub, name)]
        except JournalError:
            return []

    def has(self, journal: Journal, name: str) -> bool:
        """Whether an experiment is shared, by the server's own chain or by the hub."""
        try:
            return created_of(journal, name).shard is not None
        except JournalNotFoundError:
            return name in self.names()

    def join(self, journal: Journal, name: str) -> Experiment:
        """The server's part of an experiment."""
        settings = self._settings
        assert settings.shard is not None
        return Experiment.join(
            self.hub,
            name,
            journal,
            shard=settings.shard,
            every=settings.lease_decisions,
            seconds=settings.lease_seconds,
            clock=self._clock,
            snapshot_every=settings.snapshot_every,
            secrets=settings.coins,
        )

    def _is_shared(self, hub: Journal, name: str) -> bool:
        if name not in self._shared:
            self._shared[name] = created_of(hub, name).is_hub  # the chain of an edge is there, too
        return self._shared[name]


def created_of(journal: Journal, name: str) -> Created:
    """What an experiment was created with."""
    return decode(next(journal.view(name).read(limit=1)), Created)


def leases_of(experiment: Experiment) -> Leases:
    """How this server shares the promise of an experiment, or the problem that nobody does."""
    if experiment.leases is None:
        raise ProblemError("not-sharded", f"Nobody shares the floor of {experiment.name!r}: it has one ledger.")
    return experiment.leases
