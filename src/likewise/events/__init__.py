"""Events: the model, its terms, and how events are read and written."""

from likewise.events._event import Event, Instant, Value, to_datetime, to_instant

__all__ = ["Event", "Instant", "Value", "to_datetime", "to_instant"]
