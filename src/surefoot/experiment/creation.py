"""The settings of a new experiment, checked once, as its first event keeps them."""

import math
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import surefoot
from surefoot.arrays import LARGEST, finite_array, positive
from surefoot.errors import ConfigError
from surefoot.experiment.experiment_toml import Configuration
from surefoot.experiment.feature_names import read_feature_names
from surefoot.experiment.modes import MODES
from surefoot.experiment.question import read_text
from surefoot.experiment.snapshots import pack
from surefoot.experiment.state import new_policy
from surefoot.leases.leased_lucb import LeasedLUCB
from surefoot.policies import Guard, Policy
from surefoot.policies.base_policy import BasePolicy
from surefoot.policies.safe_lucb import SafeLUCB
from surefoot.records import FORMAT, SEALED, Created, Forked, History, ModeName


def read_settings(
    policy: BasePolicy | Configuration,
    *,
    mode: ModeName,
    reward_window: float | None,
    default_reward: float | None,
    reward_bounds: Sequence[float] | None,
    history: tuple[ArrayLike, ArrayLike] | None,
    description: str,
    despite_doubt: bool = False,
    sealed: bool = False,
    confirm_within: float | None = None,
    by: str = "",
    origin: Forked | None = None,
    feature_names: Sequence[str] | None = None,
) -> Created:
    """Everything that defines an experiment, checked; the policy has been made once to see that it can be."""
    if mode not in MODES:
        raise ConfigError(f"`mode` must be one of {', '.join(MODES)}, but got {mode!r}.")
    text: str | None = None
    if isinstance(policy, Configuration):
        told, text = policy, policy.to_toml()
        if mode == "guarded" and not despite_doubt:
            told.refuse_doubt()
        reward_window = told.reward_window if reward_window is None else reward_window
        default_reward = told.default_reward if default_reward is None else default_reward
        reward_bounds = told.reward_bounds if reward_bounds is None else reward_bounds
        policy = told.new_policy()
    if not isinstance(policy, Policy | Guard):
        raise ConfigError(f"`policy` must be a new policy, such as surefoot.SafeLUCB(...), but got {policy!r:.80}.")
    if isinstance(policy, LeasedLUCB):
        raise ConfigError(
            "A LeasedLUCB is the policy of one shard, which plays under a lease alone, but got one without. Let a "
            "server join what `create_sharded` has made."
        )
    if isinstance(policy, Guard):
        _refuse_linear(policy, reward_window, default_reward, reward_bounds, history)
    created = Created(
        format=SEALED if sealed else FORMAT,
        policy=type(policy).__name__,
        policy_id=secrets.token_hex(8),
        settings=_plain(policy.settings),
        mode=mode,
        software=surefoot.__version__,
        reward_window=_read_window(reward_window),
        default_reward=None if isinstance(policy, Guard) else _read_default(default_reward, reward_window),
        reward_bounds=_read_bounds(reward_bounds),
        history=None if history is None else _read_history(*history),
        description=str(description),
        configuration=text,
        confirm_within=_read_confirm_within(confirm_within, policy),
        by=read_text("by", by),
        origin=origin,
        feature_names=read_feature_names(feature_names, policy, is_configured=text is not None),
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
    given = [name for name, window in windows.items() if window is not None]
    if created.confirm_within is not None and given:
        raise ConfigError(
            f"`confirm_within` must come without a window, but got {given[0]}={windows[given[0]]!r}. When it closes, a "
            "default is learned for an action that perhaps nobody played, and no charge makes up for that. Leave one "
            "out; without a window a round waits for its reward, or for `abandon`."
        )


def _refuse_linear(guard: Guard, window: float | None, *belong_to_metrics: Any) -> None:
    """A guard's metrics have their own bounds and defaults, and a unit has a window of its own."""
    if type(guard) is not Guard:
        raise ConfigError(
            f"An experiment takes a plain Guard, which its audit can check, but got {type(guard).__name__}."
        )
    if any(one is not None for one in belong_to_metrics):
        raise ConfigError(
            "`default_reward`, `reward_bounds` and `history` are not for a guard: give bounds and defaults to it or to "
            "each of its metrics."
        )
    windows = (window, guard.settings["settle_after"], guard.settings["unit_window"])
    if sum(one is not None for one in windows) > 1:
        raise ConfigError(
            f"A window must be one of reward_window, settle_after and unit_window, but got {windows}. "
            "A unit's rewards are added up for unit_window rounds, and it is settled by their sum."
        )


def _refuse_used(policy: BasePolicy, created: Created) -> None:
    """What a used policy has seen is in no event, and would be lost."""
    new = new_policy(created)
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


def _read_window(seconds: float | None) -> float | None:
    return None if seconds is None else positive("reward_window", seconds, hint="reward_window is in seconds.")


def _read_confirm_within(seconds: float | None, policy: BasePolicy) -> float | None:
    if seconds is None:
        return None
    if not isinstance(policy, SafeLUCB):
        why = (
            "a guard compares what was assigned, whatever was played, and needs none"
            if isinstance(policy, Guard)
            else "only that one can count a round at its worst"
        )
        raise ConfigError(f"`confirm_within` is for SafeLUCB, but got {type(policy).__name__}: {why}.")
    return positive("confirm_within", seconds, hint="confirm_within is in seconds.")


def _read_default(default: float | None, window: float | None) -> float | None:
    if window is None and default is not None:
        raise ConfigError("`default_reward` needs a `reward_window`: without one, a missing reward is never noticed.")
    if window is None:
        return None
    try:
        value = 0.0 if default is None else float(default)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise ConfigError(f"`default_reward` must be finite, but got {default!r}.")
    return value


def _read_bounds(bounds: Sequence[float] | None) -> tuple[float, float] | None:
    if bounds is None:
        return None
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
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
