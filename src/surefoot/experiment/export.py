"""An experiment as a table: Parquet and CSV for people and notebooks, DSJSON for Vowpal Wabbit.

Decisions of linear policies are deterministic: the gate says yes or no, and nothing is drawn, but by a watch's coin. So
their propensity is 1, and importance weights over such a log say nothing of actions that were not played. Each row is
marked (`is_deterministic`, `_deterministic` in DSJSON), so that an estimator can refuse it. A guard's decisions have
honest propensities (`guard_export.py`).
"""

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from surefoot import records
from surefoot.errors import ConfigError
from surefoot.experiment.decoding import decode, is_hub
from surefoot.experiment.guard_export import (
    exported_metric,
    guard_dsjson,
    guard_table,
    guarded_decisions,
    metrics_of,
)
from surefoot.experiment.policy_by_name import is_guard
from surefoot.experiment.sealing import opened, reference
from surefoot.journal import Event, Journal
from surefoot.safety.metric import Metric

if TYPE_CHECKING:
    import polars as pl

FORMATS = ("parquet", "csv", "dsjson")
FORMULA = r"^[=+\-@\t\r]"  # ids, names and units are the callers' own words
EXTRA = "Export to Parquet and CSV needs polars: pip install 'surefoot[simulation]'"


def export(
    journal: Journal,
    name: str,
    path: Path,
    *,
    format: str | None = None,  # noqa: A002
    metric: str | None = None,
) -> int:
    """Write every decision of an experiment with its reward to a file, and return the number of rows.

    The format is the file's suffix unless it is given. DSJSON holds only decisions whose reward is learned; of a guard
    with several metrics the reward is its only floor, or the `metric` that is named.
    """
    chosen = (format or path.suffix.lstrip(".")).lower()
    chosen = {"json": "dsjson", "jsonl": "dsjson"}.get(chosen, chosen)
    if chosen not in FORMATS:
        raise ConfigError(
            f"`format` must be one of {', '.join(FORMATS)}, but got {chosen!r}. Give one, or use it as suffix."
        )
    if not path.parent.is_dir() or path.is_dir():
        raise ConfigError(f"What is exported must go to a file in a folder that exists, but got {path}.")
    created = decode(next(journal.read(name, limit=1)), records.Created)
    if is_hub(created):
        raise ConfigError(
            f"The decisions of {name!r} are in the journals of the shards that share it, and none is in this one: "
            "export each of those."
        )
    if is_guard(created.policy):
        return _export_guard(journal, name, path, chosen, metrics_of(created), metric)
    if metric is not None:
        raise ConfigError(f"`metric` is for a guard, which may have several, but the policy is {created.policy}.")
    rows = list(decisions(journal, name))
    if chosen == "dsjson":
        return _write_dsjson(rows, path)
    table = as_table(rows)
    if chosen == "parquet":
        table.write_parquet(path)
    else:
        harmless(_flat(table)).write_csv(path)
    return table.height


def harmless(table: "pl.DataFrame") -> "pl.DataFrame":
    """Texts that a spreadsheet would take for a formula, with an apostrophe in front of them."""
    import polars as pl

    texts = [pl.col(name) for name, kind in table.schema.items() if kind == pl.String]
    return table.with_columns(
        pl.when(text.str.contains(FORMULA)).then(pl.lit("'") + text).otherwise(text).name.keep() for text in texts
    )


def _export_guard(
    journal: Journal, name: str, path: Path, chosen: str, metrics: Mapping[str, Metric], metric: str | None
) -> int:
    if chosen == "dsjson":
        asked = exported_metric(metrics, metric)
        labelled = [row for row in guarded_decisions(journal, name) if asked in row["rewards"]]
        lines = (msgspec.json.encode(guard_dsjson(row, asked, metrics[asked])) + b"\n" for row in labelled)
        path.write_bytes(b"".join(lines))
        return len(labelled)
    if metric is not None:
        raise ConfigError(f"`metric` chooses the reward of DSJSON; a {chosen} file has them all, but got {metric!r}.")
    table = guard_table(list(guarded_decisions(journal, name)), list(metrics))
    if chosen == "parquet":
        table.write_parquet(path)
    else:
        harmless(table).write_csv(path)
    return table.height


def decisions(journal: Journal, name: str) -> Iterator[dict[str, Any]]:
    """Every decision with the reward that was learned for it, oldest first."""
    rows: dict[str, dict[str, Any]] = {}
    catalogues: dict[str, list[list[float]]] = {}
    windowed = False
    view = journal.view(name)
    for event in view.read():
        if event.kind == records.CREATED:
            windowed = decode(event, records.Created).reward_window is not None
        elif event.kind == records.CATALOGUE:
            catalogue = decode(event, records.CatalogueRecord)
            catalogues[catalogue.digest] = catalogue.rows
        elif event.kind == records.DECISION:
            decision = opened(decode(event, records.DecisionRecord), view.private(event.number))
            rows[reference(event)] = _row(event, decision, catalogues)
        elif event.kind == records.VOIDED:
            _move(rows, decode(event, records.Voided))
        # With a window, what was learned stands in `closed`.
        elif event.kind == records.REWARD and not windowed:
            reward = decode(event, records.RewardRecord)
            if reward.refused is None:
                rows[reward.decision_id].update(reward=float(reward.value), reward_time=event.time)
        elif event.kind == records.CORRECTED and not windowed:
            corrected = decode(event, records.Corrected)
            rows[corrected.decision_id].update(reward=float(corrected.value), reward_time=event.time)
        elif event.kind == records.CLOSED:
            for learned in decode(event, records.Closed).learned:
                rows[learned.decision_id].update(
                    reward=learned.value, reward_time=event.time, is_default_reward=learned.is_default
                )
    yield from rows.values()


def as_table(rows: list[dict[str, Any]]) -> "pl.DataFrame":
    """The rows as a polars table; features are lists."""
    try:
        import polars as pl
    except ModuleNotFoundError as error:
        raise ConfigError(EXTRA) from error
    schema: dict[str, Any] = {
        "round": pl.Int64,
        "event": pl.Int64,
        "time": pl.Float64,
        "decision_id": pl.String,
        "mode": pl.String,
        "source": pl.String,
        "is_held": pl.Boolean,
        "is_fallback": pl.Boolean,
        "is_voided": pl.Boolean,
        "action": pl.Int64,
        "action_id": pl.String,
        "baseline": pl.Int64,
        "proposal": pl.Int64,
        "actions": pl.Int64,
        "features": pl.List(pl.Float64),
        "baseline_features": pl.List(pl.Float64),
        "guaranteed": pl.Float64,
        "required": pl.Float64,
        "margin": pl.Float64,
        "optimism": pl.Float64,
        "probability": pl.Float64,
        "is_deterministic": pl.Boolean,
        "reward": pl.Float64,
        "is_default_reward": pl.Boolean,
        "reward_time": pl.Float64,
        "context": pl.String,
    }
    return pl.DataFrame([{key: row[key] for key in schema} for row in rows], schema=schema)


def _row(event: Event, decision: records.DecisionRecord, catalogues: dict[str, list[list[float]]]) -> dict[str, Any]:
    asked, seen = decision.asked, decision.certificate
    offered = catalogues[asked.catalogue] if asked.catalogue is not None else asked.features
    names = asked.actions
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
        "action": decision.action,
        "action_id": None if names is None else names[decision.action],
        "baseline": asked.baseline,
        "proposal": seen.proposal,
        "actions": len(offered) if offered is not None else len(seen.proof.question),
        "features": None if offered is None else offered[decision.action],
        "baseline_features": None if offered is None or asked.baseline is None else offered[asked.baseline],
        "guaranteed": float(seen.guaranteed),
        "required": float(seen.required),
        "margin": seen.margin,
        "optimism": float(seen.optimism),
        "probability": 1.0,
        "is_deterministic": True,
        "reward": None,
        "is_default_reward": False,
        "reward_time": None,
        "context": None if asked.context is None else msgspec.json.encode(asked.context).decode(),
        "_offered": offered,
        "_names": names,
        "_context": asked.context,
    }


def _move(rows: dict[str, dict[str, Any]], voided: records.Voided) -> None:
    """Write down what was really played: its reward is that of this action."""
    row, action = rows[voided.decision_id], int(voided.action)
    names, offered = row["_names"], row["_offered"]
    row.update(
        is_voided=True,
        action=action,
        source="baseline" if action == row["baseline"] else "learner",
        action_id=None if names is None else names[action],
        features=None if offered is None else offered[action],
    )


def _flat(table: "pl.DataFrame") -> "pl.DataFrame":
    """Lists as JSON text: CSV has no lists."""
    import polars as pl

    def text(values: Any) -> str:
        return msgspec.json.encode(list(values)).decode()

    lists = ("features", "baseline_features")
    return table.with_columns(pl.col(name).map_elements(text, return_dtype=pl.String) for name in lists)


def _write_dsjson(rows: list[dict[str, Any]], path: Path) -> int:
    labelled = [row for row in rows if row["reward"] is not None]
    with path.open("wb") as file:
        for row in labelled:
            file.write(msgspec.json.encode(_dsjson(row)) + b"\n")
    return len(labelled)


def _dsjson(row: dict[str, Any]) -> dict[str, Any]:
    """One line of VW's decision service format: costs are negative rewards, actions count from 1, played one first."""
    played, count = row["action"], row["actions"]
    order = [played, *(action for action in range(count) if action != played)]
    return {
        "_label_cost": -row["reward"],
        "_label_probability": 1.0,
        "_label_Action": played + 1,
        "_labelIndex": played,
        "_deterministic": True,
        "o": [{"v": row["reward"], "EventId": row["decision_id"], "is_default": row["is_default_reward"]}],
        "Timestamp": datetime.fromtimestamp(row["time"], UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "Version": "1",
        "EventId": row["decision_id"],
        "a": [action + 1 for action in order],
        "p": [1.0, *([0.0] * (count - 1))],
        "c": {"context": row["_context"] or {}, "_multi": [_action(row, action) for action in range(count)]},
        "surefoot": {
            "round": row["round"],
            "source": row["source"],
            "baseline": row["baseline"],
            "margin": row["margin"] if math.isfinite(row["margin"]) else None,
        },
    }


def _action(row: dict[str, Any], action: int) -> dict[str, Any]:
    offered = row["_offered"]
    features = {"arm": action} if offered is None else {f"f{i}": value for i, value in enumerate(offered[action])}
    return {"features": features, **({} if row["_names"] is None else {"_tag": row["_names"][action]})}
