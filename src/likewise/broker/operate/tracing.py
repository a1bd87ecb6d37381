"""OpenTelemetry spans for publishing, matching and delivery. Without the SDK they do nothing.

Start the broker with `opentelemetry-instrument likewise serve`, which configures exporters from the environment.
"""

from __future__ import annotations

import importlib.util
from contextlib import AbstractContextManager, nullcontext
from typing import Any


def _tracer() -> Any:
    try:
        if importlib.util.find_spec("opentelemetry.sdk") is None:
            return None
    except ModuleNotFoundError:
        return None
    from opentelemetry import trace

    return trace.get_tracer("likewise.broker")


tracer: Any = _tracer()
_NOTHING: AbstractContextManager[None] = nullcontext()


def span(name: str, **attributes: str | int | float) -> AbstractContextManager[Any]:
    """A context manager that records a span with attributes."""
    if tracer is None:
        return _NOTHING
    context: AbstractContextManager[Any] = tracer.start_as_current_span(
        name, attributes={f"likewise.{key}": value for key, value in attributes.items()}
    )
    return context
