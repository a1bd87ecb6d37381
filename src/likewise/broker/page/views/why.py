"""Why: explain matches, misses and near misses with charts of evidence, and patterns with a timeline."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

import msgspec

from likewise.broker.page.frame import button, errors_shown, heading, link, notify, placeholder, score, tag, text
from likewise.broker.page.labels import judge, judge_event
from likewise.broker.page.phrases import counted, event_line, percent, plain_reason, time_of_day
from likewise.broker.page.session import Visitor
from likewise.broker.page.views.evidence import predicates, timeline
from likewise.broker.page.watch import StreamWatch
from likewise.broker.store.history import HistoryQuery
from likewise.broker.store.records import Notice
from likewise.errors import LikewiseError
from likewise.events import Event, decode_line, to_datetime
from likewise.language import Composite, parse_subscription

_MOST: Final = 60
"""Maximum number of subscriptions that one event is compared with."""
_HOUR: Final = 60.0
"""Minutes."""


class WhyView:
    """The view of one browser; its URL decides what it shows."""

    def __init__(self, visitor: Visitor, watch: StreamWatch) -> None:
        self._visitor, self._watch = visitor, watch
        self._broker, self._access = visitor.broker, visitor.access()

    @property
    def _namespace(self) -> str:
        return self._access.namespace

    async def show(self, state: dict[str, str]) -> None:
        """Show the notification, event or subscription of the URL."""
        name, event, cursor = (state.get(key, "")[:300] for key in ("subscription", "event", "id"))
        heading(
            "Why",
            "Why an event matches a subscription, or why not. Bars to the right are evidence for a match, bars to the "
            "left evidence against it.",
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
        explanation = await self._broker.read(self._broker.insight.explain, self._namespace, cursor)
        events = _events(notice)
        self._head(explanation, events[-1] if len(events) == 1 else None, kind=notice.kind)
        if notice.kind == "match":
            self._rating(lambda right: judge(self._broker, self._access, cursor, right=right))
            predicates(explanation["steps"])
        else:
            words = {event.id: event_line(event) for event in events}
            with tag("div", "card"):
                text("Timeline", tag="h2")
                timeline(explanation["steps"], words)
        self._links(notice.subscription, events[-1].id if events else "", kind=notice.kind)

    def _head(self, explanation: dict[str, Any], event: Event | None, *, kind: str = "match") -> None:
        verb = "was detected" if kind == "detection" else "matches" if explanation["matched"] else "does not match"
        with tag("div", "card"):
            with tag("div", "row"):
                text(f"{explanation['subscription']} {verb}", tag="h2").style("margin: 0")
                score(float(explanation["score"]), matched=bool(explanation["matched"]))
                text(percent(float(explanation["score"])), "small hint", tag="span")
            if kind == "match":
                text(reason_line(explanation), tag="p").style("margin-top: .4rem")
            if event is not None:
                text(f"Event: {event_line(event)}", "hint small", tag="p")

    def _rating(self, store: Any) -> None:
        async def rate(right: bool) -> None:
            await store(right)
            notify("Saved as a label.")

        with tag("div", "row").style("margin-bottom: 1rem"):
            text("Should this event match?", "hint", tag="span")
            button("Yes", lambda: rate(True), "act second")
            button("No", lambda: rate(False), "act second")

    def _links(self, name: str, event: str, *, kind: str = "match") -> None:
        with tag("div", "row"):
            about = "Progress" if kind == "detection" else "Near misses"
            link(f"{about} of {name}", f"/why?subscription={quote(name)}", "act second")
            if event:
                link("Compare with all subscriptions", f"/why?event={quote(event)}", "act second")

    # one event and one subscription

    async def _pair(self, id: str, name: str) -> None:
        explanation = await self._broker.read(self._broker.insight.why, self._namespace, id, name)
        record = await self._broker.read(self._broker.history.event, self._namespace, id)
        event = record.to_event()
        self._head(explanation, event)
        self._rating(lambda right: judge_event(self._broker, self._access, name, event, right=right))
        predicates(explanation["steps"], why_not=explanation["why_not"] or "")
        self._links(name, id)

    # one event and all subscriptions

    async def _event(self, id: str) -> None:
        record = await self._broker.read(self._broker.history.event, self._namespace, id)
        event = record.to_event()
        with tag("div", "card"):
            text(event_line(event), tag="h2")
            text(f"arrived at {time_of_day(record.received)}", "hint small", tag="p")
        explanations = await self._broker.read(self._explain_all, id)
        if not explanations:
            placeholder(
                "No subscriptions yet",
                "Write a subscription in the playground to see whether this event matches it.",
            )
            return
        with tag("div", "card"):
            text("All subscriptions, the best match first", tag="h2")
            for explanation in explanations:
                with tag("div", "result" if explanation["matched"] else "result below"):
                    with tag("div", "row"):
                        target = f"/why?event={quote(id)}&subscription={quote(explanation['subscription'])}"
                        link(explanation["subscription"], target, "match-name")
                        score(float(explanation["score"]), matched=bool(explanation["matched"]))
                    text(reason_line(explanation), "reason")

    def _explain_all(self, id: str) -> list[dict[str, Any]]:
        names = [entry.name for _, entry in self._broker.history.entries(self._namespace, limit=_MOST)]
        explanations = []
        for name in names:
            try:
                explanations.append(self._broker.insight.why(self._namespace, id, name))
            except LikewiseError:
                continue  # deleted meanwhile, or a pattern without members of its own
        return sorted(explanations, key=lambda explanation: (-bool(explanation["matched"]), -explanation["score"]))

    # one subscription: near misses, or the progress of a pattern

    async def _subscription(self, name: str) -> None:
        entry = await self._broker.read(self._broker.history.entry, self._namespace, name)
        with tag("div", "card"):
            text(name, tag="h2")
            text(entry.text, "mono", tag="p")
            link("Edit it in the playground", f"/playground?q={quote(entry.text)}", "quiet")
        if isinstance(parse_subscription(entry.text).body, Composite):
            await self._pattern(name)
            return
        trial = await self._broker.read(
            lambda: self._broker.insight.trial(self._namespace, entry.text, minutes=_HOUR, limit=12)
        )
        with tag("div", "card"):
            text("Near misses in the last hour", tag="h2")
            text(f"{counted(trial.events, 'event')}, {counted(trial.found, 'match', 'matches')}", "hint", tag="p")
            if not trial.near_misses:
                text("There were no near misses.", "hint", tag="p")
            for miss in trial.near_misses:
                self._miss(name, miss)

    def _miss(self, name: str, miss: dict[str, Any]) -> None:
        event = decode_line(bytes(miss["events"][0]))
        with tag("div", "result"):
            with tag("div", "row"):
                score(float(miss["score"]), matched=False)
                target = f"/why?event={quote(event.id)}&subscription={quote(name)}"
                link(event_line(event), target, "match-name")
            why = next((line for line in miss["explanation"].splitlines() if "why not:" in line), "")
            text(plain_reason(why.strip().removeprefix("why not: ")), "reason")

    async def _pattern(self, name: str) -> None:
        state = await self._broker.read(self._state, name)
        with tag("div", "card"):
            text("Progress", tag="h2")
            if state is None:
                text("The pattern is paused.", "hint", tag="p")
            else:
                held = counted(state.held, "partial instance")
                text(f"Detected {counted(state.detected, 'time')}; {held} at the moment.", tag="p")
                for reason, count in list(state.stops.items())[:6]:
                    text(f"{counted(count, 'time')} it ended {reason}", "hint", tag="p")
                if state.partial:
                    text("The most complete partial instance:", tag="p")
                    timeline([_with_times(line) for line in state.partial], {})
        query = HistoryQuery(before=0, limit=20, subscriptions=(name,))
        notices = await self._broker.read(self._broker.history.notices, self._namespace, query)
        with tag("div", "card"):
            text("Latest detections", tag="h2")
            if not notices:
                text("None yet.", "hint", tag="p")
            for notice in notices:
                with tag("div", "result row"):
                    link(time_of_day(notice.time), f"/why?id={notice.cursor}", "match-name")
                    score(notice.score)
                    text("; ".join(event_line(event) for event in _events(notice)[:3]), "small hint")

    def _state(self, name: str) -> Any:
        host = self._broker.host
        with host.lock:
            tenant = host.tenant(self._namespace)
            if not tenant.engine.has_patterns:
                return None
            return next((state for state in tenant.engine.detector.state() if state.name == name), None)

    # nothing selected

    def _choice(self) -> None:
        rows = self._watch.last_notices(limit=25)
        if not rows:
            placeholder(
                "No matches yet",
                "Matches are explained here. Start the demo feed on Now, or publish events.",
            )
            return
        with tag("div", "card"):
            text("Choose one of the latest matches", tag="h2")
            for row in rows:
                with tag("div", "result row"):
                    link(row["name"], f"/why?id={row['key']}", "match-name")
                    score(row["score"])
                    text(row["when"], "when", tag="span")
                    text("; ".join(event_line(event) for event in row["events"][:2]), "small hint", tag="span")
        with tag("div", "card"):
            text("Or choose a subscription to see its near misses", tag="h2")
            names = sorted({str(row["name"]) for row in rows} | set(self._subscriptions()))
            for name in names:
                link(name, f"/why?subscription={quote(name)}", "chip")

    def _subscriptions(self) -> list[str]:
        return list(self._broker.host.tenant(self._namespace).entries)


def _events(notice: Notice) -> list[Event]:
    body = msgspec.json.decode(notice.body)
    return [decode_line(msgspec.json.encode(event)) for event in body["events"]]


def reason_line(explanation: dict[str, Any]) -> str:
    """Why an event does not match, or for a match the lines of all predicates."""
    if explanation["why_not"]:
        return plain_reason(str(explanation["why_not"]))
    lines = [line.strip().removeprefix("• ") for line in str(explanation["text"]).splitlines()[1:]]
    return plain_reason("; ".join(" ".join(line.split()) for line in lines))


def _with_times(line: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(line)
    return plain | {
        key: to_datetime(plain[key])
        for key in ("time", "start", "activated", "terminated")
        if plain.get(key) is not None
    }


async def why_view(visitor: Visitor, watch: StreamWatch, state: dict[str, str]) -> None:
    """Build the view."""
    view = WhyView(visitor, watch)
    with errors_shown():
        try:
            await view.show(state)
        except LikewiseError as error:
            placeholder(
                error.message, error.hint or "It may have been removed: the log keeps events for a limited time."
            )


__all__ = ["WhyView", "reason_line", "why_view"]
