"""Playground: write a subscription, try it on events, choose its threshold, save it or share its link."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from nicegui import ui

from likewise.broker.page.editing import (
    EXAMPLES,
    address,
    error_fields,
    is_approximate,
    problem,
    with_approximation,
    with_threshold,
)
from likewise.broker.page.frame import button, errors_shown, heading, notify, on_value, score, tag, text
from likewise.broker.page.phrases import counted, pairs_of, percent, score_word
from likewise.broker.page.pool import run_in_pool
from likewise.broker.page.preview import MatchGroup, Preview, pasted_events, preview_text, reason_of, recent_events
from likewise.broker.page.session import Visitor
from likewise.broker.page.watch import StreamWatch
from likewise.errors import LikewiseError
from likewise.language import parse_subscription

SPANS: Final = {"10": "the last 10 minutes", "60": "the last hour", "1440": "the last day", "pasted": "pasted events"}
_NEAR: Final = 12
"""Maximum number of rows above and below the threshold."""


class SubscriptionEditor(ui.element, component="../static/editor.js"):
    """The subscription editor, with syntax colours, suggestions and errors."""

    def __init__(self, words: str, watch: StreamWatch) -> None:
        super().__init__()
        self._props |= {
            "modelValue": words,
            "label": "Subscription",
            "attributes": watch.words.common_attributes(),
            "values": watch.words.common_values(),
            "error": None,
        }

    def put(self, words: str) -> None:
        """Replace the text."""
        self._props["modelValue"] = words
        self.update()

    def show_error(self, error: dict[str, Any] | None) -> None:
        """Show an error of the text, or none."""
        if self._props["error"] != error:
            self._props["error"] = error
            self.update()


class PlaygroundView:
    """The view of one browser."""

    def __init__(self, visitor: Visitor, watch: StreamWatch, state: dict[str, str]) -> None:
        self._visitor, self._watch = visitor, watch
        self._text = state.get("q", "")[:8000] or EXAMPLES[0][1]
        self._span = state.get("on", "60") if state.get("on") in SPANS else "60"
        self._pasted = state.get("events", "")[:4000]
        self._threshold = _number(state.get("threshold"))
        self._preview: Preview | None = None
        self._run, self._running = 0, asyncio.Lock()
        """The number of the last run, and the lock that allows one run at a time."""

    def build(self) -> None:
        """Create all parts of the view."""
        heading(
            "Playground",
            "Write a subscription in your own words and see which events match. ~ after a word also matches other "
            "words with the same meaning. Nothing is stored until you save.",
        )
        with tag("div", "wide-left"):
            with tag("section", "card stay", 'aria-label="Subscription"'):
                self._build_editor()
            with tag("section", "card", 'aria-label="Result"'):
                self._build_result()

    def _build_editor(self) -> None:
        with tag("div", "", 'role="group" aria-label="Examples"').style("margin-bottom: .5rem"):
            for name, example in EXAMPLES:
                button(name, lambda words=example: self._take(words), "chip")
        self._editor = SubscriptionEditor(self._text, self._watch)
        self._editor.on("update:modelValue", self._typed)
        self._editor.on("run", self.run, [])
        with tag("div", "row").style("margin: .5rem 0"):
            self._approximation = button("~ on", self._toggle_approximation, "chip")
            self._approximation.props('aria-pressed="true" title="Also match other words with the same meaning"')
            with tag("label", "row small hint"):
                text("Try on", tag="span")
                with tag("select", "box").style("width: auto") as choice:
                    for key, name in SPANS.items():
                        option = text(name, tag="option")
                        option.props(f'value="{key}"' + (" selected" if key == self._span else ""))
                on_value(choice, "change", self._choose)
        with tag("label", "field") as self._paste_box:
            text("Events, one per line: {type: car park, slots: 3} or JSON", tag="span")
            box = tag("textarea", "box mono", 'rows="5"')
            box._props["value"] = self._pasted
            on_value(box, "input", self._paste, pause=0.4)
        self._paste_box.set_visibility(self._span == "pasted")
        with tag("div", "row").style("margin-top: .75rem"):
            button("Try it", self.run)
            button("Save as subscription", self._save, "act second")
            button("Copy link", self._copy, "act second")

    def _build_result(self) -> None:
        self._summary = text("…", tag="h2")
        self._summary.props('aria-live="polite"')
        with tag("div") as self._slider_box:
            with tag("div", "row between small hint"):
                text("more matches", tag="span")
                self._limit = text("", tag="span")
                text("more certain", tag="span")
            with tag("label", "small hint"):
                self._slider = tag("input", "slide", 'type="range" min="0.02" max="1" step="0.01"')
                text("Threshold: the minimum score of a match", tag="span")
            on_value(self._slider, "input", self._moved, pause=0.1)
        self._list = tag("div").style("margin-top: .75rem")

    # user actions

    async def _typed(self, event: Any) -> None:
        self._text = str(event.args)[:20_000]
        self._threshold = None
        await self.run()

    async def _take(self, words: str) -> None:
        self._text, self._threshold = words, None
        self._editor.put(words)
        await self.run()

    async def _choose(self, span: str) -> None:
        self._span = span if span in SPANS else "60"
        self._paste_box.set_visibility(self._span == "pasted")
        await self.run()

    async def _paste(self, words: str) -> None:
        self._pasted = words[:200_000]
        await self.run()

    async def _toggle_approximation(self) -> None:
        on = not is_approximate(parse_subscription(self._text))
        await self._take(with_approximation(self._text, on=on))

    async def _moved(self, place: str) -> None:
        self._threshold = _number(place)
        await self._show()

    async def _save(self) -> None:
        access = self._visitor.access()
        words = self._text if self._threshold is None else with_threshold(self._text, self._threshold)
        [entry, *_] = await self._visitor.broker.create(access, words)
        notify(f"Saved as {entry.name}.")

    def _copy(self) -> None:
        ui.run_javascript("navigator.clipboard && navigator.clipboard.writeText(location.href)")
        notify("The link of this page contains the subscription, the threshold and pasted events.")

    # preview

    async def run(self) -> None:
        """Try the text and show the result; of overlapping runs, only the last is shown."""
        self._run += 1
        run = self._run
        error = problem(self._text)
        self._editor.show_error(error)
        self._update_url()
        if error is not None:
            self._preview = None
            self._summary.set_text("No valid subscription yet")
            self._slider_box.set_visibility(False)
            self._list.clear()
            return
        try:
            access = self._visitor.access()
            async with self._running:
                if run != self._run:
                    return  # the text has changed meanwhile
                preview = await run_in_pool(self._try, access.namespace)
        except LikewiseError as refused:
            self._editor.show_error(error_fields(refused))
            return
        if run == self._run:
            self._preview = preview
            approximate = is_approximate(parse_subscription(self._text))
            self._approximation.set_text("~ on" if approximate else "~ off")
            self._approximation.props(f'aria-pressed="{str(approximate).lower()}"')
            await self._show()

    def _try(self, namespace: str) -> Preview:
        records = (
            pasted_events(self._pasted)
            if self._span == "pasted"
            else recent_events(self._visitor.broker, namespace, float(self._span))
        )
        return preview_text(self._visitor.broker, namespace, self._text, records)

    def _update_url(self) -> None:
        limit = None if self._threshold is None else round(self._threshold, 2)
        events = self._pasted if self._span == "pasted" and len(self._pasted) <= 1500 else None
        ui.navigate.history.replace(address(q=self._text, on=self._span, threshold=limit, events=events))

    async def _show(self) -> None:
        preview = self._preview
        if preview is None:
            return
        limit = preview.threshold if self._threshold is None else self._threshold
        self._slider_box.set_visibility(not preview.pattern)
        if self._threshold is None or "value" not in self._slider.props:
            self._slider._props["value"] = round(limit, 2)  # only while the user is not moving it
            self._slider.update()
        self._limit.set_text(f"{score_word(limit)} · {percent(limit)}")
        self._summary.set_text(preview.summary(limit))
        self._update_url()
        self._list.clear()
        with self._list:
            if preview.pattern:
                self._show_situations(preview)
            else:
                await self._show_groups(preview, limit)

    async def _show_groups(self, preview: Preview, limit: float) -> None:
        matching, rest = preview.at(limit)
        if not preview.groups:
            text("No event is similar to it.", "hint", tag="p")
            if not preview.events:
                text("Start the demo feed on Now, or paste events here.", "hint", tag="p")
            return
        shown, below = matching[-_NEAR:], rest[:_NEAR]
        reasons = await run_in_pool(self._reasons, [*shown, *below])
        hidden = sum(group.count for group in matching[:-_NEAR]) if len(matching) > _NEAR else 0
        if hidden:
            text(f"{counted(hidden, 'event')} with a higher score", "small hint", tag="p")
        for group, reason in zip(shown, reasons, strict=False):
            _show_group(group, reason, matched=True)
        text(f"threshold · {percent(limit)}", "divider")
        for group, reason in zip(below, reasons[len(shown) :], strict=False):
            _show_group(group, reason, matched=False)
        if not below:
            text("No events below the threshold.", "small hint", tag="p")

    def _reasons(self, groups: list[MatchGroup]) -> list[str]:
        namespace = self._visitor.access().namespace
        return [reason_of(self._visitor.broker, namespace, self._text, group.event) for group in groups]

    def _show_situations(self, preview: Preview) -> None:
        for hit in preview.situations:
            with tag("div", "result"):
                score(hit["score"])
                for event in hit["events"]:
                    _pairs(event)
        if not preview.situations:
            text("The pattern was not detected in these events.", "hint", tag="p")


def _show_group(group: MatchGroup, reason: str, *, matched: bool) -> None:
    with tag("div", "result" if matched else "result below"):
        with tag("div", "row"):
            score(group.score, matched=matched)
            if group.count > 1:
                text(f"{group.count:,} similar events", "small hint", tag="span")
        text(reason, "reason")
        _pairs(group.event)


def _pairs(event: Any) -> None:
    with tag("div", "pairs small"):
        for name, value in pairs_of(event):
            with tag("span", "pair"):
                text(name, "name", tag="span")
                text(f" {value}", tag="span")


def _number(written: str | None) -> float | None:
    try:
        value = None if written is None else float(written)
    except ValueError:
        return None
    return None if value is None or not 0 < value <= 1 else value


def playground_view(visitor: Visitor, watch: StreamWatch, state: dict[str, str]) -> None:
    """Build the view and try its first text."""
    view = PlaygroundView(visitor, watch, state)
    view.build()

    async def begin() -> None:
        with errors_shown():
            await view.run()

    ui.timer(0.05, begin, once=True)


__all__ = ["PlaygroundView", "SubscriptionEditor", "playground_view"]
