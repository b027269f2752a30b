"""A guarded experiment as a table: coins, honest propensities, and every metric's reward in a column of its own."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from surefoot import records
from surefoot.experiment.decoding import decode
from surefoot.experiment.sealing import read_decision, read_voided, reference
from surefoot.journal import Event, Journal

if TYPE_CHECKING:
    import polars as pl

ACTIONS = 2  # of a round in DSJSON: the baseline, then the proposal


def guarded_decisions(journal: Journal, name: str) -> Iterator[dict[str, Any]]:
    """Every decision and every visit of a unit with the rewards that came for it, oldest first."""
    rows: dict[str, dict[str, Any]] = {}
    view = journal.view(name)
    for event in view.read():
        if event.kind in (records.GUARDED, records.VISIT):
            decision = read_decision(event, view)
            assert isinstance(decision, records.Visit)
            rows[reference(event)] = _row(event, decision)
        elif event.kind == records.VOIDED:
            voided = read_voided(event, view)
            row = rows[voided.decision_id]
            # What was assigned stays: a reward weighed by any other probability than the coin's would be biased.
            row.update(is_voided=True, played=row["baseline"] if voided.action is None else voided.action)
        elif event.kind == records.METRIC_REWARD:
            reward = decode(event, records.MetricReward)
            if reward.refused is None:
                values = {metric: float(value) for metric, value in reward.values.items()}
                rows[reward.decision_id].update(rewards=values, reward_time=event.time)
    yield from rows.values()


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
    flags, counts = ("is_held", "is_fallback", "is_voided"), ("round", "event")
    words = ("decision_id", "mode", "source", "unit", "binds", *texts)
    schema: dict[str, Any] = {
        **dict.fromkeys(counts, pl.Int64),
        **dict.fromkeys(words, pl.String),
        **dict.fromkeys(flags, pl.Boolean),
        **dict.fromkeys((*numbers, *(f"reward_{metric}" for metric in metrics)), pl.Float64),
    }
    return pl.DataFrame([{key: row[key] for key in schema} for row in plain], schema=schema)


def guard_dsjson(row: dict[str, Any], metric: str) -> dict[str, Any]:
    """One line of VW's decision service format, with the coin's own probabilities; the action played comes first."""
    played = int(row["source"] == "learner")
    reward = row["rewards"][metric]
    return {
        "_label_cost": -reward,
        "_label_probability": row["probability"],
        "_label_Action": played + 1,
        "_labelIndex": played,
        "o": [{"v": reward, "EventId": row["decision_id"]}],
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
