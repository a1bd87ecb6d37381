"""Parts shared by all views: header, tour, basic HTML elements and error messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final, TypeVar

from nicegui import ui
from nicegui.element import Element

from likewise.broker.page.phrases import percent, score_word
from likewise.broker.page.session import Visitor
from likewise.errors import LikewiseError

VIEWS: Final = (
    ("now", "/", "Now", "bolt"),
    ("playground", "/playground", "Playground", "edit_note"),
    ("why", "/why", "Why", "help_outline"),
    ("words", "/words", "Words", "bubble_chart"),
    ("subscriptions", "/subscriptions", "Subscriptions", "notifications"),
    ("system", "/system", "System", "monitor_heart"),
)
_ROLE: Final = {"system": "admin"}
TOUR: Final = (
    ("now", "Events and matches", "Events are on the left, in the words of their publishers. Matches are on the right, "
     "each with its likelihood and the reason. Click a match to see the full explanation."),
    ("playground", "Subscribe in your own words", "Write what you are looking for. ~ after a word also matches other "
     "words with the same meaning. Move the threshold to see which events match."),
    ("why", "Every match is explained", "The evidence for and against a match is shown as bars that add up to the "
     "score. Near misses are shown too, with the score they would have needed."),
    ("words", "The words of your events", "Words with the same meaning are close together on the map. For unknown "
     "words you get suggestions: accept one to add it to the glossary."),
    ("subscriptions", "Rate matches to improve them", "Rate matches with thumbs up and down. “Tune” then proposes a "
     "better threshold and shows its effect before you apply it."),
)  # fmt: skip


@lru_cache
def design() -> str:
    """The style sheet."""
    return files("likewise.broker.page").joinpath("static/page.css").read_text(encoding="utf-8")


def frame(visitor: Visitor, view: str, *, tour: int = 0) -> None:
    """Build the header with links to the views, dark mode and sign-out, and a step of the tour."""
    ui.add_css(design())
    ui.colors(primary="#0b5fa5")
    dark = {"dark": True, "light": False}.get(visitor.cookies.get("likewise_look", ""))
    mode = ui.dark_mode(dark)
    ui.page_title(f"{next(name for key, _, name, _ in VIEWS if key == view)} · Likewise")
    with ui.header().classes("top"):
        with ui.link(target="/").classes("brand").props('aria-label="Likewise: go to Now"'):
            text("≈", tag="b")
            text("likewise", tag="span")
        with tag("nav", "views", 'aria-label="Views"'):
            for key, target, name, icon in VIEWS:
                if visitor.may(_ROLE.get(key, "subscribe")):
                    with tag("a", "", f'href="{target}"' + (' aria-current="page"' if key == view else "")):
                        ui.icon(icon).classes("icon").props('aria-hidden="true"')
                        text(name, tag="span")
        with tag("div", "tools"):
            with tag("a", "plain", f'href="{VIEWS[0][1]}?tour=1"'):
                text("Tour", tag="span")
            look = button("◐", lambda: _toggle(mode), "plain")
            look.props('aria-label="Switch dark mode" title="Switch dark mode"')
            if not visitor.broker.settings.open:
                with tag("form", "", 'method="post" action="/page/sign-out"'), tag("button", "plain", 'type="submit"'):
                    text("Sign out", tag="span")
    if 1 <= tour <= len(TOUR):
        _tour(tour)


def _toggle(mode: ui.dark_mode) -> None:
    mode.value = not mode.value
    look = "dark" if mode.value else "light"
    ui.run_javascript(f"document.cookie = 'likewise_look={look}; path=/; max-age=31536000; samesite=strict'")


def _tour(step: int) -> None:
    key, title, words = TOUR[step - 1]
    current = next(target for view, target, _, _ in VIEWS if view == key)
    with tag("section", "tour", f'role="dialog" aria-label="Tour, step {step} of {len(TOUR)}"'):
        text(f"{step} of {len(TOUR)}", "small hint")
        text(title, tag="h2")
        text(words, tag="p")
        with tag("div", "row between"):
            link("End the tour", current, "plain")
            if step < len(TOUR):
                following = next(target for view, target, _, _ in VIEWS if view == TOUR[step][0])
                link("Next", f"{following}?tour={step + 1}", "act").props("autofocus")
            else:
                link("Done", "/", "act")


# small parts


def tag(name: str, classes: str = "", props: str = "") -> Element:
    """Create an HTML element."""
    element = ui.element(name)
    if classes:
        element.classes(classes)
    if props:
        element.props(props)
    return element


def card(heading: str, *, label: str = "") -> Element:
    """Create a section with a heading and a label for screen readers."""
    element = tag("section", "card", f'aria-label="{label or heading}"')
    with element:
        text(heading, tag="h2")
    return element


def text(words: object, classes: str = "", *, tag: str = "div") -> TextElement:
    """Create an element with text, which is never interpreted as HTML."""
    element = TextElement(tag, str(words))
    return element.classes(classes) if classes else element


class TextElement(ui.element):
    """An HTML element that contains text."""

    def __init__(self, kind: str, words: str) -> None:
        super().__init__(kind)
        self._text = words

    def set_text(self, words: str) -> None:
        """Change the text."""
        if words != self._text:
            self._text = words
            self.update()


def link(words: str, target: str, classes: str = "") -> Element:
    """Create a link."""
    element = TextElement("a", words)
    element._props["href"] = target
    return element.classes(classes) if classes else element


def button(words: str, on_click: Callable[..., Any], classes: str = "act") -> TextElement:
    """Create a button; errors of its action are shown as messages."""
    element = TextElement("button", words)
    element.props('type="button"').classes(classes)

    async def clicked() -> None:
        with errors_shown():
            result = on_click()
            if isinstance(result, Awaitable):
                await result

    element.on("click", clicked, [])
    return element


def on_value(element: Element, event: str, handler: Callable[[str], Any], *, pause: float = 0.0) -> None:
    """Call the handler with the value of an input when it changes; with `pause`, only after that many seconds."""

    async def changed(arguments: Any) -> None:
        with errors_shown():
            result = handler(str(arguments.args))
            if isinstance(result, Awaitable):
                await result

    options: dict[str, Any] = {"throttle": pause, "leading_events": False} if pause else {}
    element.on(event, changed, js_handler="(e) => emit(e.target.value)", **options)


def score(value: float, *, matched: bool = True) -> Element:
    """Show a score as a bar and a word, with the number as tooltip."""
    with tag("span", "score" if matched else "score no") as element:
        element._props["title"] = percent(value)
        with tag("span", "meter", 'aria-hidden="true"'):
            tag("i").style(f"width: {100 * max(0.0, min(1.0, value)):.0f}%")
        text(score_word(value), tag="span")
    return element


def heading(title: str, intro: str) -> None:
    """Show the title of a view and its introduction."""
    text(title, tag="h1")
    text(intro, "intro", tag="p")


def placeholder(title: str, words: str) -> Element:
    """Show a message where there is no content yet, with a hint how to get some."""
    with tag("div", "card"), tag("div", "empty") as element:
        text(title, tag="h2")
        text(words, "hint", tag="p")
    return element


def notify(words: str, *, good: bool = True) -> None:
    """Show a short message at the bottom of the page."""
    ui.notify(words, color="primary" if good else "deep-orange-10", position="bottom", close_button="Close")


@contextmanager
def errors_shown() -> Iterator[None]:
    """Show a `LikewiseError` as a message on the page."""
    try:
        yield
    except LikewiseError as error:
        notify(error.message + (f" – {error.hint}" if error.hint else ""), good=False)


ElementT = TypeVar("ElementT", bound=Element)


def labelled(element: ElementT, label: str) -> ElementT:
    """Set the label of an element for screen readers."""
    element._props["aria-label"] = label
    return element
