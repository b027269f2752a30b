"""A guarded experiment as a table: coins, honest propensities, and what was booked of every metric."""

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from surefoot import records
from surefoot.errors import ConfigError
from surefoot.experiment.decoding import decode
from surefoot.experiment.sealing import read_decision, read_voided, reference
from surefoot.journal import Event, Journal
from surefoot.policies.guard_settings import is_same, read_metrics
from surefoot.safety.metric import Metric

if TYPE_CHECKING:
    import polars as pl

ACTIONS = 2  # of a round in DSJSON: the baseline, then the proposal


def guarded_decisions(journal: Journal, name: str) -> Iterator[dict[str, Any]]:
    """Every round with what was booked for it, oldest first; the visits of a unit are its round's.

    A round has rewards once it is settled. Until its window has passed nobody knows which ones it will have: of those
    that are still open only some have brought a reward yet, and these are not like the others.
    """
    view = journal.view(name)
    created = decode(next(view.read(limit=1)), records.Created)
    metrics = metrics_of(created)
    rows, rounds = dict[int, _Round](), dict[str, _Round]()  # by number, and by the reference of each visit
    for event in view.read():
        if event.kind in (records.GUARDED, records.VISIT):
            decision = read_decision(event, view)
            assert isinstance(decision, records.Visit)
            if event.kind == records.GUARDED:
                rows[decision.round] = _Round(_row(event, decision), metrics, created)
            rounds[reference(event)] = rows[decision.round]
            rows[decision.round].row["visits"] += 1
        elif event.kind == records.VOIDED:
            voided = read_voided(event, view)
            row = rounds[voided.decision_id].row
            # What was assigned stays: a reward weighed by any other probability than the coin's would be biased.
            row.update(is_voided=True, played=row["baseline"] if voided.action is None else voided.action)
        elif event.kind == records.METRIC_REWARD:
            reward = decode(event, records.MetricReward)
            if reward.refused is None:
                rounds[reward.decision_id].add(reward, event.time)
        elif event.kind == records.ABANDONED:
            rounds[decode(event, records.Abandoned).decision_id].is_lost = True
        elif event.kind == records.SETTLED:
            for window in decode(event, records.Settled).windows:
                rounds[window.decision_id].is_closed = True
    last = max(rows, default=0)
    for one in rows.values():
        yield one.settled(last)


def metrics_of(created: records.Created) -> dict[str, Metric]:
    """What is promised of each kind of reward."""
    names = ("alpha", "reward_bounds", "baseline_ceiling", "reserve", "default_reward", "metrics")
    return read_metrics(*(created.settings[name] for name in names))


class _Round:
    """A row on its way: the rewards of its visits, and whether its window has passed."""

    def __init__(self, row: dict[str, Any], metrics: Mapping[str, Metric], created: records.Created) -> None:
        self.row, self._metrics = row, metrics
        self._is_unit = row["unit"] is not None and not is_same(row["baseline"], row["proposal"])
        self._expires = created.settings["unit_window" if self._is_unit else "settle_after"]
        self._waits = created.reward_window is not None
        self._rewards: dict[str, float] = {}
        self.is_closed = self.is_lost = False

    def add(self, reward: records.MetricReward, time: float) -> None:
        """Take in a reward: those of a unit's visits are added up, and cut at the highest."""
        self.row["reward_time"] = time
        for name, metric in self._metrics.items():
            value = self._value(reward.values, name)
            total = value + self._rewards.get(name, 0.0) if self._is_unit else value
            self._rewards[name] = total if math.isnan(total) else min(total, metric.high)

    def settled(self, last: int) -> dict[str, Any]:
        """The row, with what was booked for it where so many rounds were decided in all."""
        if self._expires is not None:
            self.is_closed = last >= self.row["round"] + self._expires
        elif not self._waits:
            self.is_closed = bool(self._rewards)
        self.row["is_settled"] = self.is_closed or self.is_lost
        if self.is_closed and not self.is_lost:
            # A unit that brings nothing earns 0.
            booked = self._rewards or {name: 0.0 if self._is_unit else self._value({}, name) for name in self._metrics}
            self.row["rewards"] = {name: value for name, value in booked.items() if not math.isnan(value)}
            self.row["is_default_reward"] |= self._is_unit and not self._rewards
        return self.row

    def _value(self, values: Mapping[str, Any], name: str) -> float:
        """A metric's reward, or its default; nan where it has none, and was booked at its worst."""
        default = self._metrics[name].default
        self.row["is_default_reward"] |= name not in values and default is not None
        return float(values.get(name, math.nan if default is None else default))


def _row(event: Event, decision: records.Visit) -> dict[str, Any]:
    asked, certificate = decision.asked, getattr(decision, "certificate", None)
    is_learner = decision.source == "learner"
    return {
        "round": decision.round,
        "event": event.number,
        "time": event.time,
        "decision_id": decision.decision_id,
        "mode": decision.mode,
        "source": decision.source,
        "is_held": decision.is_held,
        "is_fallback": decision.is_fallback,
        "is_voided": False,
        "is_settled": False,
        "is_default_reward": False,
        "unit": asked.unit,
        "action": asked.proposal if is_learner else asked.baseline,
        "played": asked.proposal if is_learner else asked.baseline,
        "baseline": asked.baseline,
        "proposal": asked.proposal,
        "share": decision.share,
        "draw": decision.draw,
        "probability": decision.share if is_learner else 1.0 - decision.share,
        "margin": None if certificate is None else certificate.margin,
        "binds": None if certificate is None else certificate.binds,
        "visits": 0,
        "rewards": {},
        "reward_time": None,
        "context": asked.context,
    }


def guard_table(rows: list[dict[str, Any]], metrics: list[str]) -> "pl.DataFrame":
    """The rows as a polars table; actions and contexts are JSON text, rewards one column for each metric."""
    import polars as pl

    texts = ("action", "played", "baseline", "proposal", "context")
    plain = [
        {key: _text(value) if key in texts else value for key, value in row.items() if key != "rewards"}
        | {f"reward_{metric}": row["rewards"].get(metric) for metric in metrics}
        for row in rows
    ]
    numbers = ("time", "share", "draw", "probability", "margin", "reward_time")
    flags = ("is_held", "is_fallback", "is_voided", "is_settled", "is_default_reward")
    counts = ("round", "event", "visits")
    words = ("decision_id", "mode", "source", "unit", "binds", *texts)
    schema: dict[str, Any] = {
        **dict.fromkeys(counts, pl.Int64),
        **dict.fromkeys(words, pl.String),
        **dict.fromkeys(flags, pl.Boolean),
        **dict.fromkeys((*numbers, *(f"reward_{metric}" for metric in metrics)), pl.Float64),
    }
    return pl.DataFrame([{key: row[key] for key in schema} for row in plain], schema=schema)


def exported_metric(metrics: Mapping[str, Metric], name: str | None) -> str:
    """The metric that is the reward of a line of DSJSON: the one that is named, or the only floor."""
    if name is not None and name not in metrics:
        raise ConfigError(f"`metric` must be one of {', '.join(metrics)}, but got {name!r}.")
    floors = [one for one, metric in metrics.items() if metric.kind == "floor"] or list(metrics)
    if name is None and len(floors) > 1:
        raise ConfigError(
            f"DSJSON has room for one reward, but the guard has several: {', '.join(floors)}. Say which one "
            "(`metric`, `--metric`)."
        )
    return name or floors[0]


def guard_dsjson(row: dict[str, Any], name: str, metric: Metric) -> dict[str, Any]:
    """One line of VW's decision service format, with the coin's own probabilities; the action played comes first."""
    played = int(row["source"] == "learner")
    reward = row["rewards"][name] if metric.kind == "floor" else -row["rewards"][name]
    return {
        "_label_cost": -reward,
        "_label_probability": row["probability"],
        "_label_Action": played + 1,
        "_labelIndex": played,
        "o": [{"v": reward, "EventId": row["decision_id"], "is_default": row["is_default_reward"]}],
        "Timestamp": datetime.fromtimestamp(row["time"], UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "Version": "1",
        "EventId": row["decision_id"],
        "a": [played + 1, ACTIONS - played],
        "p": [row["probability"], 1.0 - row["probability"]],
        "c": {
            "context": row["context"] or {},
            "_multi": [{"features": {"action": _text(row[side])}} for side in ("baseline", "proposal")],
        },
        "surefoot": {
            "round": row["round"],
            "source": row["source"],
            "share": row["share"],
            "margin": row["margin"] if row["margin"] is not None and math.isfinite(row["margin"]) else None,
        },
    }


def _text(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()
