"""Words: the vocabulary of the stream as a map and in groups, the glossary, and a comparison of two words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlencode

from nicegui import ui

from likewise.broker.page.frame import button, card, errors_shown, heading, labelled, notify, on_value, score, tag, text
from likewise.broker.page.glossary import GlossaryEditor
from likewise.broker.page.phrases import counted, score_word, shortened
from likewise.broker.page.pool import run_in_pool
from likewise.broker.page.session import Visitor
from likewise.broker.page.views.evidence import waterfall
from likewise.broker.page.vocabulary import MeaningSuggestion, WordMap, subscribed_words, word_map
from likewise.broker.page.watch import StreamWatch

_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8a8f98")
"""The palette of Okabe and Ito, safe for colour-blind users; the last colour is for single words."""
_SHAPES: Final = ("circle", "rect", "triangle", "diamond", "roundRect", "pin", "circle")
_MOST_SUGGESTIONS: Final = 15


class WordsView:
    """The view of one browser."""

    def __init__(self, visitor: Visitor, watch: StreamWatch, state: dict[str, str]) -> None:
        self._visitor, self._watch, self._broker = visitor, watch, visitor.broker
        self._glossary = GlossaryEditor(visitor.broker)
        self._first, self._second = state.get("a", "")[:100], state.get("b", "")[:100]

    def build(self) -> None:
        """Create all parts of the view; `show` fills them."""
        heading(
            "Words",
            "The words of your events. Words with the same meaning are close together and share a colour and shape.",
        )
        with tag("div", "wide-left"):
            with tag("div", "card"):
                text("Map", tag="h2")
                self._map = tag("div")
                with self._map:
                    text("Drawing the map…", "hint", tag="p")
            with tag("div"):
                with card("Words with the same meaning", label="Groups"):
                    self._groups = tag("div")
                with card("Unknown words"):
                    self._suggestions = tag("div")
                with card("Glossary"):
                    self._entries = tag("div")
        with tag("section", "card", 'aria-label="Two words"'):
            self._build_pair()

    def _build_pair(self) -> None:
        text("Compare two words", tag="h2")
        with tag("div", "row"):
            for label, value, keep in (
                ("Subscribed word", self._first, self._put_first),
                ("Published word", self._second, self._put_second),
            ):
                with tag("label", "field"):
                    text(label, tag="span")
                    box = tag("input", "", 'type="text"')
                    box._props["value"] = value
                    on_value(box, "input", keep, pause=0.5)
        self._pair = tag("div", "", 'aria-live="polite"').style("margin-top: .75rem")

    async def show(self) -> None:
        """Compute and show the map, groups and suggestions."""
        self._show_entries()
        words = await run_in_pool(self._word_map)
        self._show_map(words)
        self._show_groups(words)
        self._show_suggestions(words)
        await self._compare()

    def _word_map(self) -> WordMap:
        namespace = self._visitor.access().namespace
        subscriptions = list(self._broker.host.tenant(namespace).engine.subscriptions.values())
        return word_map(
            self._watch.words.terms(), subscribed_words(subscriptions), self._broker.engine_factory.evidence()
        )

    def _show_map(self, words: WordMap) -> None:
        self._map.clear()
        with self._map:
            if not words.points:
                text("No words yet. The words of new events appear here.", "hint", tag="p")
                return
            chart = ui.echart(map_options(words)).style("height: 34rem; width: 100%")
            labelled(chart, f"A map of {counted(len(words.points), 'word')}; the groups beside it list them").props(
                'role="img"'
            )

    def _show_groups(self, words: WordMap) -> None:
        self._groups.clear()
        with self._groups:
            if not words.clusters:
                text("No two words have the same meaning so far.", "hint", tag="p")
            for group in words.clusters[:14]:
                with tag("div").style("margin-bottom: .3rem"):
                    for term in group:
                        text(shortened(term, 40), "chip still", tag="span")

    # the glossary

    def _show_suggestions(self, words: WordMap) -> None:
        rejected, may = self._glossary.rejected(), self._visitor.may("admin")
        self._suggestions.clear()
        with self._suggestions:
            shown = 0
            for suggestion in words.suggestions:
                term = suggestion.term
                meanings = [meaning for meaning in suggestion.meanings if f"{term} = {meaning[0]}" not in rejected]
                if shown < _MOST_SUGGESTIONS and (meanings or not suggestion.meanings):
                    shown += 1
                    self._suggestion(MeaningSuggestion(term, tuple(meanings)), may=may)
            if not shown:
                text("There are no unknown words.", "hint", tag="p")

    def _suggestion(self, suggestion: MeaningSuggestion, *, may: bool) -> None:
        with tag("div", "result"):
            text(shortened(suggestion.term, 40), "match-name")
            if not suggestion.meanings:
                text("No subscribed word is similar.", "small hint")
            for meaning, likely in suggestion.meanings[:2]:
                with tag("div", "row"):
                    text(f"may mean “{shortened(meaning, 40)}”", tag="span")
                    text(score_word(likely), "small hint", tag="span")
                    if may:
                        yes = button("Accept", lambda meaning=meaning: self._accept(suggestion.term, meaning), "chip")
                        labelled(yes, f"Accept: {suggestion.term} means {meaning}")
                        no = button("Reject", lambda meaning=meaning: self._reject(suggestion.term, meaning), "chip")
                        labelled(no, f"Reject: {suggestion.term} means {meaning}")

    async def _accept(self, term: str, meaning: str) -> None:
        access = self._visitor.access("admin")
        await self._broker.read(self._glossary.accept, access, term, meaning)
        await self._broker.audit(access, "accept glossary entry", f"{term} = {meaning}"[:200])
        notify(f"Added to the glossary: “{term}” means “{meaning}”.")
        await self.show()

    async def _reject(self, term: str, meaning: str) -> None:
        await self._broker.read(self._glossary.reject, self._visitor.access("admin"), term, meaning)
        await self.show()

    async def _remove(self, term: str) -> None:
        await self._broker.read(self._glossary.remove, self._visitor.access("admin"), term)
        await self.show()

    def _show_entries(self) -> None:
        entries, may = self._glossary.entries, self._visitor.may("admin")
        self._entries.clear()
        with self._entries:
            if not entries:
                text("Empty. Accept a suggestion above, or add a word. It takes effect at once.", "hint", tag="p")
            for term, meanings in entries.items():
                with tag("div", "row between"):
                    text(f"{term} = {'; '.join(meanings)}", tag="span")
                    if may:
                        labelled(button("Remove", lambda term=term: self._remove(term), "chip"), f"Remove {term}")
            if may:
                self._new_entry()

    def _new_entry(self) -> None:
        """Show the fields for a new entry."""
        fields = ["", ""]

        def put(place: int) -> Callable[[str], None]:
            def keep(words: str) -> None:
                fields[place] = words[:80]

            return keep

        with tag("div", "row").style("margin-top: .6rem; align-items: flex-end"):
            for place, label in enumerate(("Word", "means")):
                with tag("label", "field").style("max-width: 9.5rem"):
                    text(label, tag="span")
                    on_value(tag("input", "", 'type="text"'), "input", put(place))
            button("Add", lambda: self._accept(*fields), "act second")

    # two words

    async def _put_first(self, words: str) -> None:
        self._first = words[:100]
        await self._compare()

    async def _put_second(self, words: str) -> None:
        self._second = words[:100]
        await self._compare()

    async def _compare(self) -> None:
        first, second = self._first.strip(), self._second.strip()
        self._pair.clear()
        if not first or not second:
            with self._pair:
                text(
                    "Enter two words, for example “free spaces” and “freie Plätze”, to see how close they are.",
                    "hint",
                    tag="p",
                )
            return
        ui.navigate.history.replace(f"/words?{urlencode({'a': first, 'b': second})}")
        likely, weights = await run_in_pool(self._weigh, first, second)
        with self._pair:
            with tag("div", "row"):
                text("Same meaning:", tag="span")
                score(likely, matched=likely >= 0.5)
            waterfall(weights, likely, f"{first} and {second}")

    def _weigh(self, first: str, second: str) -> tuple[float, list[dict[str, Any]]]:
        measure = self._broker.engine_factory.evidence()
        weights = measure.weights(first, second)
        likely = float(measure.matrix([first], [second])[0, 0])
        return likely, [{"concept": weight.text, "weight": weight.bits} for weight in weights]


def map_options(words: WordMap) -> dict[str, Any]:
    """The chart of a map: one point per word, larger for frequent words, with labels where there is room."""
    sizes = Counter(point.cluster for point in words.points)
    ranked = [cluster for cluster, size in sizes.most_common() if size > 1]
    data = []
    for point in words.points:
        style = ranked.index(point.cluster) % (len(_COLOURS) - 1) if point.cluster in ranked else -1
        data.append(
            {
                "value": [round(point.x, 3), round(point.y, 3)],
                "name": shortened(point.term, 30),
                "symbol": _SHAPES[style],
                "symbolSize": min(26, 8 + 3 * point.count**0.3),
                "itemStyle": {"color": _COLOURS[style]},
            }
        )
    hidden = {"show": False, "min": "dataMin", "max": "dataMax"}
    return {
        "animation": False,
        "grid": {"left": 20, "right": 90, "top": 20, "bottom": 20},
        "xAxis": hidden,
        "yAxis": hidden,
        "tooltip": {"show": False},
        "dataZoom": [{"type": "inside", "xAxisIndex": 0}, {"type": "inside", "yAxisIndex": 0}],
        "series": [
            {
                "type": "scatter",
                "data": data,
                "label": {"show": True, "position": "right", "formatter": "{b}", "fontSize": 12, "color": "#7d8794"},
                "labelLayout": {"hideOverlap": True},
                "emphasis": {"label": {"fontWeight": "bold"}},
            }
        ],
    }


def words_view(visitor: Visitor, watch: StreamWatch, state: dict[str, str]) -> None:
    """Build the view, then compute the map."""
    view = WordsView(visitor, watch, state)
    view.build()

    async def begin() -> None:
        with errors_shown():
            await view.show()

    ui.timer(0.05, begin, once=True)
