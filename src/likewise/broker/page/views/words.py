"""Words: the vocabulary of the stream as a map and as groups, unknown words, and how two words relate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlencode

from nicegui import ui

from likewise.broker.page.frame import button, card, heading, named, on_value, saying, score, tag, tell, text
from likewise.broker.page.glossary import GlossaryBook
from likewise.broker.page.phrases import many, score_word, shortened
from likewise.broker.page.session import Visitor
from likewise.broker.page.views.evidence import waterfall
from likewise.broker.page.vocabulary import Guess, WordMap, asked_words, word_map
from likewise.broker.page.watch import StreamWatch
from likewise.broker.page.work import beside

_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8a8f98")
"""Okabe and Ito's, which the colour-blind tell apart; the last is for words that stand alone."""
_SHAPES: Final = ("circle", "rect", "triangle", "diamond", "roundRect", "pin", "circle")
_MOST_GUESSES: Final = 15


class WordsView:
    """The view of one browser."""

    def __init__(self, visitor: Visitor, watch: StreamWatch, state: dict[str, str]) -> None:
        self._visitor, self._watch, self._broker = visitor, watch, visitor.broker
        self._book = GlossaryBook(visitor.broker)
        self._first, self._second = state.get("a", "")[:100], state.get("b", "")[:100]

    def build(self) -> None:
        """Make all parts; what must be worked out comes a moment later."""
        heading(
            "Words",
            "The words of the stream. Those that mean the same lie together and have the same colour and shape.",
        )
        with tag("div", "wide-left"):
            with tag("div", "card"):
                text("Map", tag="h2")
                self._map = tag("div")
                with self._map:
                    text("Drawing the map…", "hint", tag="p")
            with tag("div"):
                with card("Words for the same", label="Groups"):
                    self._groups = tag("div")
                with card("Unknown words"):
                    self._guesses = tag("div")
                with card("Glossary"):
                    self._entries = tag("div")
        with tag("section", "card", 'aria-label="Two words"'):
            self._build_pair()

    def _build_pair(self) -> None:
        text("How do two words relate?", tag="h2")
        with tag("div", "row"):
            for label, value, keep in (
                ("Asked for", self._first, self._put_first),
                ("Said", self._second, self._put_second),
            ):
                with tag("label", "field"):
                    text(label, tag="span")
                    box = tag("input", "", 'type="text"')
                    box._props["value"] = value
                    on_value(box, "input", keep, pause=0.5)
        self._pair = tag("div", "", 'aria-live="polite"').style("margin-top: .75rem")

    async def show(self) -> None:
        """Work out the map and all that hangs on it."""
        self._show_entries()
        found = await beside(self._work)
        self._show_map(found)
        self._show_groups(found)
        self._show_guesses(found)
        await self._relate()

    def _work(self) -> WordMap:
        namespace = self._visitor.access().namespace
        subscriptions = list(self._broker.host.tenant(namespace).engine.subscriptions.values())
        return word_map(self._watch.words.terms(), asked_words(subscriptions), self._broker.maker.evidence())

    def _show_map(self, found: WordMap) -> None:
        self._map.clear()
        with self._map:
            if not found.points:
                text("No words yet. As soon as events come, their words are drawn here.", "hint", tag="p")
                return
            chart = ui.echart(map_options(found)).style("height: 34rem; width: 100%")
            named(chart, f"A map of {many(len(found.points), 'word')}; the groups beside it say the same").props(
                'role="img"'
            )

    def _show_groups(self, found: WordMap) -> None:
        self._groups.clear()
        with self._groups:
            if not found.clusters:
                text("No two words mean the same so far.", "hint", tag="p")
            for group in found.clusters[:14]:
                with tag("div").style("margin-bottom: .3rem"):
                    for term in group:
                        text(shortened(term, 40), "chip still", tag="span")

    # the glossary

    def _show_guesses(self, found: WordMap) -> None:
        rejected, may = self._book.rejected(), self._visitor.may("admin")
        self._guesses.clear()
        with self._guesses:
            shown = 0
            for guess in found.guesses:
                meanings = [one for one in guess.meanings if f"{guess.term} = {one[0]}" not in rejected]
                if shown < _MOST_GUESSES and (meanings or not guess.meanings):
                    shown += 1
                    self._guess(Guess(guess.term, tuple(meanings)), may=may)
            if not shown:
                text("Every word is known, or is understood already.", "hint", tag="p")

    def _guess(self, guess: Guess, *, may: bool) -> None:
        with tag("div", "result"):
            text(shortened(guess.term, 40), "match-name")
            if not guess.meanings:
                text("Nothing that is asked for comes near.", "small hint")
            for meaning, likely in guess.meanings[:2]:
                with tag("div", "row"):
                    text(f"may mean “{shortened(meaning, 40)}”", tag="span")
                    text(score_word(likely), "small hint", tag="span")
                    if may:
                        yes = button("Accept", lambda term=guess.term, one=meaning: self._accept(term, one), "chip")
                        named(yes, f"Accept: {guess.term} means {meaning}")
                        no = button("Reject", lambda term=guess.term, one=meaning: self._reject(term, one), "chip")
                        named(no, f"Reject: {guess.term} means {meaning}")

    async def _accept(self, term: str, meaning: str) -> None:
        access = self._visitor.access("admin")
        await self._broker.read(self._book.accept, access, term, meaning)
        await self._broker.audit(access, "accept glossary entry", f"{term} = {meaning}"[:200])
        tell(f"“{term}” now means “{meaning}” to everybody.")
        await self.show()

    async def _reject(self, term: str, meaning: str) -> None:
        await self._broker.read(self._book.reject, self._visitor.access("admin"), term, meaning)
        await self.show()

    async def _forget(self, term: str) -> None:
        await self._broker.read(self._book.forget, self._visitor.access("admin"), term)
        await self.show()

    def _show_entries(self) -> None:
        entries, may = self._book.entries, self._visitor.may("admin")
        self._entries.clear()
        with self._entries:
            if not entries:
                text("Empty. Accept a suggestion above, and the word counts at once.", "hint", tag="p")
            for short, meant in entries.items():
                with tag("div", "row between"):
                    text(f"{short} = {'; '.join(meant)}", tag="span")
                    if may:
                        named(button("Forget", lambda one=short: self._forget(one), "chip"), f"Forget {short}")
            if may:
                self._own_entry()

    def _own_entry(self) -> None:
        """Two boxes for an entry of one's own."""
        said = ["", ""]

        def put(place: int) -> Callable[[str], None]:
            def keep(words: str) -> None:
                said[place] = words[:80]

            return keep

        with tag("div", "row").style("margin-top: .6rem; align-items: flex-end"):
            for place, label in enumerate(("Word", "means")):
                with tag("label", "field").style("max-width: 9.5rem"):
                    text(label, tag="span")
                    on_value(tag("input", "", 'type="text"'), "input", put(place))
            button("Add", lambda: self._accept(*said), "act second")

    # two words

    async def _put_first(self, words: str) -> None:
        self._first = words[:100]
        await self._relate()

    async def _put_second(self, words: str) -> None:
        self._second = words[:100]
        await self._relate()

    async def _relate(self) -> None:
        first, second = self._first.strip(), self._second.strip()
        self._pair.clear()
        if not first or not second:
            with self._pair:
                text(
                    "Write two words, such as “free spaces” and “freie Plätze”, to see what ties them together.",
                    "hint",
                    tag="p",
                )
            return
        ui.navigate.history.replace(f"/words?{urlencode({'a': first, 'b': second})}")
        likely, weights = await beside(self._weigh, first, second)
        with self._pair:
            with tag("div", "row"):
                text("Mean the same:", tag="span")
                score(likely, matched=likely >= 0.5)
            waterfall(weights, likely, f"{first} and {second}")

    def _weigh(self, first: str, second: str) -> tuple[float, list[dict[str, Any]]]:
        measure = self._broker.maker.evidence()
        weights = measure.weights(first, second)
        likely = float(measure.matrix([first], [second])[0, 0])
        return likely, [{"concept": one.text, "weight": one.bits} for one in weights]


def map_options(found: WordMap) -> dict[str, Any]:
    """The chart of a map: a point for each word, larger the oftener it is said, named where there is room."""
    sizes = Counter(point.cluster for point in found.points)
    ranked = [cluster for cluster, size in sizes.most_common() if size > 1]
    data = []
    for point in found.points:
        place = ranked.index(point.cluster) % (len(_COLOURS) - 1) if point.cluster in ranked else -1
        data.append(
            {
                "value": [round(point.x, 3), round(point.y, 3)],
                "name": shortened(point.term, 30),
                "symbol": _SHAPES[place],
                "symbolSize": min(26, 8 + 3 * point.count**0.3),
                "itemStyle": {"color": _COLOURS[place]},
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
    """Build the view; the map follows."""
    view = WordsView(visitor, watch, state)
    view.build()

    async def begin() -> None:
        with saying():
            await view.show()

    ui.timer(0.05, begin, once=True)
