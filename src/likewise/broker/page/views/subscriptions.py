"""Subscriptions: their rates, the quality of their matches by labels, and tuning."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any
from urllib.parse import quote

import msgspec
from nicegui import ui
from nicegui.element import Element

from likewise.broker.page.editing import address
from likewise.broker.page.frame import button, heading, labelled, link, notify, placeholder, tag, text
from likewise.broker.page.labels import as_table, judgements
from likewise.broker.page.phrases import counted, percent, rate
from likewise.broker.page.session import Visitor
from likewise.broker.page.tuning import LEAST, Proposal, propose
from likewise.broker.page.watch import StreamWatch
from likewise.broker.store.records import SubscriptionEntry, now
from likewise.language import Composite, parse_subscription


class SubscriptionsView:
    """The view of one browser."""

    def __init__(self, visitor: Visitor, watch: StreamWatch) -> None:
        self._visitor, self._watch, self._broker = visitor, watch, visitor.broker
        self._boxes: dict[str, Element] = {}

    def build(self) -> None:
        """Create all parts of the view."""
        heading(
            "Subscriptions",
            "All subscriptions and the quality of their matches. Your ratings of matches are labels; Tune finds the "
            "threshold that fits them, and shows the effect before you apply it.",
        )
        with tag("div", "row").style("margin-bottom: 1rem"):
            link("New subscription", "/playground", "act")
            button("Download the labels", self._download, "act second")
        self._list = tag("div")

    async def show(self) -> None:
        """Load and show the list."""
        namespace = self._visitor.access().namespace
        entries = await self._broker.read(self._broker.history.entries, namespace)
        labels = await self._broker.read(judgements, self._broker, namespace)
        right = Counter(label.subscription for label in labels if label.right)
        rated = Counter(label.subscription for label in labels)
        self._list.clear()
        with self._list:
            if not entries:
                with placeholder(
                    "No subscriptions yet",
                    "Describe what you are looking for in your own words, and get a match when it happens.",
                ):
                    link("Open the playground", "/playground", "act")
            for _, entry in entries:
                self._row(entry, right[entry.name], rated[entry.name])

    def _row(self, entry: SubscriptionEntry, right: int, rated: int) -> None:
        pattern = isinstance(parse_subscription(entry.text).body, Composite)
        with labelled(tag("section", "card"), entry.name):
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
            text(_quality(right, rated, pattern=pattern), "small", tag="p")
            with tag("div", "row"):
                if not pattern:
                    labelled(button("Tune", lambda: self._tune(entry), "act second"), f"Tune {entry.name}")
                link("Playground", address(q=entry.text), "act second")
                link(
                    "Near misses" if not pattern else "Progress",
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
        return f"matches: {rate(count, 60)}" if count else "no matches in the last minute"

    async def _tune(self, entry: SubscriptionEntry) -> None:
        namespace = self._visitor.access().namespace
        proposal = await self._broker.read(propose, self._broker, namespace, entry.name)
        box = self._boxes[entry.name]
        box.clear()
        with box:
            self._show_proposal(entry, proposal)

    def _show_proposal(self, entry: SubscriptionEntry, proposal: Proposal) -> None:
        with tag("div", "card").style("margin-top: .75rem; background: var(--ground)"):
            text(f"From {counted(proposal.labels, 'label')}", tag="h3")
            text(f"The current threshold, {percent(proposal.current.threshold)}, {proposal.current.words()}.", tag="p")
            if not proposal.is_better:
                text("No other threshold is better on these labels.", "hint", tag="p")
                return
            text(f"The threshold {percent(proposal.proposed.threshold)} {proposal.proposed.words()}.", tag="p")
            before, after = proposal.hour
            text(f"In the last hour: {counted(after, 'match', 'matches')} instead of {before:,}.", tag="p")
            text(proposal.text, "mono", tag="p")
            button("Apply", lambda: self._apply(entry, proposal))

    async def _apply(self, entry: SubscriptionEntry, proposal: Proposal) -> None:
        await self._replace(entry, text=proposal.text)
        notify(f"{entry.name} now has the threshold {percent(proposal.proposed.threshold)}.")

    async def _pause(self, entry: SubscriptionEntry) -> None:
        await self._replace(entry, paused=not entry.paused)

    async def _replace(self, entry: SubscriptionEntry, **changes: Any) -> None:
        access = self._visitor.access()
        changed = msgspec.structs.replace(entry, updated=now(), **changes)
        await self._broker.replace(access, changed)
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
        labels = await self._broker.read(judgements, self._broker, namespace)
        ui.download.content(as_table(labels), "labels.tsv", "text/tab-separated-values")


def _quality(right: int, rated: int, *, pattern: bool) -> str:
    if pattern:
        return "Patterns cannot be rated or tuned."
    if not rated:
        return "No matches have been rated yet: use the thumbs on Now."
    more = "" if rated >= LEAST else f"; tuning needs {LEAST - rated} more"
    return f"{right} of {rated} rated events were right{more}"


async def subscriptions_view(visitor: Visitor, watch: StreamWatch) -> None:
    """Build the view."""
    view = SubscriptionsView(visitor, watch)
    view.build()
    await view.show()
