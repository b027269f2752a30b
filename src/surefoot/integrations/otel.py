"""OpenTelemetry: spans of decisions, with the event `feature_flag.evaluation` of the semantic conventions.

The conventions record events as logs; here the span has the event as well, for those who export traces alone.

In process, wrap the verb; its spans are children of whatever span is current:

    decide = traced(shop.decide)
    answer = decide(baseline="today", proposal="new")

The service makes a span for every request by itself where OpenTelemetry's SDK is loaded when it starts, and goes on
with the trace that the caller's `traceparent` names: `opentelemetry-instrument surefoot serve`.

Units and contexts are about people, and stay out of traces, from which they could not be erased.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from surefoot.rounds import Answer

try:
    from opentelemetry import _logs, propagate, trace
    from opentelemetry.trace import SpanKind, Status, StatusCode, TracerProvider
except ImportError as error:
    raise ImportError("Tracing needs OpenTelemetry. Install it with: pip install 'surefoot[otel]'") from error

Verb = TypeVar("Verb", bound=Callable[..., Any])
EVENT = "feature_flag.evaluation"
LOGGER = _logs.get_logger("surefoot")
PROBES = ("/livez", "/readyz", "/metrics")


def traced(decide: Verb, *, tracer_provider: TracerProvider | None = None) -> Verb:
    """`decide` or `decide_all` of an `Experiment` or `AsyncExperiment`, each call in a span of its own.

    Parameters
    ----------
    decide : callable
        The verb, bound to its experiment.
    tracer_provider : TracerProvider, optional
        Where spans go; by default to the global one.

    Returns
    -------
    callable
        The same, with spans.

    Examples
    --------
    >>> import surefoot
    >>> shop = surefoot.Experiment.create(surefoot.open_journal("memory:"), "shop", surefoot.UCB(arms=2))
    >>> traced(shop.decide)(baseline=0).source
    'baseline'
    """
    owner: Any = decide.__self__  # type: ignore[attr-defined]
    name = getattr(owner, "experiment", owner).name
    tracer = trace.get_tracer("surefoot", tracer_provider=tracer_provider)
    about = {"surefoot.experiment": name}

    def with_events(answers: Any) -> Any:
        for answer in answers if isinstance(answers, list) else [answers]:
            if isinstance(answer, Answer):  # and no error
                evaluated(name, answer)
        return answers

    @wraps(decide)
    def decided(*args: Any, **kwargs: Any) -> Any:
        with tracer.start_as_current_span("surefoot.decide", attributes=about):
            return with_events(decide(*args, **kwargs))

    @wraps(decide)
    async def decided_later(*args: Any, **kwargs: Any) -> Any:
        with tracer.start_as_current_span("surefoot.decide", attributes=about):
            return with_events(await decide(*args, **kwargs))

    return decided_later if inspect.iscoroutinefunction(decide) else decided  # type: ignore[return-value]


class TracedApp:
    """The service's ASGI app with a span for every request; `key` is where the app leaves notes of it in the scope."""

    def __init__(self, app: Any, key: str, *, tracer_provider: TracerProvider | None = None) -> None:
        self._app, self._key = app, key
        self._tracer = trace.get_tracer("surefoot", tracer_provider=tracer_provider)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one connection."""
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self._app(scope, receive, send)
            return
        parent = propagate.extract(
            {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        )
        about = {"http.request.method": scope["method"], "url.path": scope["path"]}
        with self._tracer.start_as_current_span(
            scope["method"], context=parent, kind=SpanKind.SERVER, attributes=about
        ) as span:

            async def note(message: Any) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    if message["status"] >= 500:
                        span.set_status(Status(StatusCode.ERROR))
                await send(message)

            await self._app(scope, receive, note)
            route = scope.get("path_template")
            if route is not None:
                span.update_name(f"{scope['method']} {route}")
                span.set_attribute("http.route", route)
            experiment = scope[self._key].notes.get("experiment")
            if experiment is not None:
                span.set_attribute("surefoot.experiment", experiment)


def evaluated(name: str, answer: Answer) -> None:
    """Record which side is served, by whom, and the decision that it can be looked up by, in the current span."""
    reason = "disabled" if answer.is_held else "cached" if answer.is_repeat else "split"
    event: dict[str, str | float] = {
        "feature_flag.key": name,
        "feature_flag.provider.name": "surefoot",
        "feature_flag.result.variant": "proposal" if answer.source == "learner" else "baseline",
        "feature_flag.result.reason": reason,
        "surefoot.decision_id": answer.decision_id,
    }
    if answer.share is not None:
        event["surefoot.share"] = answer.share
    LOGGER.emit(event_name=EVENT, attributes=event)
    trace.get_current_span().add_event(EVENT, event)
