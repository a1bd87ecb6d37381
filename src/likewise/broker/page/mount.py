"""Mount the page on the broker's port: six views, sign-in and the content security policy."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import structlog
from fastapi import FastAPI, Request
from nicegui import app as pages
from nicegui import ui
from starlette.datastructures import MutableHeaders
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from likewise.broker.http.problems import problem_document, problem_response
from likewise.broker.page.city import CityFeed, Recordings
from likewise.broker.page.frame import design, frame, tag, text
from likewise.broker.page.session import Visitor, sign_in, sign_out
from likewise.broker.page.views.now import now_view
from likewise.broker.page.views.playground import playground_view
from likewise.broker.page.views.subscriptions import subscriptions_view
from likewise.broker.page.views.system import system_view
from likewise.broker.page.views.why import why_view
from likewise.broker.page.views.words import words_view
from likewise.broker.page.watch import Watches
from likewise.broker.service import Broker
from likewise.broker.settings import DEFAULT_NAMESPACE
from likewise.errors import LikewiseError

logs = structlog.get_logger("likewise.page")
POLICY: Final = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; form-action 'self'"
)
"""Load everything from this broker; NiceGUI compiles its templates in the browser, hence `unsafe-eval`."""
View: TypeAlias = Callable[[Visitor, dict[str, str]], Awaitable[None]]
_ICON: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#0b5fa5"/>'
    '<path d="M6 13c4-5 8 4 12 0 3-3 5-2 8 0M6 21c4-5 8 4 12 0 3-3 5-2 8 0" stroke="#fff" stroke-width="2.6" '
    'fill="none" stroke-linecap="round"/></svg>'
)
_NOT_FOUND: Final = """<!doctype html><html lang="en"><head><title>Likewise: page not found</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>:root { color-scheme: light dark }
body { font: 1rem/1.6 sans-serif; max-width: 34rem; margin: 20vh auto; padding: 0 1rem }</style></head>
<body><main><h1>Page not found</h1><p><a href="/">Go to the start page of this broker</a></p></main></body></html>"""


class PageRules:
    """ASGI middleware that adds the content security policy to the page's responses."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).setdefault("Content-Security-Policy", POLICY)
            await send(message)

        await self._app(scope, receive, send_with_policy)


def mount_page(app: FastAPI, broker: Broker, *, recordings: Recordings | None = None) -> None:
    """Add the page to the broker's application; call this once per process."""
    watches, feed = Watches(broker), CityFeed(broker, recordings=recordings)
    _forms(app, broker)
    _views(broker, watches, feed)
    pages.add_middleware(PageRules)
    pages.add_exception_handler(404, _missing)
    pages.on_exception(_failed)
    logging.getLogger("nicegui").setLevel(logging.CRITICAL)  # `_failed` logs these errors

    async def stop() -> None:
        watches.stop()
        feed.stop()

    ui.run_with(
        app,
        title="Likewise",
        favicon=_ICON,
        dark=None,
        language="en-US",
        binding_refresh_interval=None,
        reconnect_timeout=10.0,
        message_history_length=200,
        tailwind=False,
        show_welcome_message=False,
    )
    _extend_lifespan(app, start=lambda: _start(broker, feed), stop=stop)


def _failed(error: Exception) -> None:
    """Log an error, except that of a browser that left before the response was sent."""
    if not (isinstance(error, RuntimeError) and "deleted" in str(error)):
        logs.error("the page failed", exc_info=error)


async def _missing(request: Request, _: Exception) -> Response:
    """Not found: an HTML page for browsers, a problem document for other clients."""
    if "text/html" in request.headers.get("accept", ""):
        return HTMLResponse(_NOT_FOUND, 404)
    problem = problem_document(404, "not-found", "Not found", f"there is nothing at {request.url.path}")
    return problem_response(problem | {"hint": "/openapi.json lists all paths"})


async def _start(broker: Broker, feed: CityFeed) -> None:
    if broker.settings.demo:
        feed.start(DEFAULT_NAMESPACE)


def _extend_lifespan(
    app: FastAPI, *, start: Callable[[], Awaitable[None]], stop: Callable[[], Awaitable[None]]
) -> None:
    """Call `start` after the broker has started, and `stop` before it stops."""
    inner = app.router.lifespan_context

    def lifespan(application: FastAPI) -> Any:
        @contextlib.asynccontextmanager
        async def extended() -> Any:
            async with inner(application) as state:
                await start()
                try:
                    yield state
                finally:
                    await stop()

        return extended()

    app.router.lifespan_context = lifespan


def _forms(app: FastAPI, broker: Broker) -> None:
    @app.post("/page/sign-in", include_in_schema=False)
    async def take_token(request: Request) -> Response:
        return await sign_in(request, broker)

    @app.post("/page/sign-out", include_in_schema=False)
    async def drop_token(request: Request) -> Response:
        return await sign_out(request)


def _views(broker: Broker, watches: Watches, feed: CityFeed) -> None:
    async def now(visitor: Visitor, _: dict[str, str]) -> None:
        now_view(visitor, await watches.of(visitor.access().namespace), feed)

    async def playground(visitor: Visitor, state: dict[str, str]) -> None:
        playground_view(visitor, await watches.of(visitor.access().namespace), state)

    async def why(visitor: Visitor, state: dict[str, str]) -> None:
        await why_view(visitor, await watches.of(visitor.access().namespace), state)

    async def words(visitor: Visitor, state: dict[str, str]) -> None:
        words_view(visitor, await watches.of(visitor.access().namespace), state)

    async def subscriptions(visitor: Visitor, _: dict[str, str]) -> None:
        await subscriptions_view(visitor, await watches.of(visitor.access().namespace))

    async def system(visitor: Visitor, _: dict[str, str]) -> None:
        await system_view(visitor, await watches.of(visitor.access().namespace))

    def add(path: str, name: str, view: View) -> None:
        async def show(request: Request) -> None:
            visitor = Visitor(broker, dict(request.cookies))
            if not visitor.is_known:
                _sign_in(wrong=False)
                return
            state = dict(request.query_params)
            frame(visitor, name, tour=int(state["tour"]) if state.get("tour", "").isdigit() else 0)
            try:
                await view(visitor, state)
            except LikewiseError as error:
                _refused(error)

        ui.page(path, title="Likewise", response_timeout=60)(show)

    add("/", "now", now)
    add("/playground", "playground", playground)
    add("/why", "why", why)
    add("/words", "words", words)
    add("/subscriptions", "subscriptions", subscriptions)
    add("/system", "system", system)

    @ui.page("/sign-in", title="Sign in · Likewise")
    def sign_in_page(wrong: str = "") -> None:
        _sign_in(wrong=bool(wrong))


def _refused(error: LikewiseError) -> None:
    with tag("div", "card"), tag("div", "empty"):
        text("This token does not allow it", tag="h1")
        text(error.message, tag="p")
        text(error.hint or "", "hint", tag="p")


def _sign_in(*, wrong: bool) -> None:
    ui.add_css(design())
    ui.dark_mode(None)
    with tag("div", "sign-in card"):
        text("Sign in to Likewise", tag="h1")
        text(
            "Use a token of this broker. The administrator's token is in the file admin.token in the broker's folder.",
            "hint",
            tag="p",
        )
        with tag("form", "", 'method="post" action="/page/sign-in"'):
            with tag("label", "field"):
                text("Token", tag="span")
                tag("input", "", 'name="token" type="password" autocomplete="current-password" required autofocus')
            if wrong:
                text("This token is not valid. It may have expired or been revoked.", "editor-error").props(
                    'role="alert"'
                )
            text("Sign in", "act", tag="button").props('type="submit"').style("margin-top: .75rem")
