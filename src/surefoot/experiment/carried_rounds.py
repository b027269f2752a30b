"""The rounds that an experiment has learned from, in the order in which it did: what a fork begins with."""

from dataclasses import dataclass, field

from surefoot import records
from surefoot.experiment.decoding import decode
from surefoot.experiment.sealing import is_sealed, opened, reference
from surefoot.experiment.snapshots import begin
from surefoot.experiment.state import State
from surefoot.journal import Event, Head, View
from surefoot.records import Asked


@dataclass(slots=True)
class CarriedRound:
    """A round that was learned: what was asked (None where it is erased), the row that was played, and its reward."""

    round: int
    action: int
    row: list[float]
    asked: Asked | None
    teaches: bool
    rows: list[list[float]]
    reward: float = 0.0
    is_settled: bool = False


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
    """Every round that a linear policy's newest set was made of, found by replaying all events."""
    state, seen = begin(view), dict[str, CarriedRound]()
    found = CarriedRounds(state.head)
    for event in view.read(1):
        state.apply(event, view)
        _take(event, view, state, seen, found)
    found.head = state.head
    found.alarm = None if state.policy.alarm is None else state.policy.alarm.text
    waiting = set(state.policy.settlement.open_rounds)
    default = float(state.created.settings.get("default_reward") or 0.0)
    for one in seen.values():
        if not one.teaches:
            what = "Rounds that taught the old policy nothing"
        elif one.round in waiting:
            what = "Rounds whose reward has not come, or waits for an earlier one"
        else:
            # With `settle_after`, a round without a reward was settled by the default.
            one.reward = one.reward if one.is_settled else default
            found.rounds.append(one)
            continue
        found.lost[what] = found.lost.get(what, 0) + 1
    return found


def _take(event: Event, view: View, state: State, seen: dict[str, CarriedRound], found: CarriedRounds) -> None:
    if event.kind == records.DECISION:
        seen[reference(event)] = _decided(event, view, state)
    elif event.kind == records.VOIDED:
        moved = decode(event, records.Voided)
        one = seen.get(moved.decision_id)
        if one is not None:  # of one before a restart nothing is carried
            one.action, one.row = int(moved.action), one.rows[int(moved.action)]
    elif event.kind == records.REWARD and state.windows is None:
        reward = decode(event, records.RewardRecord)
        if reward.refused is None:
            _settle(seen, reward.decision_id, float(reward.value))
    elif event.kind == records.CORRECTED and state.windows is None:
        corrected = decode(event, records.Corrected)
        _settle(seen, corrected.decision_id, float(corrected.value))
    elif event.kind == records.CLOSED:
        for learned in decode(event, records.Closed).learned:
            _settle(seen, learned.decision_id, learned.value)
    elif event.kind == records.ABANDONED:
        if seen.pop(decode(event, records.Abandoned).decision_id, None) is not None:
            found.lost["Rounds that were abandoned"] = found.lost.get("Rounds that were abandoned", 0) + 1
    elif event.kind == records.ACKNOWLEDGED and decode(event, records.Acknowledged).response != "stay":
        found.restarted = True
        found.lost["Rounds before a restart"] = found.lost.get("Rounds before a restart", 0) + len(seen)
        seen.clear()


def _decided(event: Event, view: View, state: State) -> CarriedRound:
    record = decode(event, records.DecisionRecord)
    asked, private = record.asked, view.private(event.number)
    offered = asked.features if asked.catalogue is None else state.catalogue(asked.catalogue, view).rows.tolist()
    told = opened(record, private).asked if private is not None or not is_sealed(state.created) else None
    return CarriedRound(
        round=record.round,
        action=record.action,
        row=(offered or [[]])[record.action],
        asked=told,
        teaches=bool(state.policy.settlement.find(record.round)[2]),
        rows=offered or [],
    )


def _settle(seen: dict[str, CarriedRound], decision_id: str, value: float) -> None:
    if decision_id in seen:
        seen[decision_id].reward, seen[decision_id].is_settled = value, True
