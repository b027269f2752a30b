"""Metrics for Prometheus, in base units: what happened, how long it took, and where every experiment stands."""

from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from surefoot.experiment import Answer, Receipt
from surefoot.service.answers import Summary

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
GAUGES = {
    "rounds": "Decisions made so far.",
    "pending": "Decisions whose reward is not learned yet.",
    "learner_share": "Share of rounds that the learner played.",
    "floor": "What must have been earned by now.",
    "guaranteed": "What is certain to have been earned.",
    "margin": "By how much the floor was cleared for sure at the newest learner round.",
    "worst_margin": "The least margin so far.",
    "is_refuted": "1 where data and assumptions contradict each other.",
}


class Metrics:
    """All metrics of one server."""

    def __init__(self, summaries: Callable[[], Iterable[Summary]]) -> None:
        self._registry = CollectorRegistry()
        self._decisions = Counter(
            "surefoot_decisions", "Decisions that were answered.", ("experiment", "source"), registry=self._registry
        )
        self._repeats = Counter(
            "surefoot_repeated_decisions", "Of these, asked before.", ("experiment",), registry=self._registry
        )
        self._rewards = Counter(
            "surefoot_rewards", "Rewards, accepted or refused.", ("experiment", "outcome"), registry=self._registry
        )
        self._requests = Counter(
            "surefoot_http_requests", "Requests.", ("method", "route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "surefoot_http_request_duration_seconds",
            "From a request's head to the end of its answer.",
            ("method", "route"),
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._registry.register(_Standing(summaries))
        self._children: dict[Any, Any] = {}  # looking a label up each time costs more than counting

    def decided(self, name: str, answer: Answer) -> None:
        """Count a decision that is durable."""
        self._child(self._decisions, name, answer.source).inc()
        if answer.is_repeat:
            self._child(self._repeats, name).inc()

    def rewarded(self, name: str, receipt: Receipt) -> None:
        """Count a reward."""
        self._child(self._rewards, name, receipt.refused or "accepted").inc()

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._child(self._requests, method, route, str(status)).inc()
        self._child(self._seconds, method, route).observe(seconds)

    def page(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return generate_latest(self._registry)

    def _child(self, metric: Any, *labels: str) -> Any:
        found = self._children.get((metric, labels))
        if found is None:
            found = self._children[metric, labels] = metric.labels(*labels)
        return found


class _Standing(Collector):
    """Gauges that are read off the experiments when somebody asks."""

    def __init__(self, summaries: Callable[[], Iterable[Summary]]) -> None:
        self._summaries = summaries

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """One gauge for each number."""
        found = list(self._summaries())
        for field, text in GAUGES.items():
            gauge = GaugeMetricFamily(f"surefoot_experiment_{field}", text, labels=("experiment",))
            for summary in found:
                value = getattr(summary, field)
                if value is not None:
                    gauge.add_metric([summary.name], float(value))
            yield gauge
