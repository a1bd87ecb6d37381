"""Why: one match as a waterfall of evidence, near misses and why not, and for patterns a timeline."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

import msgspec

from likewise.broker.page.frame import button, empty, heading, link, saying, score, tag, tell, text
from likewise.broker.page.labels import judge, judge_event
from likewise.broker.page.phrases import clock, many, percent, plainly, score_word, sentence
from likewise.broker.page.session import Visitor
from likewise.broker.page.views.evidence import predicates, timeline
from likewise.broker.page.watch import StreamWatch
from likewise.broker.store.history import HistoryQuery
from likewise.broker.store.records import Notice
from likewise.errors import LikewiseError
from likewise.events import Event, decode_line, to_datetime
from likewise.language import Composite, parse_subscription

_MOST: Final = 60
"""Subscriptions that one event is compared with."""
_HOUR: Final = 60.0


class WhyView:
    """The view of one browser; what it shows is in its address."""

    def __init__(self, visitor: Visitor, watch: StreamWatch) -> None:
        self._visitor, self._watch = visitor, watch
        self._broker, self._access = visitor.broker, visitor.access()

    @property
    def _namespace(self) -> str:
        return self._access.namespace

    async def show(self, state: dict[str, str]) -> None:
        """What the address asks for."""
        name, event, cursor = (state.get(key, "")[:300] for key in ("subscription", "event", "id"))
        heading(
            "Why",
            "Every match has its reasons, and so has every miss. Bars to the right speak for it, to the left against.",
        )
        if cursor.isdigit() and len(cursor) < 19:
            await self._notification(int(cursor))
        elif event and name:
            await self._pair(event, name)
        elif event:
            await self._event(event)
        elif name:
            await self._subscription(name)
        else:
            self._choice()

    # one notification

    async def _notification(self, cursor: int) -> None:
        notice = await self._broker.read(self._broker.history.notice, self._namespace, cursor)
        told = await self._broker.read(self._broker.insight.explain, self._namespace, cursor)
        events = _events(notice)
        self._head(told, events[-1] if len(events) == 1 else None, kind=notice.kind)
        if notice.kind == "match":
            self._thumbs(lambda right: judge(self._broker, self._access, cursor, right=right))
            predicates(told["steps"])
        else:
            words = {event.id: sentence(event) for event in events}
            with tag("div", "card"):
                text("What came when", tag="h2")
                timeline(told["steps"], words)
        self._onward(notice.subscription, events[-1].id if events else "")

    def _head(self, told: dict[str, Any], event: Event | None, *, kind: str = "match") -> None:
        verb = "was detected" if kind == "detection" else "matches" if told["matched"] else "does not match"
        with tag("div", "card"):
            with tag("div", "row"):
                text(f"{told['subscription']} {verb}", tag="h2").style("margin: 0")
                score(float(told["score"]), matched=bool(told["matched"]))
                text(percent(float(told["score"])), "small hint", tag="span")
            if kind == "match":
                text(_verdict(told), tag="p").style("margin-top: .4rem")
            if event is not None:
                text(f"The event: {sentence(event)}", "hint small", tag="p")

    def _thumbs(self, keep: Any) -> None:
        async def said(right: bool) -> None:
            await keep(right)
            tell("Thank you: kept as a label.")

        with tag("div", "row").style("margin-bottom: 1rem"):
            text("Is this right?", "hint", tag="span")
            button("Yes", lambda: said(True), "act second")
            button("No", lambda: said(False), "act second")

    def _onward(self, name: str, event: str) -> None:
        with tag("div", "row"):
            link(f"What {name} narrowly missed", f"/why?subscription={quote(name)}", "act second")
            if event:
                link("What else this event means", f"/why?event={quote(event)}", "act second")

    # one event and one subscription

    async def _pair(self, id: str, name: str) -> None:
        told = await self._broker.read(self._broker.insight.why, self._namespace, id, name)
        record = await self._broker.read(self._broker.history.event, self._namespace, id)
        event = record.to_event()
        self._head(told, event)
        self._thumbs(lambda right: judge_event(self._broker, self._access, name, event, right=right))
        failing = str(told["why_not"] or "").split(" reaches ")[0]
        predicates(told["steps"], failing=failing)
        self._onward(name, id)

    # one event beside all subscriptions

    async def _event(self, id: str) -> None:
        record = await self._broker.read(self._broker.history.event, self._namespace, id)
        event = record.to_event()
        with tag("div", "card"):
            text(sentence(event), tag="h2")
            text(f"came at {clock(record.received)}", "hint small", tag="p")
        found = await self._broker.read(self._beside_all, id)
        if not found:
            empty(
                "Nobody asks for anything yet",
                "Write a subscription in the playground, and see who this event answers.",
            )
            return
        with tag("div", "card"):
            text("What it means to each subscription, likeliest first", tag="h2")
            for told in found:
                with tag("div", "result" if told["matched"] else "result below"):
                    with tag("div", "row"):
                        target = f"/why?event={quote(id)}&subscription={quote(told['subscription'])}"
                        link(told["subscription"], target, "match-name")
                        score(float(told["score"]), matched=bool(told["matched"]))
                    text(_verdict(told), "verdict")

    def _beside_all(self, id: str) -> list[dict[str, Any]]:
        names = [entry.name for _, entry in self._broker.history.entries(self._namespace, limit=_MOST)]
        out = []
        for name in names:
            try:
                out.append(self._broker.insight.why(self._namespace, id, name))
            except LikewiseError:
                continue  # deleted meanwhile, or a pattern of nothing but others
        return sorted(out, key=lambda told: (-bool(told["matched"]), -told["score"]))

    # one subscription: near misses, or how far a pattern came

    async def _subscription(self, name: str) -> None:
        entry = await self._broker.read(self._broker.history.entry, self._namespace, name)
        with tag("div", "card"):
            text(name, tag="h2")
            text(entry.text, "mono", tag="p")
            link("Work on it in the playground", f"/playground?q={quote(entry.text)}", "quiet")
        if isinstance(parse_subscription(entry.text).body, Composite):
            await self._pattern(name)
            return
        found = await self._broker.read(
            lambda: self._broker.insight.trial(self._namespace, entry.text, minutes=_HOUR, limit=12)
        )
        with tag("div", "card"):
            text("Narrowly missed in the last hour", tag="h2")
            text(f"{many(found.events, 'event')}, {many(found.found, 'match', 'matches')}", "hint", tag="p")
            if not found.near_misses:
                text("Nothing came near without matching.", "hint", tag="p")
            for miss in found.near_misses:
                self._miss(name, miss)

    def _miss(self, name: str, miss: dict[str, Any]) -> None:
        event = decode_line(bytes(miss["events"][0]))
        with tag("div", "result"):
            with tag("div", "row"):
                score(float(miss["score"]), matched=False)
                target = f"/why?event={quote(event.id)}&subscription={quote(name)}"
                link(sentence(event), target, "match-name")
            why = next((line for line in miss["explanation"].splitlines() if "why not:" in line), "")
            text(plainly(_without_numbers(why.strip().removeprefix("why not: "))), "verdict")

    async def _pattern(self, name: str) -> None:
        state = await self._broker.read(self._state, name)
        with tag("div", "card"):
            text("How far it came", tag="h2")
            if state is None:
                text("It is paused.", "hint", tag="p")
            else:
                held = many(state.held, "partial combination")
                text(f"Detected {many(state.detected, 'time')}; holds {held} now.", tag="p")
                for reason, count in list(state.stops.items())[:6]:
                    text(f"{many(count, 'time')} it ended {reason}", "hint", tag="p")
                if state.partial:
                    text("The one that came furthest without being whole:", tag="p")
                    timeline([_dated(line) for line in state.partial], {})
        query = HistoryQuery(before=0, limit=20, subscriptions=(name,))
        notices = await self._broker.read(self._broker.history.notices, self._namespace, query)
        with tag("div", "card"):
            text("When it was detected", tag="h2")
            if not notices:
                text("Not yet.", "hint", tag="p")
            for notice in notices:
                with tag("div", "result row"):
                    link(clock(notice.time), f"/why?id={notice.cursor}", "match-name")
                    score(notice.score)
                    text("; ".join(sentence(event) for event in _events(notice)[:3]), "small hint")

    def _state(self, name: str) -> Any:
        host = self._broker.host
        with host.lock:
            tenant = host.tenant(self._namespace)
            if not tenant.engine.has_patterns:
                return None
            return next((one for one in tenant.engine.detector.state() if one.name == name), None)

    # nothing chosen yet

    def _choice(self) -> None:
        rows = self._watch.last_notices(limit=25)
        if not rows:
            empty(
                "No match yet",
                "When something matches, its reasons are here. Start the demo feed on Now, or publish something.",
            )
            return
        with tag("div", "card"):
            text("The last matches: choose one", tag="h2")
            for row in rows:
                with tag("div", "result row"):
                    link(row["name"], f"/why?id={row['key']}", "match-name")
                    score(row["score"])
                    text(row["when"], "when", tag="span")
                    text("; ".join(sentence(event) for event in row["events"][:2]), "small hint", tag="span")
        with tag("div", "card"):
            text("Or ask why something did not match", tag="h2")
            names = sorted({str(row["name"]) for row in rows} | set(self._book()))
            for name in names:
                link(name, f"/why?subscription={quote(name)}", "chip")

    def _book(self) -> list[str]:
        return list(self._broker.host.tenant(self._namespace).book)


def _events(notice: Notice) -> list[Event]:
    body = msgspec.json.decode(notice.body)
    return [decode_line(msgspec.json.encode(one)) for one in body["events"]]


def _verdict(told: dict[str, Any]) -> str:
    """The first line of an explanation, without its numbers."""
    first = str(told["text"]).splitlines()[0]
    parts = first.split(" · ")
    return plainly(" · ".join(parts[1:-1])) if len(parts) > 2 else first


def _without_numbers(words: str) -> str:
    """`x reaches 0.412, 0.55 would have been enough` with the words of the scale."""
    import re

    def said(found: re.Match[str]) -> str:
        value = float(found[0])
        return f"{score_word(value)} ({percent(value)})"

    return re.sub(r"(?<![\w.])[01]\.\d+(?![\w.])", said, words)


def _dated(line: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(line)
    return plain | {
        key: to_datetime(plain[key])
        for key in ("time", "start", "activated", "terminated")
        if plain.get(key) is not None
    }


async def why_view(visitor: Visitor, watch: StreamWatch, state: dict[str, str]) -> None:
    """Build the view."""
    view = WhyView(visitor, watch)
    with saying():
        try:
            await view.show(state)
        except LikewiseError as error:
            empty(error.message, error.hint or "It may be older than what the log keeps.")


__all__ = ["WhyView", "why_view"]
