"""The detector: takes events, returns detections. It is a composer that finds its hits with a matcher."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from likewise.composite.compiled.shape import Shape
from likewise.composite.composer import Composer
from likewise.composite.detection import Detection
from likewise.composite.general.pools import Pool, ProfileMatcher
from likewise.composite.general.run import deliver
from likewise.composite.hits import HitColumns, HitSource, MatchedHits
from likewise.composite.intake import Arrived
from likewise.composite.plan.nodes import Plan
from likewise.events import Event, Instant
from likewise.language import Composite, Options, Profile, Subscription
from likewise.matching import Matcher

_CHUNK: Final = 1 << 17
_FEW: Final = 8


class Detector(Composer):
    """Runs patterns over a stream of events; a matcher finds the events that match their members.

    >>> from likewise.language import Composite, Member, Operator, Predicate, Profile, Sequence
    >>> def kind(name):
    ...     return Member(Profile((Predicate("type", Operator.EQ, name),)), name)
    >>> detector = Detector()
    >>> detector.add("break in", Composite(Sequence((kind("window"), kind("presence")), within=600_000_000)))
    >>> detector.publish(Event("1", (("type", "window"),), (), 0, 0))
    []
    >>> [detection] = detector.publish(Event("2", (("type", "presence"),), (), 600_000_000, 600_000_000))
    >>> detection.pattern, sorted(detection.events)
    ('break in', ['presence', 'window'])
    """

    _keeps_hits: ClassVar[bool] = False

    def __init__(
        self,
        patterns: Iterable[Subscription] = (),
        *,
        matcher: ProfileMatcher | None = None,
        **options: Any,
    ) -> None:
        """`matcher` decides which events match a profile; other options are those of `Composer`."""
        self._matcher = matcher if matcher is not None else Matcher()
        self._batch_matcher = self._matcher if isinstance(self._matcher, Matcher) else None
        super().__init__(patterns, **options)

    def _members(self) -> tuple[Pool, Matcher | None]:
        encoder = self._encoder if isinstance(self._matcher, Matcher) else None
        return Pool(self._matcher, encoder), self._batch_matcher

    @property
    def active(self) -> int:
        """The number of active profiles."""
        return len(self._pool)

    # events

    def publish(self, event: Event) -> list[Detection]:
        """Take one event; returns the detections completed by it and by the time that passed."""
        intake = self._intake
        end = intake.accept(event, self._timers.clock)
        if end is None:
            return []
        if not intake.lateness:
            return self._process(event, end)
        intake.hold(event)
        return self._released()

    def publish_batch(self, events: Sequence[Event]) -> list[Detection]:
        """Take many events at once; same result as one by one, only faster."""
        out: list[Detection] = []
        intake = self._intake
        for low in range(0, len(events), _CHUNK):
            accepted, times = intake.accept_all(events[low : low + _CHUNK], self._timers.clock)
            if not intake.lateness:
                out += self._take_events(accepted, times)
                continue
            for event in accepted:
                intake.hold(event)
            out += self._released()
        return out

    def publish_scored(self, events: Sequence[Event], scored: HitColumns) -> list[Detection]:
        """Like `publish_batch`, for events that the detector's matcher has already scored.

        The hits refer to profiles by the matcher's handles.
        """
        return self.publish_batch(events) if self._batch_matcher is None else self.take_columns(events, scored)

    def add(self, name: str, body: Composite | Profile, options: Options | None = None) -> None:
        """Run a pattern from now on."""
        super().add(name, body, options)
        # Buffered events were scored without the new members.
        self._intake.forget_hits()

    def _number_profiles(self, deployed: Shape | Plan) -> Sequence[int]:  # noqa: ARG002 - the matcher has handles
        return ()

    def _source(self, hits: HitColumns | None) -> HitSource:
        assert self._batch_matcher is not None
        return MatchedHits(self._pool, self._encoder, self._batch_matcher, self._compiled, hits)

    def _take(self, arrived: Sequence[Arrived], times: NDArray[np.int64] | None = None) -> list[Detection]:
        if self._batch_matcher is None or not arrived or any(hits is None for _, hits in arrived):
            return self._take_events([event for event, _ in arrived], times)
        return super()._take(arrived, times)

    def _take_events(self, events: Sequence[Event], times: NDArray[np.int64] | None = None) -> list[Detection]:
        """Process events that are accepted and in order."""
        if self._batch_matcher is not None and len(events) > _FEW:
            return self._take_batch(events, times, self._source(None))
        return [detection for event in events for detection in self._process(event, event.span[1])]

    def _process(self, event: Event, end: Instant) -> list[Detection]:
        """Run one event through all patterns."""
        out = [] if self._timers.idle(end - 1) else self._fire_timers(end - 1)
        self._start(end)
        detections: list[Detection] = []
        if self._compiled:
            compiled = self._compiled.process_one(event, end, rank=self._ranks, catalogue=self._catalogue)
            if compiled is None:
                return self._in_order(out + self._take_batch([event], None, self._source(None)))
            detections = compiled
        self._ranks += 1
        if self._runs:
            general = deliver(self._pool.match(event), event, self._ranks - 1)
            if general or out:
                return self._in_order(out + detections + general)
        return detections
