"""Now: the stream as it comes, what it means to whom, how much there is, and what is unusual."""

from __future__ import annotations

import time
from typing import Any, Final

from nicegui import ui

from likewise.broker.page.city import CityFeed
from likewise.broker.page.frame import TextElement, button, card, heading, on_value, saying, tag, tell, text
from likewise.broker.page.labels import judge
from likewise.broker.page.phrases import ago, many, pairs_of, percent, rate, score_word
from likewise.broker.page.session import Visitor
from likewise.broker.page.watch import StreamWatch
from likewise.broker.page.work import beside

_TICK: Final = 0.8
_ROWS: Final = 60


class StreamList(ui.element, component="../static/feed.js"):
    """The list of events or of matches."""

    def __init__(self, *, label: str, kind: str, empty: str) -> None:
        super().__init__()
        self._props |= {"label": label, "kind": kind, "empty": empty, "most": _ROWS}

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Put new rows on top."""
        if rows:
            self.run_method("add", rows)

    def put(self, rows: list[dict[str, Any]]) -> None:
        """Show these rows only."""
        self.run_method("put", rows)


class NowView:
    """The view of one browser."""

    def __init__(self, visitor: Visitor, watch: StreamWatch, feed: CityFeed) -> None:
        self._visitor, self._watch, self._feed = visitor, watch, feed
        self._words, self._paused = "", False
        self._event = self._notice = 0
        self._busy = False

    def build(self) -> None:
        """Make all parts."""
        heading("Now", "What is being said, and what it means to whom. A list holds still while you point at it.")
        self._start = tag("div", "card")
        with self._start, tag("div", "empty"):
            text("Nothing has happened yet", tag="h2")
            text(
                "Publish an event from a terminal, or let the demo play a day in a city: three makers of sensors, "
                "one of them German, and a citizen who asks in words of her own.",
                "hint",
                tag="p",
            )
            text("likewise publish type='car park' slots=3", "mono", tag="p")
            if self._visitor.may("publish"):
                button("Start the demo feed", self._play)
        self._facts()
        with tag("div", "row between") as bar:
            with tag("label", "field"):
                text("Only with these words", tag="span")
                box = tag("input", "box", 'type="search" placeholder="such as parking" style="min-width: 15rem"')
                on_value(box, "input", self._filter, pause=0.3)
            with tag("div", "row"):
                self._state = text("", "hint small", tag="span")
                self._state.props('role="status"')
                if self._visitor.may("publish"):
                    self._demo = button("Stop the demo feed", self._end, "act second")
                self._pause = button("Pause", self._toggle, "act second")
        bar.style("margin-bottom: .75rem")
        with tag("div", "two"):
            with tag("div", "card"):
                text("Events", tag="h2")
                self._events = StreamList(label="Events", kind="event", empty="Events appear here as they come.")
            with tag("div", "card"):
                text("Matches and situations", tag="h2")
                empty = "Nothing matches yet. Write a subscription in the playground."
                self._matches = StreamList(label="Matches and situations", kind="match", empty=empty)
                self._matches.on("judge", self._judge)
        with card("Unusual"):
            self._odd = tag("div")
        self._shown_oddities: list[str] | None = None

    def _facts(self) -> None:
        with tag("div", "facts"):
            self._rate, self._rate_shape = _fact("Events")
            self._found, self._found_shape = _fact("Matches")
            self._unusual, _ = _fact("Unusual", shape=False)

    async def refresh(self) -> None:
        """Show what came since the last time."""
        if self._busy:
            return
        self._busy = True
        try:
            with saying():
                self._visitor.access()
                await self._refresh()
        finally:
            self._busy = False

    async def _refresh(self) -> None:
        watch, moment = self._watch, time.time()
        if not self._paused:
            events = watch.last_events(after=self._event, limit=_ROWS, words=self._words)
            found = watch.last_notices(after=self._notice, limit=_ROWS, words=self._words)
            told = await self._told(found)
            self._event = max([self._event, *(row["key"] for row in events)])
            self._notice = max([self._notice, *(row["key"] for row in found)])
            self._events.add([_plain(row) for row in events])
            self._matches.add(told)
        self._show_facts(moment)

    async def _told(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        judging = self._visitor.may("subscribe")
        told = await beside(self._watch.told, rows)
        return [match_row(row) | {"judge": judging and row["kind"] == "match"} for row in told]

    def _mark(self) -> None:
        """All up to here has been looked at."""
        if self._watch.events:
            self._event = self._watch.events[-1]["key"]
        if self._watch.notices:
            self._notice = self._watch.notices[-1]["key"]

    def _show_facts(self, moment: float) -> None:
        watch = self._watch
        watch.odd.tick(moment)
        events, found = watch.event_rate.last_minute(moment), watch.notice_rate.last_minute(moment)
        self._rate.say(rate(events, 60) if events else "quiet")
        self._found.say(rate(found, 60) if found else "none lately")
        self._unusual.say(watch.odd.summary())
        for shape, tally in ((self._rate_shape, watch.event_rate), (self._found_shape, watch.notice_rate)):
            counts = tally.shape(moment)
            most = max(counts) or 1
            shape.run_method("draw", [round(100 * one / most) for one in counts])
        self._start.set_visibility(not watch.events and not self._feed.is_running(watch.namespace))
        if self._visitor.may("publish"):
            self._demo.set_visibility(self._feed.is_running(watch.namespace))
        missed = sum(1 for row in watch.events if row["key"] > self._event) if self._paused else 0
        self._state.say(f"Paused, {many(missed, 'new event')}" if self._paused else "")
        self._show_oddities()

    def _show_oddities(self) -> None:
        news = list(self._watch.odd.news)
        if [one.text for one in news] == self._shown_oddities:
            return
        self._shown_oddities = [one.text for one in news]
        self._odd.clear()
        with self._odd:
            if not news:
                text("Nothing. What comes much oftener than usual, stops, or is far off is said here.", "hint", tag="p")
            for one in news:
                with tag("div", "odd"):
                    text(one.text, tag="span")
                    text(f" · {ago(time.time() - one.time)}", "hint small", tag="span")

    # what a person does

    async def _filter(self, words: str) -> None:
        self._words = words[:200]
        await self._reload()

    async def _reload(self) -> None:
        self._mark()
        self._events.put([_plain(row) for row in self._watch.last_events(limit=_ROWS, words=self._words)])
        self._matches.put(await self._told(self._watch.last_notices(limit=_ROWS, words=self._words)))

    async def _toggle(self) -> None:
        self._paused = not self._paused
        self._pause.say("Go on" if self._paused else "Pause")
        if not self._paused:
            await self._reload()

    def _play(self) -> None:
        access = self._visitor.access("publish")
        self._feed.start(access.namespace)
        tell("The demo plays a day in a city.")

    def _end(self) -> None:
        self._feed.stop(self._visitor.access("publish").namespace)

    async def _judge(self, event: Any) -> None:
        with saying():
            access = self._visitor.access()
            await judge(self._visitor.broker, access, int(event.args["key"]), right=bool(event.args["right"]))
            tell("Thank you: kept as a label." if event.args["right"] else "Kept: this was wrong.")


class RateShape(ui.element, component="../static/spark.js"):
    """A small picture of the last five minutes."""


def _fact(what: str, *, shape: bool = True) -> tuple[TextElement, ui.element]:
    with tag("div", "fact"):
        text(what, "what")
        big = text("…", "big")
        drawn = RateShape() if shape else tag("span")
    return big, drawn


def match_row(row: dict[str, Any]) -> dict[str, Any]:
    """A notification as the list shows it."""
    return {
        "key": str(row["key"]),
        "name": row["name"],
        "score": row["score"],
        "word": score_word(row["score"]),
        "percent": percent(row["score"]),
        "when": row["when"],
        "verdict": row["verdict"],
        "pairs": pairs_of(row["events"][-1]) if row["kind"] == "match" and row["events"] else [],
    }


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("key", "id", "when", "pairs")}


def now_view(visitor: Visitor, watch: StreamWatch, feed: CityFeed) -> None:
    """Build the view and keep it up to date."""
    view = NowView(visitor, watch, feed)
    view.build()
    ui.timer(_TICK, view.refresh, immediate=True)
