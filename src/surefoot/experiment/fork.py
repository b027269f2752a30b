"""The verb `fork`: a new experiment with other settings that begins with what an old one has learned.

The settings of an experiment never change, for its promise and its proofs rest on them. A fork is another experiment:
it learns the old one's settled rounds before its first decision, in their order, and says in its first event where they
came from. That is valid as a warm start is (`Policy.warm_start`): each row was chosen before its reward came. What
cannot be carried over is lost, and said (`Fork.lost`). The old experiment stays as it is: pause it, so that two do not
play for the same visitors.

Declare what you would have declared without looking at the rewards: a range, a bound or a feature map that was chosen
by them is not covered by delta.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import LARGEST, Matrix
from surefoot.errors import ConfigError, DecisionError, InputError
from surefoot.experiment.configuration import Configuration, configuration_in
from surefoot.experiment.experiment import SNAPSHOT_EVERY, Experiment
from surefoot.experiment.kinds import kind_of
from surefoot.experiment.reading import read_id, read_number, read_text
from surefoot.experiment.sealing import find_decision, reference, round_number
from surefoot.experiment.state import State, first_state
from surefoot.journal import Event, Head, Journal, View
from surefoot.linear.actions import Catalogue
from surefoot.policies import Policy
from surefoot.policies.by_name import make_policy
from surefoot.rounds import decode, events
from surefoot.rounds.events import METRIC, Created, ModeName, RowsRequest
from surefoot.values import Value

KEPT = ("reward_window", "default_reward", "reward_bounds", "reward_unit", "description", "confirm_within")
Encode = Callable[[RowsRequest], ArrayLike]


@dataclass(slots=True)
class CarriedRound:
    """A round that was learned: what was asked (None where it is erased), what was played, and its reward."""

    round: int
    action: int
    request: RowsRequest | None
    teaches: bool
    rows: Matrix | None
    reward: float = 0.0
    is_settled: bool = False

    @property
    def row(self) -> list[float]:
        """The row that was played; empty of plain arms."""
        return [] if self.rows is None else self.rows[self.action].tolist()


@dataclass
class CarriedRounds:
    """The rounds, and how many of the others there are, by what they are.

    restarted: whether an alarm was answered by a restart, before which nothing is carried
    alarm:     what contradicts the declarations, where the alarm is on
    head:      of the last event that was replayed; an experiment in use goes on meanwhile
    """

    head: Head

    rounds: list[CarriedRound] = field(default_factory=list)
    lost: dict[str, int] = field(default_factory=dict)
    restarted: bool = False
    alarm: str | None = None


def carried_rounds(view: View) -> CarriedRounds:
    """Every round that a linear policy's newest set was made of, replaying all events."""
    state, rounds = first_state(view), dict[str, CarriedRound]()
    carried = CarriedRounds(state.head)
    for event in view.read(1):
        state.apply(event, view)
        _take(event, view, state, rounds, carried)
    carried.head = state.head
    carried.alarm = None if state.policy.alarm is None else state.policy.alarm.text
    waiting = set(state.policy.settlement.open_rounds)
    default = float(state.created.settings.get("default_reward") or 0.0)
    for one in rounds.values():
        if not one.teaches:
            what = "Rounds that taught the old policy nothing"
        elif one.round in waiting:
            what = "Rounds whose reward has not come, or waits for an earlier one"
        else:
            # With `settle_after`, a round without a reward was settled by the default.
            one.reward = one.reward if one.is_settled else default
            carried.rounds.append(one)
            continue
        carried.lost[what] = carried.lost.get(what, 0) + 1
    return carried


def _take(event: Event, view: View, state: State, rounds: dict[str, CarriedRound], carried: CarriedRounds) -> None:
    if event.kind == events.ROUND:
        rounds[reference(event)] = _decided(event, view, state)
    elif event.kind == events.VOIDED:
        moved = decode(event, events.Voided)
        one = rounds.get(moved.decision_id)
        if one is not None:  # of one before a restart nothing is carried
            one.action = int(moved.action)
    elif event.kind in (events.REWARD, events.CORRECTED):
        reward: Any = decode(event, events.Reward if event.kind == events.REWARD else events.Corrected)
        one = rounds.get(reward.decision_id)
        if one is not None and getattr(reward, "refused", None) is None:
            one.reward = float(reward.values[METRIC])
            one.is_settled = state.windows is None
    elif event.kind == events.SETTLED:
        for window in decode(event, events.Settled).windows:
            one = rounds.get(window.decision_id)
            if one is not None:
                one.is_settled = True
                one.reward = (state.created.default_reward or 0.0) if window.is_missing else one.reward
    elif event.kind == events.ABANDONED:
        if rounds.pop(decode(event, events.Abandoned).decision_id, None) is not None:
            carried.lost["Rounds that were abandoned"] = carried.lost.get("Rounds that were abandoned", 0) + 1
    elif event.kind == events.ACKNOWLEDGED and decode(event, events.Acknowledged).response != "stay":
        carried.restarted = True
        carried.lost["Rounds before a restart"] = carried.lost.get("Rounds before a restart", 0) + len(rounds)
        rounds.clear()


def _decided(event: Event, view: View, state: State) -> CarriedRound:
    record = decode(event, events.RowsRound)
    is_erased = state.created.is_sealed and view.private(event.number) is None
    return CarriedRound(
        round=record.round,
        action=record.action,
        request=None if is_erased else state.kind.opened(event, view).request,
        teaches=bool(state.policy.settlement.find(record.round)[2]),
        rows=state.kind.rows(state, record.request, view),
    )


class Fork(Value, frozen=True):
    """A fork, and what became of the old experiment's rounds.

    Attributes
    ----------
    experiment : Experiment
        The new experiment.
    carried : int
        Rows that it has learned before its first decision, those of the old one's own history included.
    lost : tuple of str
        What was not carried over, a sentence each.

    Examples
    --------
    >>> import surefoot
    >>> journal = surefoot.open_journal("memory:")
    >>> told = dict(dim=2, delta=0.01, noise=0.5, theta_bound=1.0, feature_bound=1.0)
    >>> shop = surefoot.Experiment.create(journal, "shop", surefoot.SafeLUCB(alpha=0.1, **told))
    >>> answer = shop.decide([[0.6, 0.1], [0.9, 0.3]], baseline=0)
    >>> receipt = shop.reward(answer.decision_id, 0.5)
    >>> fork(journal, "shop", "bolder", changes={"alpha": 0.2}, reason="more may be risked").carried
    1
    """

    experiment: Experiment
    carried: int
    lost: tuple[str, ...]


def fork(
    journal: Journal,
    source: str,
    name: str,
    *,
    policy: Policy | Configuration | None = None,
    changes: Mapping[str, Any] | None = None,
    features: Encode | None = None,
    corrections: Mapping[str, float] | None = None,
    mode: ModeName = "shadow",
    reason: str,
    by: str = "",
    clock: Callable[[], float] = time.time,
    snapshot_every: int = SNAPSHOT_EVERY,
    **settings: Any,
) -> Fork:
    """Begin a new experiment with what an old one has learned.

    Parameters
    ----------
    journal : Journal
        Where the old experiment is, and the new one will be.
    source, name : str
        The old experiment, and the new one's name.
    policy : Policy or Configuration, optional
        A new linear policy, or the configuration to make it by; by default one of the old kind and settings.
    changes : mapping, optional
        Settings in which the new policy differs from the old one, such as `{"alpha": 0.2}`.
    features : callable, optional
        Another feature map: is given what was asked in a round, in the caller's own words, and returns one row per
        action. A configuration has its own. By default rows are carried over as they were. Refused where a round is
        erased.
    corrections : mapping, optional
        Rewards that were measured wrongly and learned, by the decision's id, as they should have been sent; the old
        experiment keeps what it has learned. Valid if what is corrected does not depend on how it suits anybody.
    mode : {"shadow", "guarded", "paused"}
        Who may play at first.
    reason, by : str
        Why, and who forks; kept in the journal.
    clock, snapshot_every
        As in `Experiment.create`.
    settings
        Further settings of `Experiment.create`; by default the old one's.

    Returns
    -------
    Fork
        The new experiment, and what was lost.

    Raises
    ------
    ConfigError
        If a setting is invalid, an experiment of that kind has nothing to carry over, its alarm is on, or a reward
        lies outside of the new `reward_bounds`.
    DecisionError
        If a reward that is to be corrected is not among those that are carried over.
    JournalNotFoundError
        If there is no such experiment.
    JournalConflictError
        If the new name exists.

    Examples
    --------
    >>> import surefoot
    >>> journal = surefoot.open_journal("memory:")
    >>> told = dict(dim=2, delta=0.01, noise=0.5, theta_bound=1.0, feature_bound=1.0)
    >>> shop = surefoot.Experiment.create(journal, "shop", surefoot.SafeLUCB(alpha=0.1, **told))
    >>> fork(journal, "shop", "bolder", changes={"alpha": 0.2}, reason="more may be risked").experiment.name
    'bolder'
    """
    if not read_text("reason", reason).strip():
        raise ConfigError("`reason` must say why the experiment is forked: an auditor will ask.")
    view = journal.view(source)
    old = decode(next(view.read(limit=1)), Created)
    _refuse_kind(source, old)
    new_policy = policy if policy is not None else _changed(old, changes)
    if isinstance(new_policy, Configuration) and features is None:
        features = _encoding(new_policy)
    carried = carried_rounds(view)
    if carried.alarm is not None:
        raise ConfigError(
            f"The alarm must be off in an experiment to be forked, but in {source!r} it is on: {carried.alarm} What "
            "contradicts the declarations must not begin another promise. Answer it by a restart, after which a fork "
            "carries what was learned since, or create a new experiment."
        )
    corrected = _correct(old, view, carried, corrections or {})
    rows, rewards, lost = _history(old, carried, features)
    dim = new_policy.phi.dim if isinstance(new_policy, Configuration) else new_policy.settings.get("dim")
    if rows and len(rows[0]) != dim:
        raise ConfigError(
            f"Rows that are carried over must have the new policy's dim={dim}, but have {len(rows[0])} numbers. "
            "Give `features`, which makes the new rows."
        )
    origin = events.Forked(
        experiment=source,
        number=carried.head.number,
        hash=carried.head.hash,
        rounds=len(carried.rounds),
        is_encoded=features is not None,
        reason=reason,
        corrections=corrected,
    )
    experiment = Experiment.create(
        journal,
        name,
        new_policy,
        mode=mode,
        history=(np.array(rows), np.array(rewards)) if rows else None,
        by=by,
        origin=origin,
        clock=clock,
        snapshot_every=snapshot_every,
        feature_names=old.feature_names if features is None else None,
        **({"sealed": old.is_sealed} | {field: getattr(old, field) for field in KEPT} | settings),
    )
    return Fork(experiment, len(rows), tuple(lost))


def _refuse_kind(source: str, old: Created) -> None:
    """Refuse experiments that have nothing which another one could begin with."""
    if old.skew is not None:
        raise ConfigError(
            f"A fork carries over what one ledger has learned, but {source!r} is shared by shards: what each of them "
            "learned is in a journal of its own. Create a new experiment."
        )
    if not kind_of(old).has_rows:
        raise ConfigError(
            f"A fork carries rows and rewards over to a linear policy, but {source!r} has a {old.policy}: its banks "
            "count what the coins of its own rounds showed, and with other settings those coins would have fallen by "
            "other shares. Create a new experiment, whose ramp starts over."
        )
    if "dim" in old.settings:
        return
    if "arms" in old.settings:
        raise ConfigError(
            f"A fork carries rows and rewards over to a linear policy, but {source!r} has a {old.policy} over plain "
            "arms, which takes no history. Create a new experiment, or a linear one whose rows are the arms' unit "
            "vectors."
        )
    raise ConfigError(
        f"A fork carries rows and rewards over, but {source!r} has a {old.policy}, a policy without `dim`, so that its "
        "rows cannot be carried over. Create a new experiment."
    )


def _changed(old: Created, changes: Mapping[str, Any] | None) -> Policy | Configuration:
    """The old policy, with other settings."""
    if old.configuration is not None:
        if changes:
            raise ConfigError(
                "`changes` must be left out where the old experiment was made by a configuration: give another one as "
                "`policy`."
            )
        return configuration_in(old.configuration)
    policy: Policy = make_policy(old.policy, {**old.settings, **(changes or {})})
    return policy


def _correct(
    old: Created, view: View, carried: CarriedRounds, corrections: Mapping[str, float]
) -> tuple[tuple[int, float], ...]:
    """Replace rewards, and say of which of the rounds."""
    positions = {one.round: position for position, one in enumerate(carried.rounds)}
    pairs = list[tuple[int, float]]()
    for decision_id, right in corrections.items():
        known, value = read_id(decision_id), read_number("corrections", right)
        if not (math.isfinite(value) and abs(value) <= LARGEST):
            raise InputError(f"`corrections` must be finite, and at most {LARGEST:g}, but got {right!r:.80}.")
        decision = find_decision(old, view, known)
        position = None if decision is None else positions.get(round_number(decision))
        if position is None:
            raise DecisionError(
                f"A reward must be carried over to be corrected by a fork, but that of {known!r:.80} is not: there is "
                "no such decision, it was not learned, or it came before a restart."
            )
        carried.rounds[position].reward = value
        pairs.append((position, value))
    return tuple(sorted(pairs))


def _encoding(configuration: Configuration) -> Encode:
    def rows(request: RowsRequest) -> Any:
        known = {"baseline": request.baseline, "actions": request.actions, "context": request.context}
        return configuration.arguments(known, is_stored=True)["features"]

    return rows


def _history(
    old: Created, carried: CarriedRounds, features: Encode | None
) -> tuple[list[list[float]], list[float], list[str]]:
    """Rows and rewards to begin with, and what is lost."""
    rows, rewards = list[list[float]](), list[float]()
    if old.history is not None and not carried.restarted:
        if features is None:
            rows, rewards = list(old.history.features), list(old.history.rewards)
        else:
            carried.lost["Rows of the old history, which have no context to encode"] = len(old.history.rewards)
    for one in carried.rounds:
        if features is None:
            rows.append(one.row)
        elif one.request is None:
            raise ConfigError(
                f"Another feature map needs the context of every round that was learned, but that of round {one.round} "
                "is erased. To leave it out would let whoever erases choose the data by their values. Fork with the "
                "rows as they were, or create a new experiment."
            )
        else:
            encoded = features(one.request)
            encoded = encoded.rows if isinstance(encoded, Catalogue) else encoded
            rows.append([float(number) for number in np.asarray(encoded, dtype=np.float64)[one.action]])
        rewards.append(one.reward)
    always = (
        "The ledger: the promise starts over with the fork's first round, with a delta of its own.",
        "Proofs and slack of the old experiment: the fork earns its own.",
    )
    return rows, rewards, [*(f"{what}: {count:,}." for what, count in carried.lost.items() if count), *always]
