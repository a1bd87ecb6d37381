"""Events: the model, its terms, and how events are read and written."""

from likewise.events._event import Event, Instant, Value, to_datetime, to_instant
from likewise.events._terms import normalise, words

__all__ = ["Event", "Instant", "Value", "normalise", "to_datetime", "to_instant", "words"]
