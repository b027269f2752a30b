"""A new experiment whose promise is shared: the first event of the chain where its shards meet."""

import time
from collections.abc import Callable, Sequence

import msgspec

from surefoot import records
from surefoot.arrays import nonnegative
from surefoot.experiment.creation import read_settings
from surefoot.experiment.experiment_name import check_new_name
from surefoot.experiment.lease_forms import check_shared
from surefoot.journal import Journal
from surefoot.policies import Guard, SafeLUCB
from surefoot.records import ModeName, encode


def create_sharded(
    hub: Journal,
    name: str,
    policy: SafeLUCB | Guard,
    *,
    skew: float = 1.0,
    mode: ModeName = "shadow",
    reward_window: float | None = None,
    default_reward: float | None = None,
    reward_bounds: Sequence[float] | None = None,
    description: str = "",
    by: str = "",
    feature_names: Sequence[str] | None = None,
    clock: Callable[[], float] = time.time,
) -> None:
    """Start an experiment whose floor is shared by shards; servers `join` it.

    Parameters
    ----------
    hub : Journal
        Where the shards meet.
    name : str
        A name that the journal does not have yet.
    policy : SafeLUCB or Guard
        A policy that has not decided or learned anything. The constraint of SafeLUCB is "cumulative" or "reserve"; a
        guard promises the mean, without a seed, units or a window of rounds.
    skew : float
        Seconds by which two clocks may differ, and each by half of it from the hub's: less than the time between a
        decision and anything that its reward can influence.
    mode, reward_window, default_reward, reward_bounds, description, by, feature_names, clock
        As in `Experiment.create`.

    Raises
    ------
    ConfigError
        If a setting is invalid, or the policy's promise cannot be shared.
    JournalConflictError
        If the name exists.

    Examples
    --------
    >>> import surefoot
    >>> told = {"noise": 0.5, "theta_bound": 1.0, "feature_bound": 1.0}
    >>> hub = surefoot.open_journal("memory:")
    >>> create_sharded(hub, "shop", surefoot.SafeLUCB(dim=2, alpha=0.1, delta=0.01, **told))
    >>> hub.names()
    ['shop']
    """
    check_new_name(name)
    check_shared(policy)
    seconds = nonnegative("skew", skew, hint="skew is in seconds.")
    created = read_settings(
        policy,
        mode=mode,
        reward_window=reward_window,
        default_reward=default_reward,
        reward_bounds=reward_bounds,
        history=None,
        description=description,
        by=by,
        feature_names=feature_names,
    )
    hub.create(name, encode(msgspec.structs.replace(created, format=records.SHARDED, skew=seconds)), time=clock())
