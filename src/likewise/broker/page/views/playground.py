"""Playground: write a subscription, try it on events, move its threshold, save it, share its address."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from nicegui import ui

from likewise.broker.page.editing import (
    EXAMPLES,
    address,
    is_about,
    problem,
    said,
    with_about,
    with_threshold,
)
from likewise.broker.page.frame import button, heading, on_value, saying, score, tag, tell, text
from likewise.broker.page.phrases import many, pairs_of, percent, score_word
from likewise.broker.page.session import Visitor
from likewise.broker.page.trying import Answers, Tried, pasted, recent, try_text, verdict
from likewise.broker.page.watch import StreamWatch
from likewise.broker.page.work import beside
from likewise.errors import LikewiseError
from likewise.language import parse_subscription

SPANS: Final = {"10": "the last 10 minutes", "60": "the last hour", "1440": "the last day", "pasted": "pasted events"}
_NEAR: Final = 12
"""Rows on each side of the threshold."""


class SubscriptionEditor(ui.element, component="../static/editor.js"):
    """The editor: text with colours, suggestions and errors."""

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
        """Another text."""
        self._props["modelValue"] = words
        self.update()

    def flaw(self, found: dict[str, Any] | None) -> None:
        """What is wrong with the text."""
        if self._props["error"] != found:
            self._props["error"] = found
            self.update()


class PlaygroundView:
    """The view of one browser."""

    def __init__(self, visitor: Visitor, watch: StreamWatch, state: dict[str, str]) -> None:
        self._visitor, self._watch = visitor, watch
        self._text = state.get("q", "")[:8000] or EXAMPLES[0][1]
        self._span = state.get("on", "60") if state.get("on") in SPANS else "60"
        self._pasted = state.get("events", "")[:4000]
        self._threshold = _number(state.get("threshold"))
        self._tried: Tried | None = None
        self._turn, self._one = 0, asyncio.Lock()

    def build(self) -> None:
        """Make all parts."""
        heading(
            "Playground",
            "Write what you look for in your own words, and see what it finds. ~ after a word means: also other words "
            "for it. Nothing is stored until you save.",
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
            self._about = button("~ on", self._toggle_about, "chip")
            self._about.props('aria-pressed="true" title="Other words for the same, on or off"')
            with tag("label", "row small hint"):
                text("Try on", tag="span")
                with tag("select", "box").style("width: auto") as choice:
                    for key, name in SPANS.items():
                        option = text(name, tag="option")
                        option.props(f'value="{key}"' + (" selected" if key == self._span else ""))
                on_value(choice, "change", self._choose)
        with tag("label", "field") as self._paste_box:
            text("Events, one a line: {type: car park, slots: 3} or JSON", tag="span")
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
                text("finds more", tag="span")
                self._limit = text("", tag="span")
                text("is surer", tag="span")
            with tag("label", "small hint"):
                self._slider = tag("input", "slide", 'type="range" min="0.02" max="1" step="0.01"')
                text("Threshold: how sure it must be", tag="span")
            on_value(self._slider, "input", self._moved, pause=0.1)
        self._list = tag("div").style("margin-top: .75rem")

    # what a person does

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

    async def _toggle_about(self) -> None:
        on = not is_about(parse_subscription(self._text))
        await self._take(with_about(self._text, on=on))

    async def _moved(self, place: str) -> None:
        self._threshold = _number(place)
        await self._show()

    async def _save(self) -> None:
        access = self._visitor.access()
        words = self._text if self._threshold is None else with_threshold(self._text, self._threshold)
        [entry, *_] = await self._visitor.broker.create(access, words)
        tell(f"Saved as {entry.name}.")

    def _copy(self) -> None:
        ui.run_javascript("navigator.clipboard && navigator.clipboard.writeText(location.href)")
        tell("The address of this page holds all of it: share it.")

    # trying

    async def run(self) -> None:
        """Read the text, try it, and show what it finds; only the last of several that overlap is shown."""
        self._turn += 1
        turn = self._turn
        flaw = problem(self._text)
        self._editor.flaw(flaw)
        self._remember()
        if flaw is not None:
            self._tried = None
            self._summary.say("Nothing to try yet")
            self._slider_box.set_visibility(False)
            self._list.clear()
            return
        try:
            access = self._visitor.access()
            async with self._one:
                if turn != self._turn:
                    return  # somebody typed on while it waited
                tried = await beside(self._try, access.namespace)
        except LikewiseError as error:
            self._editor.flaw(said(error))
            return
        if turn == self._turn:
            self._tried = tried
            about = is_about(parse_subscription(self._text))
            self._about.say("~ on" if about else "~ off")
            self._about.props(f'aria-pressed="{str(about).lower()}"')
            await self._show()

    def _try(self, namespace: str) -> Tried:
        records = (
            pasted(self._pasted)
            if self._span == "pasted"
            else recent(self._visitor.broker, namespace, float(self._span))
        )
        return try_text(self._visitor.broker, namespace, self._text, records)

    def _remember(self) -> None:
        limit = None if self._threshold is None else round(self._threshold, 2)
        events = self._pasted if self._span == "pasted" and len(self._pasted) <= 1500 else None
        ui.navigate.history.replace(address(q=self._text, on=self._span, threshold=limit, events=events))

    async def _show(self) -> None:
        tried = self._tried
        if tried is None:
            return
        limit = tried.threshold if self._threshold is None else self._threshold
        self._slider_box.set_visibility(not tried.pattern)
        if self._threshold is None or "value" not in self._slider.props:
            self._slider._props["value"] = round(limit, 2)  # not under the hand of who moves it
            self._slider.update()
        self._limit.say(f"at least {score_word(limit)} · {percent(limit)}")
        self._summary.say(tried.summary(limit))
        self._remember()
        self._list.clear()
        with self._list:
            if tried.pattern:
                self._situations(tried)
            else:
                await self._answers(tried, limit)

    async def _answers(self, tried: Tried, limit: float) -> None:
        taken, rest = tried.at(limit)
        if not tried.answers:
            text("No event has anything to do with it.", "hint", tag="p")
            if not tried.looked:
                text("Start the demo feed on Now, or paste events here.", "hint", tag="p")
            return
        shown, below = taken[-_NEAR:], rest[:_NEAR]
        told = await beside(self._verdicts, [*shown, *below])
        surer = sum(one.count for one in taken[:-_NEAR]) if len(taken) > _NEAR else 0
        if surer:
            text(f"{many(surer, 'surer event')} above", "small hint", tag="p")
        for answer, why in zip(shown, told, strict=False):
            _answer(answer, why, matched=True)
        text(f"threshold · {percent(limit)}", "divider")
        for answer, why in zip(below, told[len(shown) :], strict=False):
            _answer(answer, why, matched=False)
        if not below:
            text("Nothing is left out.", "small hint", tag="p")

    def _verdicts(self, answers: list[Answers]) -> list[str]:
        namespace = self._visitor.access().namespace
        return [verdict(self._visitor.broker, namespace, self._text, one.event) for one in answers]

    def _situations(self, tried: Tried) -> None:
        for hit in tried.situations:
            with tag("div", "result"):
                score(hit["score"])
                for event in hit["events"]:
                    _pairs(event)
        if not tried.situations:
            text("It did not happen in these events.", "hint", tag="p")


def _answer(answer: Answers, why: str, *, matched: bool) -> None:
    with tag("div", "result" if matched else "result below"):
        with tag("div", "row"):
            score(answer.score, matched=matched)
            if answer.count > 1:
                text(f"{answer.count:,} alike", "small hint", tag="span")
        text(why, "verdict")
        _pairs(answer.event)


def _pairs(event: Any) -> None:
    with tag("div", "pairs small"):
        for name, value in pairs_of(event):
            with tag("span", "pair"):
                text(name, "name", tag="span")
                text(f" {value}", tag="span")


def _number(given: str | None) -> float | None:
    try:
        found = None if given is None else float(given)
    except ValueError:
        return None
    return None if found is None or not 0 < found <= 1 else found


def playground_view(visitor: Visitor, watch: StreamWatch, state: dict[str, str]) -> None:
    """Build the view and try its first text."""
    view = PlaygroundView(visitor, watch, state)
    view.build()

    async def begin() -> None:
        with saying():
            await view.run()

    ui.timer(0.05, begin, once=True)


__all__ = ["PlaygroundView", "SubscriptionEditor", "playground_view"]
