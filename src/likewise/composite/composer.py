"""The composer: takes hits, returns detections, in event time. It compares no words.

A `Detector` is a composer that finds its hits with a matcher. The engine, Spark tasks and overlay nodes compose hits
that were found elsewhere: in a scoring call for all subscriptions, in an earlier stage, or on another node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from likewise.composite.catalogue import Catalogue
from likewise.composite.compiled.patterns import CompiledPatterns, gc_paused
from likewise.composite.compiled.registry import EventsByPlace
from likewise.composite.compiled.resume import run_general
from likewise.composite.compiled.shape import Forms, Shape
from likewise.composite.detection import Detection
from likewise.composite.encoding import TupleEncoder
from likewise.composite.general.pools import Answer, Pool, Timers
from likewise.composite.general.process import TERMINATORS
from likewise.composite.general.run import Limits, Run, deliver
from likewise.composite.hits import GivenHits, Hit, HitColumns, HitSource, MemberProfile, ProfileNumbers, by_event
from likewise.composite.intake import YEAR, Arrived, Intake, Refused
from likewise.composite.plan.builder import build_plan
from likewise.composite.plan.conditions import ConditionSide, default_relatedness, relate_by
from likewise.composite.plan.nodes import Plan
from likewise.composite.reasons import PatternState, compiled_state, run_state
from likewise.errors import BuildError
from likewise.events import Event, EventColumns, Instant
from likewise.language import Composite, Options, Profile, Subscription
from likewise.matching import Matcher
from likewise.semantics import Measure

_OPTIONS: Final = Options()


class Composer:
    """Runs patterns over hits, in a single step per event [003 sec 4].

    Events may arrive out of order by up to `lateness`; later ones are refused. Within that limit, the order of
    arrival does not change the detections.

    >>> from likewise.language import parse
    >>> composer = Composer(parse("p: {k = A} as a then {k = B} as b within 5 s where a.room = b.room"))
    >>> {number: member.profile.predicates[0].value for number, member in composer.profiles.items()}
    {0: 'A', 1: 'B'}
    >>> first, second = (Event.of({"room": 7}, id=name).stamped(at) for at, name in enumerate("xy"))
    >>> [detection.pattern for detection in composer.take([Hit(first, 0), Hit(second, 1)])]
    ['p']
    """

    _kind: ClassVar[type[Run]] = Run
    _keeps_hits: ClassVar[bool] = True
    """Whether buffered hits are part of a snapshot: only where profiles have the same numbers after a restore."""

    def __init__(
        self,
        patterns: Iterable[Subscription] = (),
        *,
        measure: Measure | None = None,
        relatedness: float | None = None,
        lateness: int = 0,
        limits: Limits | None = None,
        max_jump: int | None = YEAR,
        compiled: bool = True,
        refuse: Callable[[Refused], None] | None = None,
    ) -> None:
        """With `compiled`, simple patterns run on the compiled path; `measure` decides `a.x ~ b.x`.

        `relatedness` is the threshold of `a.x ~ b.x`; the default depends on the measure.
        """
        self.limits = limits or Limits()
        self.relatedness = default_relatedness(measure) if relatedness is None else relatedness
        self._intake = Intake(lateness=lateness, max_jump=max_jump, refuse=refuse)
        self._relate = relate_by(measure, self.relatedness)
        self._timers = Timers()
        self._encoder = TupleEncoder()
        self._pool, matcher = self._members()
        self._runs: dict[str, Run] = {}
        self._compiled: CompiledPatterns | None = None
        self._forms = Forms()
        if compiled and matcher is not None:
            drop = self.limits.policy == "drop oldest"
            self._compiled = CompiledPatterns(matcher, self._encoder, limit=self.limits.instances, drop=drop)
        self._catalogue = Catalogue()
        self._unstarted: list[Run] = []
        self._numbers = 0
        self._ranks = 0
        self._now: Instant | None = None
        listed = list(patterns)
        for subscription in listed:
            self.define(subscription)
        # Profiles listed with patterns are only definitions to refer to.
        composites = [subscription for subscription in listed if isinstance(subscription.body, Composite)]
        for subscription in composites or listed:
            self.add(subscription.name, subscription.body, subscription.options)

    def _members(self) -> tuple[Pool, Matcher | ProfileNumbers | None]:
        """The pool that registers profiles, and the matcher for compiled patterns (None: no compiled path)."""
        self._profile_numbers = ProfileNumbers()
        return Pool(self._profile_numbers), self._profile_numbers

    @property
    def profiles(self) -> dict[int, MemberProfile]:
        """The distinct profiles of all members, by the number that hits refer to.

        Composers with the same patterns in the same order use the same numbers.
        """
        return dict(self._profile_numbers.members)

    @property
    def attributes(self) -> frozenset[str]:
        """The attributes used in conditions: the composer needs no other attributes of an event."""
        plans = (build_plan(self._catalogue.running(name), self._catalogue.scope(name)) for name in self.patterns)
        conditions = (condition for plan in plans for condition in plan.conditions)
        sides = (side for condition in conditions for side in (condition.left, condition.right))
        return frozenset(side.attribute for side in sides if isinstance(side, ConditionSide))

    # patterns

    def define(self, subscription: Subscription) -> None:
        """Let other patterns refer to a subscription, without running it."""
        self._catalogue.define(subscription)

    def add(self, name: str, body: Composite | Profile, options: Options | None = None) -> None:
        """Start running a pattern."""
        if self._runs_already(name):
            raise BuildError(
                f"a pattern named {name!r} is already running", hint="use replace(), or choose another name"
            )
        subscription = Subscription(name, body, options or _OPTIONS)
        deployed = self._shape_or_plan(subscription, self._catalogue.named)
        self._numbers += 1
        numbers = self._number_profiles(deployed)
        if isinstance(deployed, Plan):
            self._install(self._new_run(deployed, self._numbers))
        else:
            assert self._compiled is not None
            self._compiled.add(name, deployed, number=self._numbers, started=self._now)
        for number in numbers:
            self._profile_numbers.remove(number)
        self._catalogue.run(subscription)

    def _number_profiles(self, deployed: Shape | Plan) -> Sequence[int]:
        """Reserve the profiles' numbers in the order of the pattern, so that they do not depend on its path."""
        return [self._profile_numbers.add(leaf.profile, options=leaf.options) for leaf in deployed.leaves]

    def _runs_already(self, name: str) -> bool:
        return name in self._runs or (self._compiled is not None and name in self._compiled)

    def _shape_or_plan(self, subscription: Subscription, known: Mapping[str, Subscription]) -> Shape | Plan:
        """The shape of a pattern that can run on the compiled path, else its plan."""
        if self._compiled is None:
            return self._plan(subscription, known)
        shape = self._forms.known(subscription)
        if shape is not None:
            return shape
        plan = self._plan(subscription, known)
        return self._forms.learn(subscription, plan) or plan

    def _plan(self, subscription: Subscription, known: Mapping[str, Subscription]) -> Plan:
        """The plan of a pattern; raises BuildError if it cannot run here."""
        plan = build_plan(subscription, known)
        if plan.approximate and self._relate is None:
            raise BuildError(
                f"pattern {subscription.name!r} compares members by meaning, which needs a measure",
                hint="pass `measure` to the detector, or compare with =",
            )
        return plan

    def _new_run(self, plan: Plan, number: int) -> Run:
        return self._kind(
            plan,
            number=number,
            pool=self._pool,
            timers=self._timers,
            relate=self._relate,
            limits=self.limits,
        )

    def _install(self, run: Run) -> None:
        self._pool.register(run)
        self._runs[run.plan.name] = run
        if self._now is None:
            self._unstarted.append(run)
        else:
            run.start(self._now)

    def remove(self, name: str) -> None:
        """Stop a pattern and drop its instances."""
        if self._compiled is not None and name in self._compiled:
            self._compiled.remove(name)
            self._catalogue.stop(name)
            return
        run = self._run(name)
        run.close()
        self._timers.forget(run)
        self._pool.unregister(run)
        self._unstarted = [other for other in self._unstarted if other is not run]
        del self._runs[name]
        self._catalogue.stop(name)

    def replace(self, name: str, body: Composite | Profile, options: Options | None = None) -> None:
        """Replace a pattern; the new one starts empty. If it is invalid, the old one keeps running."""
        if not self._runs_already(name):
            self._run(name)
        self._plan(Subscription(name, body, options or Options()), self._catalogue.named)
        self.remove(name)
        self.add(name, body, options)

    def _run(self, name: str) -> Run:
        try:
            return self._runs[name]
        except KeyError:
            running = ", ".join(self.patterns[:10]) or "none"
            raise BuildError(f"no pattern named {name!r} is running", hint=f"running: {running}") from None

    @property
    def patterns(self) -> tuple[str, ...]:
        """The names of the running patterns."""
        numbers = {name: run.number for name, run in self._runs.items()}
        if self._compiled is not None:
            numbers |= {name: self._compiled.number(name) for name in self._compiled.names}
        return tuple(sorted(numbers, key=numbers.__getitem__))

    # hits

    def take(self, hits: Iterable[Hit]) -> list[Detection]:
        """Take hits, grouped by event; returns the detections completed by them and by the time that passed."""
        arrived: list[Arrived] = []
        for event, own_hits in by_event(hits):
            arrived += self._arrive(event, own_hits)
        return self._take(arrived) + self._released()

    def take_columns(self, events: Sequence[Event], hits: HitColumns) -> list[Detection]:
        """Like `take`, for a batch of events and their hits in columns; events without hits are allowed."""
        if self._intake.lateness:
            for event, own_hits in hits.of_events(events):
                self._arrive(event, own_hits)
            return self._released()
        if isinstance(events, EventColumns) and self._intake.all_good(events, self._timers.clock) is None:
            events = list(events)
        accepted, times = self._intake.accept_all(events, self._timers.clock)
        if len(accepted) < len(events):
            # Some events were refused: renumber the hits of the accepted ones.
            places = {id(event): at for at, event in enumerate(accepted)}
            hits = hits.moved(np.array([places.get(id(event), -1) for event in events]))
        return self._take_batch(accepted, times, self._source(hits)) if len(accepted) else []

    def _source(self, hits: HitColumns) -> HitSource:
        return GivenHits(self._pool, self._encoder, hits)

    def notice(self, instant: Instant) -> list[Detection]:
        """Take the time of an event without hits: time advances, and patterns that await their first event start."""
        return self._take(self._arrive(Event("", (), (), instant, instant), ())) + self._released()

    def _arrive(self, event: Event, hits: tuple[Hit, ...] | None) -> list[Arrived]:
        """Accept an event; returns it if it can be processed at once, not if it is refused or buffered."""
        if self._intake.accept(event, self._timers.clock) is None:
            return []
        if not self._intake.lateness:
            return [(event, hits)]
        self._intake.hold(event, hits)
        return []

    def _released(self) -> list[Detection]:
        """Process the buffered events released by the latest event time."""
        seen = self._intake.seen
        if not self._intake.lateness or seen is None:
            return []
        return self._release(seen - self._intake.lateness, closed=False)

    def _take(self, arrived: Sequence[Arrived], times: NDArray[np.int64] | None = None) -> list[Detection]:
        """Process events that are accepted and in order, with their hits."""
        if not arrived:
            return []
        source = self._source(HitColumns.of([hits or () for _, hits in arrived]))
        return self._take_batch([event for event, _ in arrived], times, source)

    # batches: find all hits, run compiled patterns in one call, the others event by event

    def _take_batch(
        self, events: Sequence[Event], times: NDArray[np.int64] | None, source: HitSource
    ) -> list[Detection]:
        """Run accepted, ordered events through all patterns; `source` finds their hits."""
        if times is None:
            times = np.fromiter((event.span[1] for event in events), np.int64, count=len(events))
        first = int(times[0])
        by_timers = self._fire_timers(first - 1) if first - 1 > self._timers.clock else []
        self._start(first)
        base = self._ranks
        self._ranks += len(events)
        compiled = self._compiled
        if not compiled:
            rows = self._through_runs(events, times, base, source.answers(events, source.encode(events), None))
            return by_timers + self._finish(times, [row[2] for row in rows])
        compiled.tidy()
        encoded = source.encode(events)
        unsupported = compiled.unsupported(encoded)
        if unsupported:
            # Timers due before these events fire on the compiled path, where they were set.
            by_timers += compiled.sweep(first, self._catalogue)
            for name in unsupported:
                self._demote(compiled, name)
            encoded = source.encode(events)
        scored = source.scored(events, encoded)
        hits = compiled.hits(*scored[:3]) if compiled.asks_matcher and scored is not None else None
        detections, places, numbers = compiled.process(
            encoded, events, times, hits, base=base, catalogue=self._catalogue
        )
        if not self._runs:
            return self._finish(times, detections)
        rows = [(-0.5, self._number_of(detection), detection) for detection in by_timers]
        rows += self._through_runs(events, times, base, source.answers(events, encoded, scored))
        rows += zip(places.tolist(), numbers.tolist(), detections, strict=True)
        rows.sort(key=_place)
        return self._finish(times, [row[2] for row in rows])

    def _finish(self, times: NDArray[np.int64], detections: list[Detection]) -> list[Detection]:
        last = int(times[-1])
        self._now = last if self._now is None else max(self._now, last)
        self._timers.clock = max(self._timers.clock, last - 1)
        return detections

    def _through_runs(
        self,
        events: EventsByPlace,
        times: NDArray[np.int64],
        base: int,
        answers: Iterable[tuple[int, list[Answer]]],
    ) -> list[tuple[float, int, Detection]]:
        """Detections of the general path, with their position among the events and their pattern's number."""
        out: list[tuple[float, int, Detection]] = []
        timers, number, ends = self._timers, self._number_of, times.tolist()

        def fire(limit: Instant) -> None:
            if limit > timers.clock and (by_timers := self._fire_timers(limit)):
                places = np.searchsorted(times, [detection.time for detection in by_timers], side="right")
                out.extend(
                    (place - 0.5, number(detection), detection)
                    for place, detection in zip(places.tolist(), by_timers, strict=True)
                )

        with gc_paused():
            matched = list(answers)
            if isinstance(events, EventColumns):
                events = events.some(np.fromiter((at for at, _ in matched), np.int64, count=len(matched)))
            for at, hits in matched:
                if not timers.idle(ends[at] - 1):
                    fire(ends[at] - 1)
                detections = deliver(hits, events[at], base + at)
                if detections:
                    out.extend((at, number(detection), detection) for detection in detections)
            fire(ends[-1] - 1)
        return out

    def _demote(self, compiled: CompiledPatterns, name: str) -> None:
        """Move a pattern with its instances from the compiled to the general path."""
        counts, waiting, number = compiled.counts(name), compiled.waiting(name), compiled.number(name)
        # Add before removing, so that a shared profile keeps its number.
        run_general(self, name, number=number, counts=counts, waiting=waiting, shape=compiled.shape(name))
        compiled.remove(name)

    # late events and the clock

    @property
    def lateness(self) -> int:
        """How late an event may arrive, in µs of event time."""
        return self._intake.lateness

    @property
    def max_jump(self) -> int | None:
        """How far an event's time may jump ahead of the latest one, in µs; None for any."""
        return self._intake.max_jump

    @property
    def late(self) -> int:
        """The number of events refused as too late."""
        return self._intake.late

    @property
    def refused(self) -> list[Refused]:
        """Refused events with their reasons; empty if a callback takes them."""
        return self._intake.refused

    @property
    def due(self) -> Instant | None:
        """The next moment at which a buffered event or a timer is due; None if there is none.

        After that moment, `advance` returns new detections and drops expired instances.
        """
        moments = (self._intake.due, self._timers.due, None if self._compiled is None else self._compiled.due)
        return min((moment for moment in moments if moment is not None), default=None)

    def _release(self, watermark: Instant, *, closed: bool) -> list[Detection]:
        """Process everything before the watermark (and at it, if closed) in order, then fire timers up to there."""
        limit = watermark if closed else watermark - 1
        out = self._take(self._intake.ready(limit))
        if limit > self._timers.clock:
            out += self._in_order(self._sweep(limit) + self._fire_timers(limit))
        return out

    def _in_order(self, detections: list[Detection]) -> list[Detection]:
        """Detections of both paths, sorted by time and pattern."""
        return (
            sorted(detections, key=lambda detection: (detection.time, self._number_of(detection)))
            if len(detections) > 1
            else detections
        )

    def _start(self, moment: Instant) -> None:
        if self._compiled is not None and self._now is None:
            self._compiled.start(moment)
        self._now = moment if self._now is None else max(self._now, moment)
        if self._unstarted:
            for run in self._unstarted:
                run.start(moment)
            self._unstarted = []

    def _fire_timers(self, limit: Instant) -> list[Detection]:
        """Fire all timers and terminators up to a moment, in order."""
        out: list[Detection] = []
        while (due := self._timers.next(limit)) is not None:
            time, phase, run, items = due
            run.begin_step(time, phase)
            for process, item in items:
                if phase == TERMINATORS:
                    process.expire(item)
                else:
                    process.timer_due(item)
            if not run.idle:
                out += [Detection.of(run.plan, instance) for instance in run.end_step()]
        self._timers.clock = max(limit, self._timers.clock)
        return out

    def advance(self, instant: Instant) -> list[Detection]:
        """Declare that all events up to and including `instant` have arrived; fires timers up to there."""
        if instant <= self._timers.clock:
            return []
        out = self._release(instant, closed=True)
        seen = self._intake.seen
        self._intake.seen = instant if seen is None else max(seen, instant)
        if self._now is None or self._unstarted:
            self._start(instant)
            out += self._fire_timers(instant)
        self._now = instant if self._now is None else max(self._now, instant)
        self._timers.clock = max(instant, self._timers.clock)
        return out

    def release(self, instant: Instant) -> list[Detection]:
        """Process buffered events up to and including `instant` without closing it: its timers do not fire yet.

        >>> from likewise.language import parse
        >>> composer = Composer(parse("any: 1st {a = 1}"), lateness=60_000_000)
        >>> composer.take([Hit(Event("1", (("a", 1),), (), 5, 5), 0)])
        []
        >>> [detection.pattern for detection in composer.release(5)]
        ['any']
        """
        return self._take(self._intake.ready(instant))

    def flush(self) -> list[Detection]:
        """Process all buffered events, and fire timers up to the latest event."""
        return [] if self._intake.seen is None else self.advance(self._intake.seen)

    # state

    def state(self) -> list[PatternState]:
        """The state of each pattern: its counts, and how far its instances came."""
        self._sweep(self._timers.clock)
        return [self._state_of(name) for name in self.patterns]

    def _sweep(self, limit: Instant) -> list[Detection]:
        """Fire the timers of the compiled path up to and including a moment."""
        return self._compiled.sweep(limit + 1, self._catalogue) if self._compiled else []

    def _state_of(self, name: str) -> PatternState:
        if self._compiled is not None and name in self._compiled:
            return compiled_state(self._compiled, name)
        return run_state(self._runs[name])

    def _number_of(self, detection: Detection) -> int:
        if self._compiled is not None and detection.pattern in self._compiled:
            return self._compiled.number(detection.pattern)
        return self._runs[detection.pattern].number

    def snapshot(self) -> bytes:
        """The whole state, including the patterns, as bytes in a versioned format."""
        from likewise.composite.snapshot import write

        return write(self)

    @classmethod
    def restore(
        cls,
        data: bytes,
        *,
        measure: Measure | None = None,
        compiled: bool = True,
        refuse: Callable[[Refused], None] | None = None,
        **options: Any,
    ) -> Self:
        """Restore from a snapshot; other options are those of the constructor."""
        from likewise.composite.snapshot import read

        return read(cls, data, measure=measure, compiled=compiled, refuse=refuse, **options)


def _place(row: tuple[float, int, Detection]) -> tuple[float, Instant, int]:
    """Sort key: position among events (timers before the next event), then time, then pattern."""
    place, number, detection = row
    return place, detection.time, number
