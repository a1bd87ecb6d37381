"""Tokens: who may do what in which namespace. Only hashes are stored."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection, select

from likewise.broker.errors import AccessError, NotFoundError, QuotaError
from likewise.broker.settings import DEFAULT_NAMESPACE
from likewise.broker.store.database import Database
from likewise.broker.store.records import now
from likewise.broker.store.schema import tokens
from likewise.errors import InputError

ROLES: Final = ("publish", "subscribe", "admin")
ANY: Final = "*"
"""The namespace of a token that may choose one with each request."""
_NAMESPACE = re.compile(r"[a-z0-9][a-z0-9_.\-]{0,62}")
_PREFIX = "lw"


@dataclass(frozen=True, slots=True)
class Access:
    """What a request may do."""

    actor: str
    namespace: str
    roles: frozenset[str]
    scope: str = ""
    """The namespace that the token is for, `*` for all."""

    def require(self, role: str) -> None:
        """Refuse what needs a role that is not there; administrators may do everything."""
        if role not in self.roles and "admin" not in self.roles:
            raise AccessError(
                f"this needs the role {role!r}", hint=f"the token has {', '.join(sorted(self.roles))}", known=True
            )


OPEN: Final = Access("anonymous", ANY, frozenset(ROLES), ANY)
"""Everyone, where the broker runs without tokens."""


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A token as it is stored."""

    id: str
    namespace: str
    name: str
    roles: frozenset[str]
    hash: bytes = field(repr=False)
    previous: bytes | None = field(default=None, repr=False)
    previous_until: int | None = None
    expires: int | None = None
    made: int = 0
    revoked: bool = False

    def accepts(self, secret: bytes, moment: int) -> bool:
        """Whether this is its secret, or the one before within its time of grace."""
        if self.revoked or (self.expires is not None and moment >= self.expires):
            return False
        if hmac.compare_digest(self.hash, secret):
            return True
        grace = self.previous is not None and self.previous_until is not None and moment < self.previous_until
        return grace and hmac.compare_digest(self.previous or b"", secret)


def check_namespace(name: str) -> str:
    """A namespace that is well formed."""
    if not _NAMESPACE.fullmatch(name):
        raise InputError(f"{name[:64]!r} is no namespace", hint="lower-case letters, digits, _ . and -, up to 63")
    return name


class Keyring:
    """All tokens, in memory; changes are written by functions that the log runs."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._tokens: dict[str, AccessToken] = {}

    def load(self) -> None:
        """Read the tokens."""
        with self._database.reader() as connection:
            rows = connection.execute(select(tokens)).mappings().all()
        self._tokens = {row["id"]: _token(row) for row in rows}

    def __len__(self) -> int:
        return len(self._tokens)

    def list(self, namespace: str) -> list[AccessToken]:
        """The tokens of a namespace, or all."""
        return [one for one in self._tokens.values() if namespace in (ANY, one.namespace)]

    def authenticate(self, text: str) -> Access:
        """The access of a token's text."""
        prefix, _, rest = text.partition("_")
        known, _, secret = rest.partition("_")
        token = self._tokens.get(known)
        if prefix != _PREFIX or token is None or not token.accepts(_hash(secret), now()):
            raise AccessError("the token is not valid", hint="it may have expired, been revoked or replaced")
        return Access(token.id, token.namespace, token.roles, token.namespace)

    def create(
        self, connection: Connection, *, name: str, namespace: str, roles: Iterable[str], expires: int | None = None
    ) -> tuple[AccessToken, str]:
        """A new token, and its text, which is shown this once."""
        chosen = frozenset(roles)
        if not chosen or not chosen <= {*ROLES}:
            raise InputError(f"unknown roles: {', '.join(sorted(chosen - {*ROLES})) or 'none'}", hint=f"of {ROLES}")
        if namespace != ANY:
            check_namespace(namespace)
        fresh, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        token = AccessToken(fresh, namespace, name, chosen, _hash(secret), expires=expires, made=now())
        connection.execute(tokens.insert(), _row(token))
        self._tokens[fresh] = token
        return token, f"{_PREFIX}_{fresh}_{secret}"

    def rotate(self, connection: Connection, id: str, *, namespace: str, grace: float) -> tuple[AccessToken, str]:
        """A new secret for a token; the old one stays valid for some seconds."""
        old, secret = self._of(id, namespace), secrets.token_urlsafe(32)
        until = now() + int(grace * 1e6)
        token = replace(old, hash=_hash(secret), previous=old.hash, previous_until=until)
        connection.execute(tokens.update().where(tokens.c.id == id).values(**_row(token)))
        self._tokens[id] = token
        return token, f"{_PREFIX}_{id}_{secret}"

    def revoke(self, connection: Connection, id: str, *, namespace: str) -> None:
        """Make a token worthless, at once."""
        token = replace(self._of(id, namespace), revoked=True)
        connection.execute(tokens.update().where(tokens.c.id == id).values(revoked=True))
        self._tokens[id] = token

    def _of(self, id: str, namespace: str) -> AccessToken:
        token = self._tokens.get(id)
        if token is None or namespace not in (ANY, token.namespace):
            raise NotFoundError(f"there is no token {id[:20]!r}", hint="GET /v1/tokens lists them")
        return token


class RateLimit:
    """A bucket per actor that fills with time: `rate` events per second, ten seconds' worth at once."""

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, actor: str, events: int) -> None:
        """Count events; raises when there are too many."""
        if self._rate is None:
            return
        moment, most = time.monotonic(), self._rate * 10
        left, before = self._left.get(actor, (most, moment))
        left = min(most, left + (moment - before) * self._rate)
        if left < min(events, most):
            self._left[actor] = (left, moment)
            raise QuotaError(f"more than {self._rate:g} events a second", hint="publish more slowly, or ask for more")
        self._left[actor] = (left - events, moment)


@lru_cache(maxsize=1024)
def _within(access: Access, namespace: str) -> Access:
    return replace(access, namespace=check_namespace(namespace))


def access_in(access: Access, wanted: str | None) -> Access:
    """The access in the namespace of a request; only tokens of all namespaces may choose one."""
    if access.namespace == ANY:
        return _within(access, wanted or DEFAULT_NAMESPACE)
    if wanted is not None and wanted != access.namespace:
        raise AccessError("this token is for another namespace", hint="leave the namespace out", known=True)
    return access


def _hash(secret: str) -> bytes:
    # Secrets have 256 random bits, so a plain hash cannot be guessed back.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _row(token: AccessToken) -> dict[str, Any]:
    names = ("id", "namespace", "name", "hash", "previous", "previous_until", "expires", "made", "revoked")
    return {name: getattr(token, name) for name in names} | {"roles": " ".join(sorted(token.roles))}


def _token(row: Any) -> AccessToken:
    previous = None if row["previous"] is None else bytes(row["previous"])
    return AccessToken(
        row["id"],
        row["namespace"],
        row["name"],
        frozenset(row["roles"].split()),
        bytes(row["hash"]),
        previous,
        row["previous_until"],
        row["expires"],
        row["made"],
        row["revoked"],
    )
