"""Metrics for Prometheus, in base units: what happened, how long it took, and where every experiment stands.

Counting happens only in the event loop, so plain numbers suffice; they become metrics when they are collected.
"""

import math
import platform
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

import surefoot
from surefoot import core
from surefoot.experiment import Status
from surefoot.rounds import Answer, Receipt
from surefoot.service.authorization import LogIns

if TYPE_CHECKING:
    from surefoot.service.head_keeper import HeadKeeper
    from surefoot.service.health import HealthMonitor

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
GAUGES = {
    "rounds": "Decisions made so far.",
    "pending": "Decisions whose reward is not learned yet.",
    "waiting": "Rewards that have come, and wait for an earlier one.",
    "held_up_rounds": "Rounds for which they have waited.",
    "is_stalled": "1 if they have waited so long that somebody should look.",
    "abandoned": "Decisions whose reward will never be learned.",
    "voided": "Rounds that were not played as decided.",
    "unconfirmed": "Learner rounds that nobody has confirmed in time, which count at their worst.",
    "restarts": "Alarms answered by relearning or by a new promise.",
    "debt": "What must be earned back after such a restart.",
    "learner_share": "Share of rounds that the learner played.",
    "floor": "What must have been earned by now.",
    "guaranteed": "What has been earned at least, if what was declared is true.",
    "margin": "Margin above the floor at the newest learner round, at least.",
    "worst_margin": "The least margin so far.",
    "is_refuted": "1 while the alarm is on: data and declarations contradict each other.",
}


class Histogram:
    """How long things of one kind took."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts, self.total = [0] * (len(BUCKETS) + 1), 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Counts so far, up to each bound."""
        found, total = [], 0
        for bound, count in zip((*map(str, BUCKETS), "+Inf"), self.counts, strict=True):
            total += count
            found.append((bound, float(total)))
        return found


class Metrics(Collector):
    """All metrics of one server."""

    def __init__(
        self,
        statuses: Callable[[], Iterable[Status]],
        health: "HealthMonitor",
        heads: "HeadKeeper",
        waiting: Callable[[], Iterable[tuple[str, str, int]]],
        log_ins: LogIns,
    ) -> None:
        self._statuses, self._health, self._heads, self._waiting = statuses, health, heads, waiting
        self._log_ins = log_ins
        self._decisions: Counter[tuple[str, str]] = Counter()
        self._repeats: Counter[tuple[str]] = Counter()
        self._rewards: Counter[tuple[str, str]] = Counter()
        self._requests: Counter[tuple[str, str, str]] = Counter()
        self._seconds: dict[tuple[str, str], Histogram] = {}
        # Not the global one, so that several servers can live in one process.
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def decided(self, name: str, answer: Answer) -> None:
        """Count a decision that is durable."""
        self._decisions[name, answer.source] += 1
        if answer.is_repeat:
            self._repeats[name,] += 1

    def rewarded(self, name: str, receipt: Receipt) -> None:
        """Count a reward."""
        self._rewards[name, receipt.refused or "accepted"] += 1

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests[method, route, str(status)] += 1
        found = self._seconds.get((method, route))
        if found is None:
            found = self._seconds[method, route] = Histogram()
        found.add(seconds)

    def page(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return generate_latest(self._registry)

    def collect(self) -> Iterable[Metric]:
        """Everything, as metrics."""
        by = ("experiment", "source")
        yield _counter("surefoot_decisions", "Decisions that were answered.", by, self._decisions)
        yield _counter("surefoot_repeated_decisions", "Of these, asked before.", by[:1], self._repeats)
        by = ("experiment", "outcome")
        yield _counter("surefoot_rewards", "Rewards, accepted or refused.", by, self._rewards)
        yield _counter("surefoot_http_requests", "Requests.", ("method", "route", "status"), self._requests)
        name, text = "surefoot_http_request_duration_seconds", "From a request's head to the end of its answer."
        taken = HistogramMetricFamily(name, text, labels=("method", "route"))
        # A copy: the event loop counts on while another thread collects.
        for labels, seconds in list(self._seconds.items()):
            taken.add_metric(labels, seconds.buckets(), seconds.total)
        yield taken
        yield from self._server()
        yield from self._of_tokens()
        yield from self._standing()

    def _server(self) -> Iterable[Metric]:
        build = {"version": surefoot.__version__, "python": platform.python_version(), "core": core.name}
        yield _gauge("surefoot_build_info", "What is running.", tuple(build), {tuple(build.values()): 1.0})
        health = self._health.read()
        yield _gauge("surefoot_ready", "1 if a decision would be durable now.", (), {(): health.status == "ready"})
        name, text = "surefoot_journal_write_duration_seconds", "Of writes that only test the journal."
        writes = HistogramMetricFamily(name, text, labels=())
        writes.add_metric((), self._health.writes.buckets(), self._health.writes.total)
        yield writes
        failed = {(): self._health.failed_writes}
        yield _counter("surefoot_journal_failed_writes", "Of these, refused by the journal.", (), failed)
        age = {} if health.seconds_since_write is None else {(): health.seconds_since_write}
        yield _gauge("surefoot_journal_write_age_seconds", "Since the journal last took a write.", (), age)
        failed = {(): self._heads.failures}
        yield _counter("surefoot_heads_failures", "Times that heads could not be kept outside.", (), failed)
        yield _gauge("surefoot_heads_age_seconds", "Since all heads were last kept.", (), {(): self._heads.age})
        text = "Seconds by which the system's clock is ahead of what it must be by now."
        yield _gauge("surefoot_clock_offset_seconds", text, (), {(): health.clock_offset})
        text = "1 if the system's clock is believed; 0 after a jump."
        yield _gauge("surefoot_clock_trusted", text, (), {(): health.is_clock_trusted})
        waiting = {(name, verb): size for name, verb, size in self._waiting()}
        yield _gauge("surefoot_queue_size", "Requests that wait to be written.", ("experiment", "verb"), waiting)
        damaged = {(name,): 1.0 for name in self._health.unwell}
        text = "1 for an experiment that cannot be read, or takes no events."
        yield _gauge("surefoot_experiment_is_damaged", text, ("experiment",), damaged)

    def _of_tokens(self) -> Iterable[Metric]:
        tokens, issuer = self._log_ins.tokens, self._log_ins.issuer
        expiries = {} if tokens is None else {(one,): expires for one, expires in tokens.expiries().items()}
        yield _gauge("surefoot_token_expiry_timestamp_seconds", "When a token expires.", ("token",), expiries)
        text = "1 if the token file could be read; otherwise the tokens that were last read go on."
        yield _gauge("surefoot_tokens_readable", text, (), {} if tokens is None else {(): tokens.error is None})
        text = "Since the keys of the log-in's issuer were last fetched; until then the last ones go on."
        yield _gauge("surefoot_issuer_keys_age_seconds", text, (), {} if issuer is None else {(): issuer.age})

    def _standing(self) -> Iterable[Metric]:
        statuses = list(self._statuses())
        for field, text in GAUGES.items():
            gauge = GaugeMetricFamily(f"surefoot_experiment_{field}", text, labels=("experiment",))
            for status in statuses:
                value = float(getattr(status, field))
                if math.isfinite(value):
                    gauge.add_metric([status.name], value)
            yield gauge
        yield from _guards(statuses)


def _guards(statuses: Iterable[Status]) -> Iterable[Metric]:
    share = GaugeMetricFamily("surefoot_guard_share", "Share of a guard's next proposal.", labels=("experiment",))
    bank = GaugeMetricFamily("surefoot_guard_bank", "What may be spent of a metric.", labels=("experiment", "metric"))
    of_differing = GaugeMetricFamily(
        "surefoot_guard_differing_share",
        "The learner's share of the rounds in which proposal and baseline differed.",
        labels=("experiment",),
    )
    for status in statuses:
        if status.guard is not None:
            share.add_metric([status.name], status.guard.share)
            if not math.isnan(status.differing_share):
                of_differing.add_metric([status.name], status.differing_share)
            for name, metric in status.guard.metrics.items():
                bank.add_metric([status.name, name], metric.bank)
    yield from (share, of_differing, bank)


def _gauge(name: str, text: str, by: tuple[str, ...], values: Mapping[Any, float]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=by)
    for labels, value in values.items():
        family.add_metric(labels, float(value))
    return family


def _counter(name: str, text: str, by: tuple[str, ...], counts: Mapping[Any, int]) -> Metric:
    family = CounterMetricFamily(name, text, labels=by)
    for labels, count in list(counts.items()):
        family.add_metric(labels, count)
    return family
