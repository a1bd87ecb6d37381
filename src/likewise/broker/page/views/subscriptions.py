"""Subscriptions: what is asked for, how often it is found, how often that was right, and tuning by labels."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any
from urllib.parse import quote

import msgspec
from nicegui import ui
from nicegui.element import Element

from likewise.broker.page.editing import address
from likewise.broker.page.frame import button, empty, heading, link, named, tag, tell, text
from likewise.broker.page.labels import as_table, judgements
from likewise.broker.page.phrases import many, percent, rate
from likewise.broker.page.session import Visitor
from likewise.broker.page.tuning import LEAST, Proposal, propose
from likewise.broker.page.watch import StreamWatch
from likewise.broker.store.records import BookEntry, now
from likewise.language import Composite, parse_subscription


class SubscriptionsView:
    """The view of one browser."""

    def __init__(self, visitor: Visitor, watch: StreamWatch) -> None:
        self._visitor, self._watch, self._broker = visitor, watch, visitor.broker
        self._boxes: dict[str, Element] = {}

    def build(self) -> None:
        """Make all parts."""
        heading(
            "Subscriptions",
            "What is asked for, and how well it is answered. Thumbs on a match become labels; Tune finds the threshold "
            "that fits them, and shows the effect before you take it.",
        )
        with tag("div", "row").style("margin-bottom: 1rem"):
            link("Write a new one", "/playground", "act")
            button("Download the labels", self._download, "act second")
        self._list = tag("div")

    async def show(self) -> None:
        """Read the list again."""
        namespace = self._visitor.access().namespace
        found = await self._broker.read(self._broker.history.entries, namespace)
        said = await self._broker.read(judgements, self._broker, namespace)
        right = Counter(one.subscription for one in said if one.right)
        judged = Counter(one.subscription for one in said)
        self._list.clear()
        with self._list:
            if not found:
                with empty(
                    "No subscription yet", "Say what you look for in your own words, and be told when it happens."
                ):
                    link("Open the playground", "/playground", "act")
            for _, entry in found:
                self._row(entry, right[entry.name], judged[entry.name])

    def _row(self, entry: BookEntry, right: int, judged: int) -> None:
        pattern = isinstance(parse_subscription(entry.text).body, Composite)
        with named(tag("section", "card"), entry.name):
            with tag("div", "row between"):
                with tag("div", "row"):
                    text(entry.name, tag="h2").style("margin: 0")
                    for label in (
                        *entry.tags,
                        *(["paused"] if entry.paused else []),
                        *(["pattern"] if pattern else []),
                    ):
                        text(label, "chip still", tag="span").style("margin: 0")
                text(self._rate(entry.name), "hint small", tag="span")
            text(entry.text, "mono", tag="p").style("margin: .5rem 0")
            text(_quality(right, judged, pattern=pattern), "small", tag="p")
            with tag("div", "row"):
                if not pattern:
                    named(button("Tune", lambda: self._tune(entry), "act second"), f"Tune {entry.name}")
                link("Playground", address(q=entry.text), "act second")
                link(
                    "Near misses" if not pattern else "How far it came",
                    f"/why?subscription={quote(entry.name)}",
                    "act second",
                )
                words = "Resume" if entry.paused else "Pause"
                button(words, lambda: self._pause(entry), "act second")
                button("Delete", lambda: self._delete(entry.name), "act danger")
            self._boxes[entry.name] = tag("div", "", 'aria-live="polite"')

    def _rate(self, name: str) -> str:
        tally = self._watch.by_subscription.get(name)
        count = 0 if tally is None else tally.last_minute(time.time())
        return f"found {rate(count, 60)}" if count else "nothing found in the last minute"

    async def _tune(self, entry: BookEntry) -> None:
        namespace = self._visitor.access().namespace
        found = await self._broker.read(propose, self._broker, namespace, entry.name)
        box = self._boxes[entry.name]
        box.clear()
        with box:
            self._proposal(entry, found)

    def _proposal(self, entry: BookEntry, found: Proposal) -> None:
        with tag("div", "card").style("margin-top: .75rem; background: var(--ground)"):
            text(f"From {many(found.labels, 'label')}", tag="h3")
            text(f"Now, at {percent(found.now.threshold)}, it {found.now.words()}.", tag="p")
            if not found.is_better:
                text("No other threshold does better on these labels.", "hint", tag="p")
                return
            text(f"At {percent(found.then.threshold)} it {found.then.words()}.", tag="p")
            before, after = found.hour
            text(f"In the last hour: {many(after, 'match', 'matches')} instead of {before:,}.", tag="p")
            text(found.text, "mono", tag="p")
            button("Take it", lambda: self._take(entry, found))

    async def _take(self, entry: BookEntry, found: Proposal) -> None:
        await self._replace(entry, text=found.text)
        tell(f"{entry.name} now has the threshold {percent(found.then.threshold)}.")

    async def _pause(self, entry: BookEntry) -> None:
        await self._replace(entry, paused=not entry.paused)

    async def _replace(self, entry: BookEntry, **changes: Any) -> None:
        access = self._visitor.access()
        fresh = msgspec.structs.replace(entry, updated=now(), **changes)
        await self._broker.replace(access, fresh)
        await self.show()

    async def _delete(self, name: str) -> None:
        with ui.dialog() as dialog, tag("div", "card"):
            text(f"Delete {name}?", tag="h2")
            text("Its notifications stay in the history.", "hint", tag="p")
            with tag("div", "row"):
                button("Delete", lambda: dialog.submit(True), "act")
                button("Keep it", lambda: dialog.submit(False), "act second")
        if await dialog:
            await self._broker.delete(self._visitor.access(), name)
            await self.show()

    async def _download(self) -> None:
        namespace = self._visitor.access().namespace
        found = await self._broker.read(judgements, self._broker, namespace)
        ui.download.content(as_table(found), "labels.tsv", "text/tab-separated-values")


def _quality(right: int, judged: int, *, pattern: bool) -> str:
    if pattern:
        return "A pattern: what it stands on can be judged and tuned."
    if not judged:
        return "Nobody has judged its matches yet: use the thumbs on Now."
    more = "" if judged >= LEAST else f"; {LEAST - judged} more to tune"
    return f"{right} of {judged} judged were right{more}"


async def subscriptions_view(visitor: Visitor, watch: StreamWatch) -> None:
    """Build the view."""
    view = SubscriptionsView(visitor, watch)
    view.build()
    await view.show()
