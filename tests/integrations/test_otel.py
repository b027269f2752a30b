"""Spans as OpenTelemetry's own SDK exports them: in process, and of the service under the trace of its caller."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import surefoot
from surefoot.experiment import AsyncExperiment, Experiment
from surefoot.integrations.otel import TracedApp, traced
from surefoot.service.app import Service
from surefoot.service.settings import Settings
from tests.service.servers import create, running

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture
def spans() -> Iterator[tuple[TracerProvider, InMemorySpanExporter]]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield provider, exporter
    provider.shutdown()


def event_of(span: ReadableSpan) -> dict[str, Any]:
    (event,) = span.events
    assert event.name == "feature_flag.evaluation"
    return dict(event.attributes or {})


def guarded() -> Experiment:
    guard = surefoot.Guard(alpha=0.5, delta=0.1, seed=4, min_holdout=0.1)
    return Experiment.create(surefoot.open_journal("memory:"), "models", guard, mode="guarded")


@pytest.mark.parametrize("is_async", [False, True])
def test_a_decision_is_a_span_below_the_current_one(
    spans: tuple[TracerProvider, InMemorySpanExporter], is_async: bool
) -> None:
    provider, exporter = spans
    models = guarded()
    asked = {"baseline": "big", "proposal": "small", "decision_id": "one"}
    with provider.get_tracer("app").start_as_current_span("request") as parent:
        for _ in range(2):
            if is_async:
                answer = asyncio.run(traced(AsyncExperiment(models).decide, tracer_provider=provider)(**asked))
            else:
                answer = traced(models.decide, tracer_provider=provider)(**asked)
    first, again, outer = exporter.get_finished_spans()
    assert outer.name == "request"
    for span, reason in ((first, "split"), (again, "cached")):
        assert span.name == "surefoot.decide"
        assert span.parent is not None
        assert span.parent.span_id == parent.get_span_context().span_id
        assert event_of(span) == {
            "feature_flag.key": "models",
            "feature_flag.provider.name": "surefoot",
            "feature_flag.result.variant": "proposal" if answer.action == "small" else "baseline",
            "feature_flag.result.reason": reason,
            "surefoot.decision_id": "one",
            "surefoot.share": answer.share,
        }


def test_a_refused_request_is_an_error_without_an_evaluation(
    spans: tuple[TracerProvider, InMemorySpanExporter],
) -> None:
    provider, exporter = spans
    with pytest.raises(surefoot.errors.InputError):
        traced(guarded().decide, tracer_provider=provider)(baseline="big")
    (span,) = exporter.get_finished_spans()
    assert span.status.status_code == StatusCode.ERROR
    assert [event.name for event in span.events] == ["exception"]


def test_the_service_goes_on_with_its_callers_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spans: tuple[TracerProvider, InMemorySpanExporter]
) -> None:
    provider, exporter = spans
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    assert isinstance(Service(Settings(), write=None)._middleware, TracedApp), "the SDK is loaded"
    with (
        running(Settings(database=str(tmp_path / "shop.journal"))) as address,
        httpx.Client(base_url=address, headers={"traceparent": f"00-{TRACE}-{PARENT}-01"}, timeout=60) as client,
    ):
        create(client, "models", policy="Guard", settings={"alpha": 0.5, "delta": 0.1}, actions=["big", "small"])
        exporter.clear()
        answer = client.post("/v1/experiments/models/decisions", json={"decision_id": "one", "unit": None}).json()
        client.post("/v1/experiments/models/decisions/one/reward", json={"value": 1})
        client.post("/ofrep/v1/evaluate/flags/models", json={"context": {"targetingKey": "somebody"}})
        assert client.get("/v1/experiments/nobody").status_code == 404
        client.get("/livez")
    decide, reward, flag, missing = exporter.get_finished_spans()
    for span in (decide, reward, flag, missing):
        assert span.kind == SpanKind.SERVER
        assert span.parent is not None
        assert (format(span.context.trace_id, "032x"), format(span.parent.span_id, "016x")) == (TRACE, PARENT)
        assert "somebody" not in span.to_json()
    assert decide.name == "POST /v1/experiments/{name}/decisions"
    assert event_of(decide)["surefoot.decision_id"] == answer["decision_id"] == "one"
    assert event_of(flag)["feature_flag.key"] == "models"
    assert not reward.events
    assert (missing.attributes or {})["http.response.status_code"] == 404
