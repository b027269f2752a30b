"""A new experiment: its name and settings, checked once, as its first event keeps them."""

import math
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import LARGEST, finite, finite_array, nonnegative, positive
from surefoot.errors import ConfigError, InputError, JournalConflictError
from surefoot.experiment.configuration import Configuration
from surefoot.experiment.kinds import kind_for
from surefoot.experiment.reading import read_action, read_text
from surefoot.journal import Journal
from surefoot.journal.events import JOURNAL
from surefoot.journal.journal_chain import tombstone
from surefoot.policies import Guard, Policy
from surefoot.policies.by_name import first_policy
from surefoot.policies.guard_settings import is_same
from surefoot.policies.safe_lucb import SafeLUCB
from surefoot.rounds import decode, encode
from surefoot.rounds.events import FORMAT, Created, Forked, History, ModeName
from surefoot.rounds.format import pack
from surefoot.sharing import LeasedLUCB
from surefoot.sharing.pots import pot_of
from surefoot.version import VERSION

MODES: tuple[ModeName, ...] = ("shadow", "guarded", "paused")
LONGEST_NAME, LONGEST_FEATURE, LONGEST_UNIT = 100, 200, 40
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*$(?!\n)"
NAME_RULE = "Letters, digits and . _ -, beginning with a letter or digit."


def create_chain(
    journal: Journal,
    name: str,
    policy: Policy | Configuration,
    *,
    time: float,
    skew: float | None = None,
    **settings: Any,
) -> None:
    """Write the first event of a new experiment; with `skew` it is the ledger that shards share."""
    if name == JOURNAL:
        raise ConfigError(f"An experiment's name must not be {JOURNAL!r}: that is the journal's own chain.")
    if tombstone(journal, name) is not None:
        raise JournalConflictError(f"An experiment's name must be new, but {name!r} was used, and removed.")
    check_new_name(name)
    created = read_settings(policy, **settings)
    if skew is not None:
        created = msgspec.structs.replace(created, skew=skew)
    journal.create(name, encode(created), time=time)


def check_created(journal: Journal, name: str, policy: Policy | Configuration, **settings: Any) -> None:
    """Raise unless an experiment was created with this policy and these settings; its mode may have changed since."""
    before = decode(next(journal.view(name).read(limit=1)), Created)
    wanted = read_settings(policy, **settings)
    plain = partial(msgspec.json.encode, order="sorted")
    compared = [key for key in Created.__struct_fields__ if key not in ("policy_id", "mode", "software", "by")]
    differ = [key for key in compared if plain(getattr(wanted, key)) != plain(getattr(before, key))]
    if differ:
        raise JournalConflictError(
            f"Experiment {name!r} exists already: to be continued it must have been created like this, but "
            f"{' and '.join(differ)} differ. "
            "Continue it as it is with `Experiment.open`, or choose a new name."
        )


def create_shared(
    hub: Journal,
    name: str,
    policy: SafeLUCB | Guard,
    *,
    skew: float = 1.0,
    mode: ModeName = "shadow",
    clock: Callable[[], float] = time.time,
    **settings: Any,
) -> None:
    """Start an experiment whose promise is shared by shards; servers join it (`Experiment.join`).

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
    mode, clock
        As in `Experiment.create`.
    settings
        reward_window, default_reward, reward_bounds, reward_unit, description, by and feature_names, as in
        `Experiment.create`.

    Raises
    ------
    ConfigError
        If a setting is invalid, or the policy's promise cannot be shared.
    JournalConflictError
        If the name exists.

    Examples
    --------
    >>> import surefoot
    >>> hub = surefoot.open_journal("memory:")
    >>> create_shared(hub, "models", surefoot.Guard(alpha=0.1, delta=0.05))
    >>> hub.names()
    ['models']
    """
    pot_of(policy)
    refused = {"sealed", "confirm_within", "history", "origin"} & {key for key, value in settings.items() if value}
    if refused:
        raise ConfigError(f"`{sorted(refused)[0]}` must be left out where shards share a promise.")
    seconds = nonnegative("skew", skew, hint="skew is in seconds.")
    create_chain(hub, name, policy, mode=mode, time=clock(), skew=seconds, **settings)


def check_new_name(name: str) -> None:
    """Raise unless a new experiment may have this name, which fits into an address, a file name and a shell alike.

    >>> check_new_name("shop-2")
    >>> check_new_name("a/b")
    Traceback (most recent call last):
    surefoot.errors.InputError: `name` must be 1 to 100 letters, digits and . _ -, beginning with a letter or ...
    """
    if not isinstance(name, str) or len(name) > LONGEST_NAME or re.search(NAME_PATTERN, name) is None:
        raise InputError(
            f"`name` must be 1 to {LONGEST_NAME} letters, digits and . _ -, beginning with a letter or digit, but got "
            f"{name!r:.80}: an experiment's name is a part of addresses. Choose another, such as 'shop-2'."
        )


def read_settings(
    policy: Policy | Configuration,
    *,
    mode: ModeName,
    reward_window: float | None = None,
    default_reward: float | None = None,
    reward_bounds: Sequence[float] | None = None,
    history: tuple[ArrayLike, ArrayLike] | None = None,
    actions: Sequence[Any] | None = None,
    description: str = "",
    despite_doubt: bool = False,
    sealed: bool = False,
    confirm_within: float | None = None,
    by: str = "",
    origin: Forked | None = None,
    feature_names: Sequence[str] | None = None,
    reward_unit: str | Mapping[str, str] = "",
) -> Created:
    """Everything that defines an experiment, checked; the policy has been made once to see that it can be."""
    if mode not in MODES:
        raise ConfigError(f"`mode` must be one of {', '.join(MODES)}, but got {mode!r}.")
    text: str | None = None
    if isinstance(policy, Configuration):
        configuration, text = policy, policy.to_toml()
        if mode == "guarded" and not despite_doubt:
            configuration.refuse_doubt()
        reward_window = configuration.reward_window if reward_window is None else reward_window
        default_reward = configuration.default_reward if default_reward is None else default_reward
        reward_bounds = configuration.reward_bounds if reward_bounds is None else reward_bounds
        policy = configuration.new_policy()
    if not isinstance(policy, Policy):
        raise ConfigError(f"`policy` must be a new policy, such as surefoot.SafeLUCB(...), but got {policy!r:.80}.")
    if isinstance(policy, LeasedLUCB):
        raise ConfigError(
            "A LeasedLUCB is the policy of one shard, which plays under a lease alone, but got one without. Let a "
            "server join what `create_shared` has made."
        )
    kind = kind_for(type(policy))
    kind.check_settings(
        policy,
        reward_window=reward_window,
        default_reward=default_reward,
        reward_bounds=reward_bounds,
        history=history,
        actions=actions,
        confirm_within=confirm_within,
    )
    created = Created(
        format=FORMAT,
        is_sealed=sealed,
        policy=type(policy).__name__,
        policy_id=secrets.token_hex(8),
        settings=_plain(policy.settings),
        mode=mode,
        software=VERSION,
        reward_window=_read_seconds("reward_window", reward_window),
        default_reward=_read_default(default_reward, reward_window) if kind.has_rows else None,
        reward_bounds=_read_bounds(reward_bounds),
        history=None if history is None else _read_history(*history),
        actions=None if actions is None else _read_pair(actions),
        description=str(description),
        configuration=text,
        confirm_within=_read_seconds("confirm_within", confirm_within),
        by=read_text("by", by),
        origin=origin,
        feature_names=read_feature_names(feature_names, policy, is_configured=text is not None),
        reward_unit=_read_unit(reward_unit, policy.settings.get("metrics") or {}),
    )
    low, high = created.reward_bounds or (-LARGEST, LARGEST)
    for default in (created.default_reward, policy.settings.get("default_reward")):
        if default is not None and not low <= default <= high:
            raise ConfigError(f"`default_reward` must lie within {reward_bounds=}, but got {default}.")
    for bounds in (created.reward_bounds, policy.settings.get("reward_bounds")):
        _refuse_unbounded(created.history, bounds)
    lowest = policy.settings.get("constraint") or {}
    least = lowest.get("lowest_reward", -LARGEST) if isinstance(lowest, Mapping) else -LARGEST
    if created.default_reward is not None and created.default_reward < least:
        raise ConfigError(f"`default_reward` must not lie below lowest_reward={least:g}, but got {default_reward}.")
    if created.reward_window is not None and policy.settings.get("settle_after") is not None:
        raise ConfigError(
            f"A window must be one of seconds or of rounds, but got {reward_window=} beside the policy's "
            f"settle_after={policy.settings['settle_after']}. Leave one of them out."
        )
    _refuse_unconfirmed_defaults(created)
    _refuse_used(policy, created)
    return created


def _refuse_unconfirmed_defaults(created: Created) -> None:
    """A default would be learned as the reward of an action that perhaps nobody played."""
    windows = {"reward_window": created.reward_window, "settle_after": created.settings.get("settle_after")}
    others = [name for name, window in windows.items() if window is not None]
    if created.confirm_within is not None and others:
        raise ConfigError(
            f"`confirm_within` must come without a window, but got {others[0]}={windows[others[0]]!r}. When it closes, "
            "a default is learned for an action that perhaps nobody played, and no charge makes up for that. Leave one "
            "out; without a window a round waits for its reward, or for `abandon`."
        )


def _refuse_used(policy: Policy, created: Created) -> None:
    """What a used policy has seen is in no event, and would be lost."""
    new = first_policy(created.policy, created.settings, policy_id=created.policy_id, history=created.history)
    fresh = type(policy)(**policy.settings)
    try:
        # By their bytes: NaN is not equal to itself, and arrays have no single answer.
        is_same = pack({**policy.state(), "id": ""}) == pack({**fresh.state(), "id": ""})
    except OverflowError:
        raise ConfigError("Settings must be numbers that a snapshot can hold, but one is beyond 2^64.") from None
    if not is_same or new.rounds:
        raise ConfigError(
            "`policy` must be new, but this one has decided or learned before. "
            "Give what the baseline has earned so far as `history=(features, rewards)`."
        )


def _read_seconds(name: str, seconds: float | None) -> float | None:
    return None if seconds is None else positive(name, seconds, hint=f"{name} is in seconds.")


def _read_pair(actions: Sequence[Any]) -> tuple[Any, Any]:
    baseline, proposal = (read_action("actions", action) for action in actions)
    if is_same(baseline, proposal):
        raise ConfigError(f"`actions` must be two, but the baseline and the proposal are both {baseline!r:.80}.")
    return baseline, proposal


def _read_unit(unit: str | Mapping[str, str], metrics: Mapping[str, Any]) -> str | dict[str, str]:
    """What rewards are counted in: a text, or one for each metric that has a unit where metrics have names."""
    units = dict(unit) if isinstance(unit, Mapping) else unit
    if unit and (isinstance(units, dict) != bool(metrics) or not metrics.keys() >= set(units if metrics else ())):
        rule = "map metrics to units, such as {'cost': 'USD'}, where metrics have names" if metrics else "be a text"
        names = f" The metrics are {', '.join(metrics)}." if metrics else " Only metrics with names have one each."
        raise ConfigError(f"`reward_unit` must {rule}, but got {unit!r:.80}.{names}")
    for one in units.values() if isinstance(units, dict) else (units,):
        if len(read_text("reward_unit", one)) > LONGEST_UNIT:
            raise ConfigError(f"`reward_unit` must have at most {LONGEST_UNIT} characters, but got {one!r:.80}.")
    return units or ""


def _read_default(default: float | None, window: float | None) -> float | None:
    if window is None and default is not None:
        raise ConfigError("`default_reward` needs a `reward_window`: without one, a missing reward is never noticed.")
    if window is None:
        return None
    try:
        return 0.0 if default is None else finite("default_reward", default, hint="")
    except InputError:
        raise ConfigError(f"`default_reward` must be finite, but got {default!r}.") from None


def _read_bounds(bounds: Sequence[float] | None) -> tuple[float, float] | None:
    if bounds is None:
        return None
    try:
        low, high = (finite("reward_bounds", bound, hint="") for bound in bounds)
    except (InputError, TypeError, ValueError):
        low = high = math.nan
    if not -LARGEST <= low < high <= LARGEST:
        raise ConfigError(f"`reward_bounds` must be (low, high) with low < high, but got {bounds!r}.")
    return low, high


def _read_history(features: ArrayLike, rewards: ArrayLike) -> History:
    rows, values = finite_array("history", features, ndim=2), finite_array("history", rewards, ndim=1)
    return History(features=rows.tolist(), rewards=values.tolist())


def _refuse_unbounded(history: History | None, bounds: Sequence[float] | None) -> None:
    """What would raise the alarm as a reward must not come in as history."""
    low, high = bounds or (-LARGEST, LARGEST)
    outside = next(
        (reward for reward in ([] if history is None else history.rewards) if not low <= reward <= high), None
    )
    if outside is not None:
        raise ConfigError(
            f"Rewards of `history` must lie within reward_bounds=({low:g}, {high:g}), but got {outside:.6g}. Declare "
            "bounds that hold for every reward; leaving this one out would select the data by their values."
        )


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def read_feature_names(names: Sequence[str] | None, policy: Policy, *, is_configured: bool) -> list[str] | None:
    """The names as the journal keeps them: one for each weight or arm."""
    if names is None:
        return None
    if is_configured:
        raise ConfigError("`feature_names` must be left out where a configuration is given, which names its columns.")
    size = policy.settings.get("dim", policy.settings.get("arms"))
    if size is None:
        raise ConfigError(f"`feature_names` are for policies with features or arms, but got {type(policy).__name__}.")
    texts = [] if isinstance(names, str) else [read_text("feature_names", name) for name in names]
    if (
        len(texts) != size
        or len(set(texts)) != size
        or not all(name.strip() and len(name) <= LONGEST_FEATURE for name in texts)
    ):
        raise ConfigError(
            f"`feature_names` must be {size} different names of 1 to {LONGEST_FEATURE} characters, one for each "
            f"feature or arm, but got {names!r:.200}."
        )
    return texts
