"""Now: live events and matches, their rates, and unusual observations."""

from __future__ import annotations

import time
from typing import Any, Final

from nicegui import ui

from likewise.broker.page.city import CityFeed
from likewise.broker.page.frame import TextElement, button, card, errors_shown, heading, notify, on_value, tag, text
from likewise.broker.page.labels import judge
from likewise.broker.page.phrases import ago, counted, pairs_of, percent, rate, score_word
from likewise.broker.page.pool import run_in_pool
from likewise.broker.page.session import Visitor
from likewise.broker.page.watch import StreamWatch

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
        """Create all parts of the view."""
        heading("Now", "Live events and the subscriptions they match. A list stops scrolling while you point at it.")
        self._start = tag("div", "card")
        with self._start, tag("div", "empty"):
            text("No events yet", tag="h2")
            text(
                "Publish an event from a terminal, or start the demo feed: city events from three sensor makers, each "
                "with its own vocabulary, one of them German, and subscriptions in a fourth vocabulary.",
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
                box = tag("input", "box", 'type="search" placeholder="for example parking" style="min-width: 15rem"')
                on_value(box, "input", self._filter, pause=0.3)
            with tag("div", "row"):
                self._status = text("", "hint small", tag="span")
                self._status.props('role="status"')
                if self._visitor.may("publish"):
                    self._demo = button("Stop the demo feed", self._end, "act second")
                self._pause = button("Pause", self._toggle, "act second")
        bar.style("margin-bottom: .75rem")
        with tag("div", "two"):
            with tag("div", "card"):
                text("Events", tag="h2")
                self._events = StreamList(label="Events", kind="event", empty="New events appear here.")
            with tag("div", "card"):
                text("Matches and situations", tag="h2")
                empty = "No matches yet. Write a subscription in the playground."
                self._matches = StreamList(label="Matches and situations", kind="match", empty=empty)
                self._matches.on("judge", self._judge)
        with card("Unusual"):
            self._anomalies = tag("div")
        self._shown_anomalies: list[str] | None = None

    def _facts(self) -> None:
        with tag("div", "facts"):
            self._event_rate, self._event_chart = _fact("Events")
            self._match_rate, self._match_chart = _fact("Matches")
            self._unusual, _ = _fact("Unusual", chart=False)

    async def refresh(self) -> None:
        """Show everything new since the last refresh."""
        if self._busy:
            return
        self._busy = True
        try:
            with errors_shown():
                self._visitor.access()
                await self._refresh()
        finally:
            self._busy = False

    async def _refresh(self) -> None:
        watch, moment = self._watch, time.time()
        if not self._paused:
            events = watch.last_events(after=self._event, limit=_ROWS, words=self._words)
            notices = watch.last_notices(after=self._notice, limit=_ROWS, words=self._words)
            matches = await self._match_rows(notices)
            self._event = max([self._event, *(row["key"] for row in events)])
            self._notice = max([self._notice, *(row["key"] for row in notices)])
            self._events.add([_event_row(row) for row in events])
            self._matches.add(matches)
        self._show_facts(moment)

    async def _match_rows(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        may_rate = self._visitor.may("subscribe")
        explained = await run_in_pool(self._watch.with_reasons, rows)
        return [match_row(row) | {"judge": may_rate and row["kind"] == "match"} for row in explained]

    def _skip_to_latest(self) -> None:
        """Skip everything up to now in the next refresh."""
        if self._watch.events:
            self._event = self._watch.events[-1]["key"]
        if self._watch.notices:
            self._notice = self._watch.notices[-1]["key"]

    def _show_facts(self, moment: float) -> None:
        watch = self._watch
        watch.anomalies.tick(moment)
        events, matches = watch.event_rate.last_minute(moment), watch.notice_rate.last_minute(moment)
        self._event_rate.set_text(rate(events, 60) if events else "none in the last minute")
        self._match_rate.set_text(rate(matches, 60) if matches else "none in the last minute")
        self._unusual.set_text(watch.anomalies.summary())
        for chart, counter in ((self._event_chart, watch.event_rate), (self._match_chart, watch.notice_rate)):
            counts = counter.counts(moment)
            most = max(counts) or 1
            chart.run_method("draw", [round(100 * count / most) for count in counts])
        self._start.set_visibility(not watch.events and not self._feed.is_running(watch.namespace))
        if self._visitor.may("publish"):
            self._demo.set_visibility(self._feed.is_running(watch.namespace))
        missed = sum(1 for row in watch.events if row["key"] > self._event) if self._paused else 0
        self._status.set_text(f"Paused, {counted(missed, 'new event')}" if self._paused else "")
        self._show_anomalies()

    def _show_anomalies(self) -> None:
        anomalies = list(self._watch.anomalies.recent)
        texts = [anomaly.text for anomaly in anomalies]
        if texts == self._shown_anomalies:
            return
        self._shown_anomalies = texts
        self._anomalies.clear()
        with self._anomalies:
            if not anomalies:
                message = "Nothing. New or much more frequent events, events that stop, and outliers are listed here."
                text(message, "hint", tag="p")
            for anomaly in anomalies:
                with tag("div", "odd"):
                    text(anomaly.text, tag="span")
                    text(f" · {ago(time.time() - anomaly.time)}", "hint small", tag="span")

    # user actions

    async def _filter(self, words: str) -> None:
        self._words = words[:200]
        await self._reload()

    async def _reload(self) -> None:
        self._skip_to_latest()
        self._events.put([_event_row(row) for row in self._watch.last_events(limit=_ROWS, words=self._words)])
        self._matches.put(await self._match_rows(self._watch.last_notices(limit=_ROWS, words=self._words)))

    async def _toggle(self) -> None:
        self._paused = not self._paused
        self._pause.set_text("Continue" if self._paused else "Pause")
        if not self._paused:
            await self._reload()

    def _play(self) -> None:
        access = self._visitor.access("publish")
        self._feed.start(access.namespace)
        notify("The demo feed is running.")

    def _end(self) -> None:
        self._feed.stop(self._visitor.access("publish").namespace)

    async def _judge(self, event: Any) -> None:
        with errors_shown():
            access = self._visitor.access()
            await judge(self._visitor.broker, access, int(event.args["key"]), right=bool(event.args["right"]))
            notify("Saved as a label: right." if event.args["right"] else "Saved as a label: wrong.")


class RateChart(ui.element, component="../static/spark.js"):
    """A small bar chart of the last five minutes."""


def _fact(name: str, *, chart: bool = True) -> tuple[TextElement, ui.element]:
    with tag("div", "fact"):
        text(name, "what")
        value = text("…", "big")
        drawing = RateChart() if chart else tag("span")
    return value, drawing


def match_row(row: dict[str, Any]) -> dict[str, Any]:
    """A notification as the list shows it."""
    return {
        "key": str(row["key"]),
        "name": row["name"],
        "score": row["score"],
        "word": score_word(row["score"]),
        "percent": percent(row["score"]),
        "when": row["when"],
        "reason": row["reason"],
        "pairs": pairs_of(row["events"][-1]) if row["kind"] == "match" and row["events"] else [],
    }


def _event_row(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("key", "id", "when", "pairs")}


def now_view(visitor: Visitor, watch: StreamWatch, feed: CityFeed) -> None:
    """Build the view and keep it up to date."""
    view = NowView(visitor, watch, feed)
    view.build()
    ui.timer(_TICK, view.refresh, immediate=True)
