"""An experiment as a table: Parquet and CSV for people and notebooks, DSJSON for Vowpal Wabbit.

Decisions of linear policies are deterministic: the gate says yes or no, and nothing is drawn, but by a watch's coin. So
their propensity is 1, and importance weights over such a log say nothing of actions that were not played. Each row is
marked (`is_deterministic`, `_deterministic` in DSJSON), so that an estimator can refuse it. A guard's decisions have
honest propensities (`pair_rounds`).
"""

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from surefoot.errors import ConfigError
from surefoot.experiment.kinds import kind_of
from surefoot.experiment.sealing import find_voided, reference
from surefoot.journal import Event, Journal
from surefoot.journal.address import private_file
from surefoot.policies.guard_settings import is_same, read_metrics
from surefoot.rounds import decode, events
from surefoot.rounds.events import METRIC, Created, PairRound, RowsRound
from surefoot.safety.metric import Metric

if TYPE_CHECKING:
    import polars as pl

FORMATS = ("parquet", "csv", "dsjson")
FORMULA = r"^[=+\-@\t\r]"  # ids, names and units are the callers' own words
ACTIONS = 2  # of a guard's round in DSJSON: the baseline, then the proposal
EXTRA = "Export to Parquet and CSV needs polars: pip install polars"


def export(
    journal: Journal,
    name: str,
    path: Path,
    *,
    format: str | None = None,  # noqa: A002
    metric: str | None = None,
) -> int:
    """Write every decision of an experiment with its reward to a file.

    Parameters
    ----------
    journal, name : Journal and str
        The experiment.
    path : Path
        The file.
    format : {"parquet", "csv", "dsjson"}, optional
        By default what the file's suffix says. DSJSON holds only decisions whose reward is learned.
    metric : str, optional
        Of a guard with several metrics, the one that is the reward of a line of DSJSON; its only floor by default.

    Returns
    -------
    int
        The number of rows.

    Raises
    ------
    ConfigError
        If there is no such format or metric, or nowhere to write.

    Examples
    --------
    >>> import tempfile
    >>> import surefoot
    >>> journal = surefoot.open_journal("memory:")
    >>> shop = surefoot.Experiment.create(journal, "shop", surefoot.UCB(arms=2))
    >>> answer = shop.decide(baseline=0)
    >>> export(journal, "shop", Path(tempfile.mkdtemp()) / "decisions.csv")
    1
    """
    chosen = (format or path.suffix.lstrip(".")).lower()
    chosen = {"json": "dsjson", "jsonl": "dsjson"}.get(chosen, chosen)
    if chosen not in FORMATS:
        raise ConfigError(
            f"`format` must be one of {', '.join(FORMATS)}, but got {chosen!r}. Give one, or use it as suffix."
        )
    if not path.parent.is_dir() or path.is_dir():
        raise ConfigError(f"What is exported must go to a file in a folder that exists, but got {path}.")
    created = decode(next(journal.read(name, limit=1)), Created)
    if created.is_hub:
        raise ConfigError(
            f"The decisions of {name!r} are in the journals of the shards that share it, and none is in this one: "
            "export each of those."
        )
    if kind_of(created).draws:
        return _export_guard(journal, name, path, chosen, metrics_of(created), metric)
    if metric is not None:
        raise ConfigError(f"`metric` is for a guard, which may have several, but the policy is {created.policy}.")
    rows = list(row_rounds(journal, name))
    private_file(path)
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
        chosen_metric = exported_metric(metrics, metric)
        labelled = [row for row in pair_rounds(journal, name) if chosen_metric in row["rewards"]]
        lines = (
            msgspec.json.encode(guard_dsjson(row, chosen_metric, metrics[chosen_metric])) + b"\n" for row in labelled
        )
        private_file(path)
        path.write_bytes(b"".join(lines))
        return len(labelled)
    if metric is not None:
        raise ConfigError(f"`metric` chooses the reward of DSJSON; a {chosen} file has them all, but got {metric!r}.")
    table = guard_table(list(pair_rounds(journal, name)), list(metrics))
    private_file(path)
    if chosen == "parquet":
        table.write_parquet(path)
    else:
        harmless(table).write_csv(path)
    return table.height


def row_rounds(journal: Journal, name: str) -> Iterator[dict[str, Any]]:
    """Every round over rows or arms with the reward that was learned for it, oldest first."""
    view = journal.view(name)
    created = decode(next(view.read(limit=1)), Created)
    kind, is_windowed = kind_of(created), created.reward_window is not None
    rows, catalogues = dict[str, dict[str, Any]](), dict[str, list[list[float]]]()
    rewards: dict[str, tuple[float, float]] = {}  # rewards and when they came; with a window they count when it closes
    for event in view.read():
        if event.kind == events.CATALOGUE:
            catalogue = decode(event, events.CatalogueRows)
            catalogues[catalogue.digest] = catalogue.rows
        elif event.kind == events.ROUND:
            rows[reference(event)] = _rows_row(event, kind.opened(event, view), catalogues)
        elif event.kind == events.VOIDED:
            _move(rows, decode(event, events.Voided))
        elif event.kind in (events.REWARD, events.CORRECTED):
            record: Any = decode(event, events.Reward if event.kind == events.REWARD else events.Corrected)
            if getattr(record, "refused", None) is None:
                rewards[record.decision_id] = float(record.values[METRIC]), event.time
                if not is_windowed:
                    value, time = rewards[record.decision_id]
                    rows[record.decision_id].update(reward=value, reward_time=time)
        elif event.kind == events.SETTLED:
            for window in decode(event, events.Settled).windows:
                value, _ = rewards.pop(window.decision_id, (created.default_reward or 0.0, 0.0))
                rows[window.decision_id].update(
                    reward=value, reward_time=event.time, is_default_reward=window.is_missing
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


def _rows_row(event: Event, decision: RowsRound, catalogues: dict[str, list[list[float]]]) -> dict[str, Any]:
    request, certificate = decision.request, decision.certificate
    assert certificate.proof is not None
    offered = catalogues[request.catalogue] if request.catalogue is not None else request.features
    names = request.actions
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
        "baseline": request.baseline,
        "proposal": certificate.proposal,
        "actions": len(offered) if offered is not None else len(certificate.proof.question),
        "features": None if offered is None else offered[decision.action],
        "baseline_features": None if offered is None or request.baseline is None else offered[request.baseline],
        "guaranteed": float(certificate.guaranteed),
        "required": float(certificate.required),
        "margin": certificate.margin,
        "optimism": float(certificate.optimism),
        "probability": 1.0,
        "is_deterministic": True,
        "reward": None,
        "is_default_reward": False,
        "reward_time": None,
        "context": None if request.context is None else msgspec.json.encode(request.context).decode(),
        "_offered": offered,
        "_names": names,
        "_context": request.context,
    }


def _move(rows: dict[str, dict[str, Any]], voided: events.Voided) -> None:
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


def pair_rounds(journal: Journal, name: str) -> Iterator[dict[str, Any]]:
    """Every round of a guard with what was booked for it, oldest first; the visits of a unit are its round's.

    A round has rewards once it is settled. Until its window has passed nobody knows which ones it will have: of those
    that are still open only some have brought a reward yet, and these are not like the others.
    """
    view = journal.view(name)
    created = decode(next(view.read(limit=1)), Created)
    kind, metrics = kind_of(created), metrics_of(created)
    rows, rounds = dict[int, _PairRow](), dict[str, _PairRow]()  # by number, and by the reference of each visit
    for event in view.read():
        if event.kind in (events.ROUND, events.VISIT):
            record = kind.opened(event, view)
            if event.kind == events.ROUND:
                rows[record.round] = _PairRow(_pair_row(event, record), metrics, created)
            rounds[reference(event)] = rows[record.round]
            rows[record.round].row["visits"] += 1
        elif event.kind == events.VOIDED:
            ref = decode(event, events.Voided).decision_id
            voided, row = find_voided(view, ref), rounds[ref].row
            # What was assigned stays: a reward weighed by any other probability than the coin's would be biased.
            action = None if voided is None else voided.action
            row.update(is_voided=True, played=row["baseline"] if action is None else action)
        elif event.kind in (events.REWARD, events.CORRECTED):
            reward: Any = decode(event, events.Reward if event.kind == events.REWARD else events.Corrected)
            if getattr(reward, "refused", None) is None:
                rounds[reward.decision_id].add(reward.decision_id, reward.values, event.time)
        elif event.kind == events.ABANDONED:
            rounds[decode(event, events.Abandoned).decision_id].is_lost = True
        elif event.kind == events.SETTLED:
            for window in decode(event, events.Settled).windows:
                rounds[window.decision_id].is_closed = True
    last = max(rows, default=0)
    for one in rows.values():
        yield one.settled(last)


def metrics_of(created: Created) -> dict[str, Metric]:
    """What is promised of each kind of reward."""
    names = ("alpha", "reward_bounds", "baseline_ceiling", "reserve", "default_reward", "metrics")
    return read_metrics(*(created.settings[name] for name in names))


class _PairRow:
    """A row on its way: the rewards of its visits, and whether its window has passed."""

    def __init__(self, row: dict[str, Any], metrics: Mapping[str, Metric], created: Created) -> None:
        self.row, self._metrics = row, metrics
        self._is_unit = row["unit"] is not None and not is_same(row["baseline"], row["proposal"])
        self._expires = created.settings["unit_window" if self._is_unit else "settle_after"]
        self._waits = created.reward_window is not None
        self._rewards: dict[str, dict[str, float]] = {}  # of each visit, by metric
        self.is_closed = self.is_lost = False

    def add(self, ref: str, values: Mapping[str, Any], time: float) -> None:
        """Take in rewards of a visit, all at once or metric by metric."""
        self.row["reward_time"] = time
        self._rewards.setdefault(ref, {}).update({name: float(value) for name, value in values.items()})

    def settled(self, last: int) -> dict[str, Any]:
        """The row, with what was booked for it where so many rounds were decided in all."""
        if self._expires is not None:
            self.is_closed = last >= self.row["round"] + self._expires
        elif not self._waits:
            needed = [name for name, metric in self._metrics.items() if metric.default is None]
            self.is_closed = any(all(name in one for name in needed) for one in self._rewards.values())
        self.row["is_settled"] = self.is_closed or self.is_lost
        # Of metrics that came one by one, those count that came before the rest was given up.
        has_part = self.is_lost and bool(self._rewards) and not self._is_unit
        if has_part or (self.is_closed and not self.is_lost):
            booked = {name: self._booked(name) for name in self._metrics}
            self.row["rewards"] = {name: value for name, value in booked.items() if not math.isnan(value)}
        return self.row

    def _booked(self, name: str) -> float:
        """What counts for a metric: of a unit the sum over its visits, cut at the highest; nan where at its worst."""
        metric = self._metrics[name]
        if self._is_unit and not self._rewards:  # a unit that brings nothing earns 0
            self.row["is_default_reward"] = True
            return 0.0
        total = 0.0
        for values in self._rewards.values() or [{}]:
            if name not in values and metric.default is not None:
                self.row["is_default_reward"] = True
            total += values.get(name, math.nan if metric.default is None else metric.default)
        return total if math.isnan(total) else min(total, metric.high)


def _pair_row(event: Event, decision: PairRound) -> dict[str, Any]:
    request, certificate = decision.request, decision.certificate
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
        "unit": request.unit,
        "action": request.proposal if is_learner else request.baseline,
        "played": request.proposal if is_learner else request.baseline,
        "baseline": request.baseline,
        "proposal": request.proposal,
        "share": decision.share,
        "draw": decision.draw,
        "probability": decision.share if is_learner else 1.0 - decision.share,
        "margin": None if certificate is None else certificate.margin,
        "binds": None if certificate is None else certificate.binds,
        "visits": 0,
        "rewards": {},
        "reward_time": None,
        "context": request.context,
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
