"""Who looks at the page: a token in a cookie that scripts cannot read, checked again with every action."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs, urlsplit

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from likewise.broker.auth import OPEN, Access, access_in
from likewise.broker.errors import AccessError
from likewise.broker.service import Broker
from likewise.errors import LikewiseError

TOKEN: Final = "likewise_token"
NAMESPACE: Final = "likewise_namespace"
_LONGEST: Final = 4096


@dataclass(frozen=True)
class Visitor:
    """Somebody at the page: the cookies of the browser, and what they allow right now."""

    broker: Broker
    cookies: Mapping[str, str]

    def access(self, role: str = "subscribe") -> Access:
        """What this visitor may do; a token that was revoked meanwhile is refused."""
        text = self.cookies.get(TOKEN)
        if text:
            found = self.broker.keyring.authenticate(text)
        elif self.broker.settings.open:
            found = OPEN
        else:
            raise AccessError("sign in first", hint="with a token of this broker")
        wanted = self.cookies.get(NAMESPACE) if found.scope == "*" else None
        chosen = access_in(found, wanted or None)
        chosen.require(role)
        return chosen

    def may(self, role: str) -> bool:
        """Whether this visitor has a role."""
        try:
            self.access(role)
        except LikewiseError:
            return False
        return True

    @property
    def is_known(self) -> bool:
        """Whether this visitor is signed in, in whatever role."""
        return any(self.may(role) for role in ("subscribe", "publish"))


def same_site(request: Request) -> bool:
    """Whether a form was sent by a page of this broker.

    Pages send no referrer, and so browsers call the origin of their forms null; they say in another header.
    """
    if (site := request.headers.get("sec-fetch-site")) is not None:
        return site == "same-origin"
    origin = request.headers.get("origin")
    return origin is not None and urlsplit(origin).netloc == request.headers.get("host")


async def sign_in(request: Request, broker: Broker) -> Response:
    """Take a token from the form and keep it in a cookie."""
    body = await request.body()
    fields = parse_qs(body[:_LONGEST].decode("utf-8", "replace"))
    text = fields.get("token", [""])[0].strip()
    try:
        if not same_site(request):
            raise AccessError("the form is not of this page")
        broker.keyring.authenticate(text)
    except AccessError:
        return RedirectResponse("/sign-in?wrong=1", 303)
    answer = RedirectResponse("/", 303)
    answer.set_cookie(
        TOKEN, text, httponly=True, samesite="strict", secure=request.url.scheme == "https", max_age=30 * 86_400
    )
    return answer


async def sign_out(request: Request) -> Response:
    """Forget the token."""
    answer = RedirectResponse("/sign-in", 303)
    if same_site(request):
        answer.delete_cookie(TOKEN)
        answer.delete_cookie(NAMESPACE)
    return answer
