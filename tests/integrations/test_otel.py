"""Spans as OpenTelemetry's own SDK exports them: in process, over OTLP, and of the service in its caller's trace."""

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry import trace
from opentelemetry._logs import set_logger_provider
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import feature_flag_attributes as flag
from opentelemetry.trace import SpanKind, StatusCode

import surefoot
from surefoot.experiment import AsyncExperiment, Experiment
from surefoot.integrations.otel import TracedApp, traced
from surefoot.service.app import Service
from surefoot.service.server import config_of
from surefoot.service.settings import Settings
from tests.integrations.model_server import model_server
from tests.integrations.proxies import GUARD, configuration, proxy, served, wait_until
from tests.service.servers import Apart, create, running

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture
def spans() -> Iterator[tuple[TracerProvider, InMemorySpanExporter]]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield provider, exporter
    provider.shutdown()


@pytest.fixture(scope="module")
def logger_provider() -> LoggerProvider:
    """The process can have one."""
    set_logger_provider(provider := LoggerProvider())
    return provider


@pytest.fixture
def logs(logger_provider: LoggerProvider) -> InMemoryLogRecordExporter:
    exporter = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
    logger_provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    return exporter


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
            flag.FEATURE_FLAG_KEY: "models",
            flag.FEATURE_FLAG_PROVIDER_NAME: "surefoot",
            flag.FEATURE_FLAG_RESULT_VARIANT: "proposal" if answer.action == "small" else "baseline",
            flag.FEATURE_FLAG_RESULT_REASON: flag.FeatureFlagResultReasonValues(reason).value,
            "surefoot.decision_id": "one",
            "surefoot.share": answer.share,
        }


def test_an_evaluation_is_a_log_event_in_the_trace_of_its_decision(
    spans: tuple[TracerProvider, InMemorySpanExporter], logs: InMemoryLogRecordExporter
) -> None:
    provider, exporter = spans
    traced(guarded().decide, tracer_provider=provider)(baseline="big", proposal="small")
    (log,) = logs.get_finished_logs()
    (span,) = exporter.get_finished_spans()
    assert log.log_record.event_name == "feature_flag.evaluation"
    assert log.log_record.span_id == span.context.span_id
    assert dict(log.log_record.attributes or {}) == event_of(span)


def test_a_held_baseline_is_disabled_as_in_ofrep(spans: tuple[TracerProvider, InMemorySpanExporter]) -> None:
    provider, exporter = spans
    models = guarded()
    models.set_mode("paused")
    for _ in range(2):
        traced(models.decide, tracer_provider=provider)(baseline="big", proposal="small", decision_id="one")
    for span in exporter.get_finished_spans():
        reason = event_of(span)[flag.FEATURE_FLAG_RESULT_REASON]
        assert reason == flag.FeatureFlagResultReasonValues.DISABLED.value


class _Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.server.bodies.append(self.rfile.read(int(self.headers["content-length"])))  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.mark.parametrize("is_async", [False, True])
def test_many_decisions_are_one_span_with_an_event_for_each(
    spans: tuple[TracerProvider, InMemorySpanExporter], is_async: bool
) -> None:
    provider, exporter = spans
    models = guarded()
    asked = [{"baseline": "big", "proposal": "small", "decision_id": name} for name in ("one", "two")]
    requests = [asked[0], {"baseline": "big"}, asked[1]]
    if is_async:
        answers = asyncio.run(traced(AsyncExperiment(models).decide_all, tracer_provider=provider)(requests))
    else:
        answers = traced(models.decide_all, tracer_provider=provider)(requests)
    (span,) = exporter.get_finished_spans()
    assert [dict(event.attributes or {})["surefoot.decision_id"] for event in span.events] == ["one", "two"]
    assert len(answers) == 3


@pytest.fixture
def receiver() -> Iterator[Any]:
    """A server that takes spans by OTLP, and keeps their bodies."""
    with HTTPServer(("127.0.0.1", 0), _Receiver) as server:
        server.bodies = []  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def received(receiver: Any) -> list[Any]:
    """The spans, with their events by attribute."""
    requests = [ExportTraceServiceRequest.FromString(body) for body in receiver.bodies]
    scopes = [scope for one in requests for resource in one.resource_spans for scope in resource.scope_spans]
    return [span for scope in scopes for span in scope.spans]


def sent(event: Any) -> dict[str, Any]:
    return {one.key: one.value.string_value or one.value.double_value for one in event.attributes}


def test_a_receiver_of_otlp_gets_span_and_evaluation(receiver: Any) -> None:
    provider = TracerProvider()
    exporter = OTLPSpanExporter(f"http://127.0.0.1:{receiver.server_address[1]}/v1/traces")
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    answer = traced(guarded().decide, tracer_provider=provider)(baseline="big", proposal="small")
    provider.shutdown()
    (span,) = received(receiver)
    (event,) = span.events
    assert (span.name, event.name) == ("surefoot.decide", "feature_flag.evaluation")
    assert sent(event)["surefoot.decision_id"] == answer.decision_id
    assert sent(event)["feature_flag.key"] == "models"


EXPORTED = """
import sys
from opentelemetry import trace
from opentelemetry._logs import set_logger_provider
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

trace.set_tracer_provider(TracerProvider())
trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(OTLPSpanExporter({url!r})))
from surefoot.cli import main
main()
"""


def test_a_service_exports_every_decision_by_otlp(tmp_path: Path, receiver: Any) -> None:
    url = f"http://127.0.0.1:{receiver.server_address[1]}/v1/traces"
    with Apart(tmp_path, program=EXPORTED.format(url=url)) as server, httpx.Client(base_url=server.address) as client:
        create(client, "models", policy="Guard", settings={"alpha": 0.5, "delta": 0.1}, actions=["big", "small"])
        client.headers["traceparent"] = f"00-{TRACE}-{PARENT}-01"
        answer = client.post("/v1/experiments/models/decisions", json={"decision_id": "one"}).json()
        client.post("/v1/experiments/models/decision-batches", json={"decisions": [{}, {}, {}]})
        assert server.stop() == 0
    one, three = (span for span in received(receiver) if span.trace_id.hex() == TRACE)
    assert [len(one.events), len(three.events)] == [1, 3]
    assert (one.name, one.parent_span_id.hex()) == ("POST /v1/experiments/{name}/decisions", PARENT)
    attributes = sent(one.events[0])
    assert (attributes["surefoot.decision_id"], attributes["surefoot.share"]) == ("one", answer["share"])


def test_a_proxy_of_litellm_exports_its_decisions_beside_its_own_spans(tmp_path: Path, receiver: Any) -> None:
    with model_server("big") as big, model_server("small") as small:
        config = configuration(big.url, small.url, {"journal": "chat.journal", **GUARD})
        config = config.replace("callbacks: [", "callbacks: [otel, ")
        endpoint = f"http://127.0.0.1:{receiver.server_address[1]}/v1/traces"
        with proxy(tmp_path, config, OTEL_EXPORTER="otlp_http", OTEL_ENDPOINT=endpoint) as chat:
            decision_id, name = served(chat.ask())
            wait_until(lambda: any(span.name == "surefoot.decide" for span in received(receiver)))
    (span,) = (span for span in received(receiver) if span.name == "surefoot.decide")
    attributes = sent(span.events[0])
    assert attributes["surefoot.decision_id"] == decision_id
    assert attributes["feature_flag.result.variant"] == {"big": "baseline", "small": "proposal"}[name]


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
    app = config_of(Settings(), Service(Settings(), write=None)).app
    assert isinstance(app, TracedApp), "the SDK is loaded"
    with (
        running(Settings(database=str(tmp_path / "shop.journal"))) as address,
        httpx.Client(base_url=address, headers={"traceparent": f"00-{TRACE}-{PARENT}-01"}, timeout=60) as client,
    ):
        create(client, "models", policy="Guard", settings={"alpha": 0.5, "delta": 0.1}, actions=["big", "small"])
        exporter.clear()
        answer = client.post("/v1/experiments/models/decisions", json={"decision_id": "one", "unit": None}).json()
        client.post("/v1/experiments/models/decisions/one/reward", json={"value": 1})
        client.post("/ofrep/v1/evaluate/flags/models", json={"context": {"targetingKey": "somebody"}})
        batch = client.post(
            "/v1/experiments/models/decision-batches", json={"decisions": [{}, {}, {"baseline": "one"}]}
        )
        for name in ("left", "right"):
            settings = {"alpha": 0.5, "delta": 0.1, "unit_window": 9}
            create(client, name, policy="Guard", settings=settings, actions=["big", "small"])
        for _ in range(2):
            client.post("/ofrep/v1/evaluate/flags", json={"context": {"targetingKey": "somebody"}})
        assert client.get("/v1/experiments/nobody").status_code == 404
        client.get("/livez")
    decide, reward, flag, many, _, _, poll, again, missing = exporter.get_finished_spans()
    for span in (decide, reward, flag, many, poll, again, missing):
        assert span.kind == SpanKind.SERVER
        assert span.parent is not None
        assert (format(span.context.trace_id, "032x"), format(span.parent.span_id, "016x")) == (TRACE, PARENT)
        assert "somebody" not in span.to_json()
    asked = [one["decision"]["decision_id"] for one in batch.json()["results"] if one.get("decision")]
    assert [dict(event.attributes or {})["surefoot.decision_id"] for event in many.events] == asked
    assert len(asked) == 2
    for span, reason in ((poll, "split"), (again, "cached")):
        events = [dict(event.attributes or {}) for event in span.events]
        assert {event["feature_flag.key"] for event in events} == {"left", "right"}
        assert {event["feature_flag.result.reason"] for event in events} == {reason}
    assert event_of(decide)["surefoot.share"] == answer["share"]
    assert decide.name == "POST /v1/experiments/{name}/decisions"
    assert event_of(decide)["surefoot.decision_id"] == answer["decision_id"] == "one"
    assert event_of(flag)["feature_flag.key"] == "models"
    assert not reward.events
    assert (missing.attributes or {})["http.response.status_code"] == 404
