"""The composer: hits in, detections out, in event time. It knows nothing of words.

A `Detector` is a composer that finds its hits with a matcher. The engine, a Spark task and an overlay node compose hits
that were found elsewhere: in one scoring call for all subscriptions, in the stage before, or on another node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from likewise.composite.catalogue import Catalogue
from likewise.composite.compiled.patterns import FlatPatterns, uncollected
from likewise.composite.compiled.registry import EventsByPlace
from likewise.composite.compiled.resume import run_general
from likewise.composite.compiled.shape import Forms, Shape
from likewise.composite.detection import Detection
from likewise.composite.encoding import Columns
from likewise.composite.general.pools import Answer, Pool, Timers
from likewise.composite.general.process import TERMINATORS
from likewise.composite.general.run import Limits, Run, deliver
from likewise.composite.hits import GivenHits, Hit, HitBook, HitColumns, HitSource, Wanted, by_event
from likewise.composite.intake import YEAR, Arrived, Intake, Refused
from likewise.composite.plan.builder import build_plan
from likewise.composite.plan.conditions import ConditionSide, relate_by, usual_relatedness
from likewise.composite.plan.nodes import Plan
from likewise.composite.reasons import PatternState, flat_state, run_state
from likewise.errors import BuildError
from likewise.events import Event, EventColumns, Instant
from likewise.language import Composite, Options, Profile, Subscription
from likewise.matching import Matcher
from likewise.semantics import Measure

__all__ = ["Composer", "PatternState", "Refused"]


_OPTIONS: Final = Options()


class Composer:
    """Runs patterns over hits in a single step per event [003 sec 4].

    Events may come out of order by up to `lateness`; later ones are refused. Detections are the same
    whatever the order of arrival inside that.

    >>> from likewise.language import parse
    >>> composer = Composer(parse("p: {k = A} as a then {k = B} as b within 5 s where a.room = b.room"))
    >>> {number: wanted.profile.predicates[0].value for number, wanted in composer.profiles.items()}
    {0: 'A', 1: 'B'}
    >>> first, second = (Event.of({"room": 7}, id=name).stamped(at) for at, name in enumerate("xy"))
    >>> [found.pattern for found in composer.take([Hit(first, 0), Hit(second, 1)])]
    ['p']
    """

    _kind: ClassVar[type[Run]] = Run
    _keeps_hits: ClassVar[bool] = True
    """Whether hits that wait are part of a snapshot: the numbers of profiles are the same wherever it goes on."""

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
        """`compiled` lets plain patterns take the compiled path; `measure` answers `a.x ~ b.x`.

        `relatedness` is where `a.x ~ b.x` begins to hold; without it, where the measure's words usually are related.
        """
        self.limits = limits or Limits()
        self.relatedness = usual_relatedness(measure) if relatedness is None else relatedness
        self._intake = Intake(lateness=lateness, max_jump=max_jump, refuse=refuse)
        self._relate = relate_by(measure, self.relatedness)
        self._timers = Timers()
        self._columns = Columns()
        self._pool, matcher = self._members()
        self._runs: dict[str, Run] = {}
        self._flat: FlatPatterns | None = None
        self._forms = Forms()
        if compiled and matcher is not None:
            drop = self.limits.policy == "drop oldest"
            self._flat = FlatPatterns(matcher, self._columns, limit=self.limits.instances, drop=drop)
        self._catalogue = Catalogue()
        self._unstarted: list[Run] = []
        self._numbers = 0
        self._ranks = 0
        self._now: Instant | None = None
        listed = list(patterns)
        for subscription in listed:
            self.define(subscription)
        # Beside patterns, profiles are there to be referred to.
        composites = [one for one in listed if isinstance(one.body, Composite)]
        for subscription in composites or listed:
            self.add(subscription.name, subscription.body, subscription.options)

    def _members(self) -> tuple[Pool, Matcher | HitBook | None]:
        """Where the profiles of patterns are registered, and for plain patterns, if they may be compiled."""
        self._book = HitBook()
        return Pool(self._book), self._book

    @property
    def profiles(self) -> dict[int, Wanted]:
        """The profiles of all members, each once, by the number under which hits name it.

        Composers that were given the same patterns in the same order number them alike.
        """
        return dict(self._book.wanted)

    @property
    def attributes(self) -> frozenset[str]:
        """The attributes that conditions ask about: of an event that hits, no others are needed."""
        plans = (build_plan(self._catalogue.running(name), self._catalogue.scope(name)) for name in self.patterns)
        sides = (side for plan in plans for one in plan.conditions for side in (one.left, one.right))
        return frozenset(side.attribute for side in sides if isinstance(side, ConditionSide))

    # patterns

    def define(self, subscription: Subscription) -> None:
        """Let other patterns refer to a subscription, without running it."""
        self._catalogue.define(subscription)

    def add(self, name: str, body: Composite | Profile, options: Options | None = None) -> None:
        """Run a pattern from now on."""
        if self._runs_already(name):
            raise BuildError(f"a pattern {name!r} is running already", hint="use replace, or another name")
        subscription = Subscription(name, body, options or _OPTIONS)
        made = self._shape_or_plan(subscription, self._catalogue.named)
        self._numbers += 1
        numbers = self._number_profiles(made)
        if isinstance(made, Plan):
            self._install(self._new_run(made, self._numbers))
        else:
            assert self._flat is not None
            self._flat.add(name, made, number=self._numbers, started=self._now)
        for number in numbers:
            self._book.remove(number)
        self._catalogue.run(subscription)

    def _number_profiles(self, made: Shape | Plan) -> Sequence[int]:
        """Profiles get their numbers in the order of the pattern, whichever path it takes: held until it has them."""
        return [self._book.add(leaf.profile, options=leaf.options) for leaf in made.leaves]

    def _runs_already(self, name: str) -> bool:
        return name in self._runs or (self._flat is not None and name in self._flat)

    def _shape_or_plan(self, subscription: Subscription, known: Mapping[str, Subscription]) -> Shape | Plan:
        """How a pattern runs: by its shape on the compiled path where it is plain, else by its plan."""
        if self._flat is None:
            return self._plan(subscription, known)
        shape = self._forms.known(subscription)
        if shape is not None:
            return shape
        plan = self._plan(subscription, known)
        return self._forms.learn(subscription, plan) or plan

    def _plan(self, subscription: Subscription, known: Mapping[str, Subscription]) -> Plan:
        """What a pattern means, or why it cannot work here."""
        plan = build_plan(subscription, known)
        if plan.approximate and self._relate is None:
            raise BuildError(
                f"pattern {subscription.name!r} compares members by meaning and there is no measure",
                hint="give the detector a measure, or compare with =",
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
        """Stop a pattern and forget what it holds."""
        if self._flat is not None and name in self._flat:
            self._flat.remove(name)
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
        """Change a pattern; the new one begins with nothing, and if it is refused the old one stays."""
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
            raise BuildError(f"no pattern {name!r} is running", hint=f"running: {running}") from None

    @property
    def patterns(self) -> tuple[str, ...]:
        """The names of the running patterns."""
        numbers = {name: run.number for name, run in self._runs.items()}
        if self._flat is not None:
            numbers |= {name: self._flat.number(name) for name in self._flat.names}
        return tuple(sorted(numbers, key=numbers.__getitem__))

    # hits

    def take(self, hits: Iterable[Hit]) -> list[Detection]:
        """Take hits, those of one event one after the other; gives what they, and the time that passed, completed."""
        arrived: list[Arrived] = []
        for event, found in by_event(hits):
            arrived += self._arrive(event, found)
        return self._take(arrived) + self._released()

    def take_columns(self, events: Sequence[Event], hits: HitColumns) -> list[Detection]:
        """As `take`, for a batch of events, of which some may hit nothing, and their hits in columns."""
        if self._intake.lateness:
            for event, found in hits.of_events(events):
                self._arrive(event, found)
            return self._released()
        if isinstance(events, EventColumns) and self._intake.all_good(events, self._timers.clock) is None:
            events = list(events)
        accepted, times = self._intake.accept_all(events, self._timers.clock)
        if len(accepted) < len(events):
            # Some were refused: the others keep their hits under their new places.
            places = {id(event): at for at, event in enumerate(accepted)}
            hits = hits.moved(np.array([places.get(id(event), -1) for event in events]))
        return self._take_batch(accepted, times, self._source(hits)) if len(accepted) else []

    def _source(self, hits: HitColumns) -> HitSource:
        return GivenHits(self._pool, self._columns, hits)

    def notice(self, instant: Instant) -> list[Detection]:
        """An event came and hit nothing: time goes on, and patterns that wait for their first event start."""
        return self._take(self._arrive(Event("", (), (), instant, instant), ())) + self._released()

    def _arrive(self, event: Event, hits: tuple[Hit, ...] | None) -> list[Arrived]:
        """What can be taken at once of an event that arrives: itself, unless it waits for late ones or is refused."""
        if self._intake.accept(event, self._timers.clock) is None:
            return []
        if not self._intake.lateness:
            return [(event, hits)]
        self._intake.hold(event, hits)
        return []

    def _released(self) -> list[Detection]:
        """What the latest event releases of those that wait for late ones."""
        seen = self._intake.seen
        if not self._intake.lateness or seen is None:
            return []
        return self._release(seen - self._intake.lateness, closed=False)

    def _take(self, arrived: Sequence[Arrived], times: NDArray[np.int64] | None = None) -> list[Detection]:
        """Events that are in order and accepted, with their hits."""
        if not arrived:
            return []
        source = self._source(HitColumns.of([hits or () for _, hits in arrived]))
        return self._take_batch([event for event, _ in arrived], times, source)

    # the way of a batch: hits at once, plain patterns compiled, the others event by event where something matches

    def _take_batch(
        self, events: Sequence[Event], times: NDArray[np.int64] | None, source: HitSource
    ) -> list[Detection]:
        """Ordered and accepted events through all patterns; the source says what they hit."""
        if times is None:
            times = np.fromiter((event.span[1] for event in events), np.int64, count=len(events))
        first = int(times[0])
        rung = self._ring(first - 1) if first - 1 > self._timers.clock else []
        self._start(first)
        base = self._ranks
        self._ranks += len(events)
        flat = self._flat
        if not flat:
            found = self._through_runs(events, times, base, source.answers(events, source.encode(events), None))
            return rung + self._finish(times, [row[2] for row in found])
        flat.tidy()
        encoded = source.encode(events)
        unfit = flat.unfit(encoded)
        if unfit:
            # What is due before these events is due on the path on which it waits.
            rung += flat.sweep(first, self._catalogue)
            for name in unfit:
                self._demote(flat, name)
            encoded = source.encode(events)
        scored = source.scored(events, encoded)
        hits = flat.hits(*scored[:3]) if flat.asks_matcher and scored is not None else None
        plain, places, numbers = flat.process(encoded, events, times, hits, base=base, catalogue=self._catalogue)
        if not self._runs:
            return self._finish(times, plain)
        found = [(-0.5, self._number_of(one), one) for one in rung]
        found += self._through_runs(events, times, base, source.answers(events, encoded, scored))
        found += zip(places.tolist(), numbers.tolist(), plain, strict=True)
        found.sort(key=_place)
        return self._finish(times, [row[2] for row in found])

    def _finish(self, times: NDArray[np.int64], found: list[Detection]) -> list[Detection]:
        last = int(times[-1])
        self._now = last if self._now is None else max(self._now, last)
        self._timers.clock = max(self._timers.clock, last - 1)
        return found

    def _through_runs(
        self,
        events: EventsByPlace,
        times: NDArray[np.int64],
        base: int,
        answers: Iterable[tuple[int, list[Answer]]],
    ) -> list[tuple[float, int, Detection]]:
        """Detections of the general path, with their place among the events and their pattern's number."""
        out: list[tuple[float, int, Detection]] = []
        timers, number, ends = self._timers, self._number_of, times.tolist()

        def ring(limit: Instant) -> None:
            if limit > timers.clock and (rung := self._ring(limit)):
                places = np.searchsorted(times, [found.time for found in rung], side="right")
                out.extend((place - 0.5, number(one), one) for place, one in zip(places.tolist(), rung, strict=True))

        with uncollected():
            matched = list(answers)
            if isinstance(events, EventColumns):
                events = events.some(np.fromiter((at for at, _ in matched), np.int64, count=len(matched)))
            for at, hits in matched:
                if not timers.idle(ends[at] - 1):
                    ring(ends[at] - 1)
                found = deliver(hits, events[at], base + at)
                if found:
                    out.extend((at, number(one), one) for one in found)
            ring(ends[-1] - 1)
        return out

    def _demote(self, flat: FlatPatterns, name: str) -> None:
        """Take a pattern from the compiled path to the general one, with all that it holds."""
        facts, kept, number = flat.facts(name), flat.kept(name), flat.number(name)
        # First there, then away from here: a profile that both want keeps its number.
        run_general(self, name, number=number, facts=facts, kept=kept, shape=flat.shape(name))
        flat.remove(name)

    # what came late, and the clock

    @property
    def lateness(self) -> int:
        """How much later than others an event may come."""
        return self._intake.lateness

    @property
    def max_jump(self) -> int | None:
        """How far ahead of the others an event's clock may be."""
        return self._intake.max_jump

    @property
    def late(self) -> int:
        """How many events came too late."""
        return self._intake.late

    @property
    def refused(self) -> list[Refused]:
        """Refused events with their reasons; empty where a callback takes them."""
        return self._intake.refused

    @property
    def due(self) -> Instant | None:
        """The next moment at which an event that waits for late ones, or a timer, is due; None if there is none.

        Once it has passed, `advance` gives what became known and frees what can no longer contribute.
        """
        moments = (self._intake.due, self._timers.due, None if self._flat is None else self._flat.due)
        return min((moment for moment in moments if moment is not None), default=None)

    def _release(self, watermark: Instant, *, closed: bool) -> list[Detection]:
        """Everything before the watermark (and at it, if closed), in order; then the timers up to there."""
        limit = watermark if closed else watermark - 1
        out = self._take(self._intake.ready(limit))
        if limit > self._timers.clock:
            out += self._in_order(self._sweep(limit) + self._ring(limit))
        return out

    def _in_order(self, found: list[Detection]) -> list[Detection]:
        """What both paths found up to a moment: by time, and patterns in their order."""
        return sorted(found, key=lambda one: (one.time, self._number_of(one))) if len(found) > 1 else found

    def _start(self, moment: Instant) -> None:
        if self._flat is not None and self._now is None:
            self._flat.start(moment)
        self._now = moment if self._now is None else max(self._now, moment)
        if self._unstarted:
            for run in self._unstarted:
                run.start(moment)
            self._unstarted = []

    def _ring(self, limit: Instant) -> list[Detection]:
        """All timers and terminators up to a moment, in order."""
        out: list[Detection] = []
        while (due := self._timers.next(limit)) is not None:
            time, phase, run, items = due
            run.begin_step(time, phase)
            for process, item in items:
                if phase == TERMINATORS:
                    process.expire(item)
                else:
                    process.ring(item)
            if not run.idle:
                out += [Detection.of(run.plan, instance) for instance in run.end_step()]
        self._timers.clock = max(limit, self._timers.clock)
        return out

    def advance(self, instant: Instant) -> list[Detection]:
        """Say that all up to and including `instant` has come; timers ring up to there."""
        if instant <= self._timers.clock:
            return []
        out = self._release(instant, closed=True)
        seen = self._intake.seen
        self._intake.seen = instant if seen is None else max(seen, instant)
        if self._now is None or self._unstarted:
            self._start(instant)
            out += self._ring(instant)
        self._now = instant if self._now is None else max(self._now, instant)
        self._timers.clock = max(instant, self._timers.clock)
        return out

    def release(self, instant: Instant) -> list[Detection]:
        """Take what is buffered up to and including `instant`, at which more may come; timers there do not ring yet.

        >>> from likewise.language import parse
        >>> composer = Composer(parse("any: 1st {a = 1}"), lateness=60_000_000)
        >>> composer.take([Hit(Event("1", (("a", 1),), (), 5, 5), 0)])
        []
        >>> [found.pattern for found in composer.release(5)]
        ['any']
        """
        return self._take(self._intake.ready(instant))

    def flush(self) -> list[Detection]:
        """Take all that is still buffered, and ring timers up to the latest event."""
        return [] if self._intake.seen is None else self.advance(self._intake.seen)

    # what it holds

    def state(self) -> list[PatternState]:
        """What each pattern holds, and how far its instances came."""
        self._sweep(self._timers.clock)
        return [self._state_of(name) for name in self.patterns]

    def _sweep(self, limit: Instant) -> list[Detection]:
        """The timers of the compiled path up to a moment: all that comes after it is later."""
        return self._flat.sweep(limit + 1, self._catalogue) if self._flat else []

    def _state_of(self, name: str) -> PatternState:
        if self._flat is not None and name in self._flat:
            return flat_state(self._flat, name)
        return run_state(self._runs[name])

    def _number_of(self, found: Detection) -> int:
        if self._flat is not None and found.pattern in self._flat:
            return self._flat.number(found.pattern)
        return self._runs[found.pattern].number

    def snapshot(self) -> bytes:
        """All state, with the patterns, as bytes of a versioned format."""
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
        """One that goes on where the snapshot was taken; other options are those of a detector."""
        from likewise.composite.snapshot import read

        return read(cls, data, measure=measure, compiled=compiled, refuse=refuse, **options)


def _place(row: tuple[float, int, Detection]) -> tuple[float, Instant, int]:
    """Timers ring in order of time before the event that comes next; then patterns stand in their order."""
    place, number, found = row
    return place, found.time, number
