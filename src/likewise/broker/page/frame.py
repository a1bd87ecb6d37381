"""What all views share: the frame around them, small parts of the design, and errors said in words."""

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
    ("now", "Everything that happens", "Events on the left, in the words of whoever sends them. On the right, what "
     "they mean to somebody: a match says how likely it is, and why. Click one to see all of its reasons."),
    ("playground", "Ask in your own words", "Write what you look for. ~ after a word means: also other words for it. "
     "Drag the threshold and see at once what comes and what goes."),
    ("why", "No match without a reason", "Every reason for and against, as bars that add up to the score. What "
     "narrowly missed is there too, with what would have been enough."),
    ("words", "The words of your stream", "Words that mean the same lie together. Words that nobody knows come with a "
     "suggestion for the glossary: accept it, and it counts from then on."),
    ("subscriptions", "Say what is right", "Thumbs up and down make every subscription better: “Tune” proposes a new "
     "threshold and shows its effect before you take it."),
)  # fmt: skip


@lru_cache
def design() -> str:
    """The style sheet."""
    return files("likewise.broker.page").joinpath("static/page.css").read_text(encoding="utf-8")


def frame(visitor: Visitor, view: str, *, tour: int = 0) -> None:
    """The head of a page: the six views, dark mode, signing out; and a step of the tour."""
    ui.add_css(design())
    ui.colors(primary="#0b5fa5")
    dark = {"dark": True, "light": False}.get(visitor.cookies.get("likewise_look", ""))
    mode = ui.dark_mode(dark)
    ui.page_title(f"{next(name for key, _, name, _ in VIEWS if key == view)} · Likewise")
    with ui.header().classes("top"):
        with ui.link(target="/").classes("brand").props('aria-label="Likewise, to Now"'):
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
            look.props('aria-label="Dark or light" title="Dark or light"')
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
    here = next(target for view, target, _, _ in VIEWS if view == key)
    with tag("section", "tour", f'role="dialog" aria-label="Tour, step {step} of {len(TOUR)}"'):
        text(f"{step} of {len(TOUR)}", "small hint")
        text(title, tag="h2")
        text(words, tag="p")
        with tag("div", "row between"):
            link("End the tour", here, "plain")
            if step < len(TOUR):
                after = next(target for view, target, _, _ in VIEWS if view == TOUR[step][0])
                link("Next", f"{after}?tour={step + 1}", "act").props("autofocus")
            else:
                link("Done", "/", "act")


# small parts


def tag(name: str, classes: str = "", props: str = "") -> Element:
    """An HTML element."""
    made = ui.element(name)
    if classes:
        made.classes(classes)
    if props:
        made.props(props)
    return made


def card(heading: str, *, label: str = "") -> Element:
    """A part of a view with a heading, known to screen readers by its label."""
    made = tag("section", "card", f'aria-label="{label or heading}"')
    with made:
        text(heading, tag="h2")
    return made


def text(words: object, classes: str = "", *, tag: str = "div") -> TextElement:
    """Text that is never read as HTML."""
    made = TextElement(tag, str(words))
    return made.classes(classes) if classes else made


class TextElement(ui.element):
    """An element of any kind with text inside."""

    def __init__(self, kind: str, words: str) -> None:
        super().__init__(kind)
        self._text = words

    def say(self, words: str) -> None:
        """Change the text."""
        if words != self._text:
            self._text = words
            self.update()


def link(words: str, target: str, classes: str = "") -> Element:
    """A link to another view."""
    made = TextElement("a", words)
    made._props["href"] = target
    return made.classes(classes) if classes else made


def button(words: str, on_click: Callable[..., Any], classes: str = "act") -> TextElement:
    """A button; errors of what it does are said."""
    made = TextElement("button", words)
    made.props('type="button"').classes(classes)

    async def clicked() -> None:
        with saying():
            found = on_click()
            if isinstance(found, Awaitable):
                await found

    made.on("click", clicked, [])
    return made


def on_value(made: Element, event: str, handler: Callable[[str], Any], *, pause: float = 0.0) -> None:
    """Call with the text of an input or a choice when it changes; while somebody types, not before a pause."""

    async def changed(said: Any) -> None:
        with saying():
            found = handler(str(said.args))
            if isinstance(found, Awaitable):
                await found

    options: dict[str, Any] = {"throttle": pause, "leading_events": False} if pause else {}
    made.on(event, changed, js_handler="(e) => emit(e.target.value)", **options)


def score(value: float, *, matched: bool = True) -> Element:
    """A score: its bar, its word and, on request, its number; the same everywhere."""
    with tag("span", "score" if matched else "score no") as made:
        made._props["title"] = percent(value)
        with tag("span", "meter", 'aria-hidden="true"'):
            tag("i").style(f"width: {100 * max(0.0, min(1.0, value)):.0f}%")
        text(score_word(value), tag="span")
    return made


def heading(title: str, intro: str) -> None:
    """The title of a view and what it is for."""
    text(title, tag="h1")
    text(intro, "intro", tag="p")


def empty(title: str, words: str) -> Element:
    """What stands where nothing is yet: it says how to get something."""
    with tag("div", "card"), tag("div", "empty") as made:
        text(title, tag="h2")
        text(words, "hint", tag="p")
    return made


def tell(words: str, *, good: bool = True) -> None:
    """A short message at the edge of the page."""
    ui.notify(words, color="primary" if good else "deep-orange-10", position="bottom", close_button="Close")


@contextmanager
def saying() -> Iterator[None]:
    """Say an error that a person can do something about, in place of a traceback."""
    try:
        yield
    except LikewiseError as error:
        tell(error.message + (f" – {error.hint}" if error.hint else ""), good=False)


ElementT = TypeVar("ElementT", bound=Element)


def named(made: ElementT, label: str) -> ElementT:
    """An element with a name for screen readers."""
    made._props["aria-label"] = label
    return made
