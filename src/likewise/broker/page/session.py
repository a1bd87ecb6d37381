"""Sessions of the page: the token is in a cookie that scripts cannot read, and is checked at every action."""

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
    """A visitor of the page, identified by the cookies of the browser."""

    broker: Broker
    cookies: Mapping[str, str]

    def access(self, role: str = "subscribe") -> Access:
        """The current access of this visitor; raises `AccessError` without the role, or if the token was revoked."""
        text = self.cookies.get(TOKEN)
        if text:
            access = self.broker.keyring.authenticate(text)
        elif self.broker.settings.open:
            access = OPEN
        else:
            raise AccessError("sign in first", hint="use a token of this broker")
        wanted = self.cookies.get(NAMESPACE) if access.scope == "*" else None
        access = access_in(access, wanted or None)
        access.require(role)
        return access

    def may(self, role: str) -> bool:
        """Whether this visitor has a role."""
        try:
            self.access(role)
        except LikewiseError:
            return False
        return True

    @property
    def is_known(self) -> bool:
        """Whether this visitor is signed in, with any role."""
        return any(self.may(role) for role in ("subscribe", "publish"))


def same_site(request: Request) -> bool:
    """Whether a form was sent by a page of this broker.

    The pages send no referrer, so browsers send `Origin: null` with their forms; `Sec-Fetch-Site` is checked first.
    """
    if (site := request.headers.get("sec-fetch-site")) is not None:
        return site == "same-origin"
    origin = request.headers.get("origin")
    return origin is not None and urlsplit(origin).netloc == request.headers.get("host")


async def sign_in(request: Request, broker: Broker) -> Response:
    """Sign in: check the token of the form and store it in a cookie."""
    body = await request.body()
    fields = parse_qs(body[:_LONGEST].decode("utf-8", "replace"))
    text = fields.get("token", [""])[0].strip()
    try:
        if not same_site(request):
            raise AccessError("the form was sent by another site")
        broker.keyring.authenticate(text)
    except AccessError:
        return RedirectResponse("/sign-in?wrong=1", 303)
    response = RedirectResponse("/", 303)
    response.set_cookie(
        TOKEN, text, httponly=True, samesite="strict", secure=request.url.scheme == "https", max_age=30 * 86_400
    )
    return response


async def sign_out(request: Request) -> Response:
    """Sign out: delete the cookies."""
    response = RedirectResponse("/sign-in", 303)
    if same_site(request):
        response.delete_cookie(TOKEN)
        response.delete_cookie(NAMESPACE)
    return response
