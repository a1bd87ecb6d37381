"""Access tokens with roles and a namespace. Only their hashes are stored."""

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
"""The namespace of a token that is valid in all namespaces; each request chooses one."""
_NAMESPACE = re.compile(r"[a-z0-9][a-z0-9_.\-]{0,62}")
_PREFIX = "lw"


@dataclass(frozen=True, slots=True)
class Access:
    """The identity, namespace and roles of a request."""

    actor: str
    namespace: str
    roles: frozenset[str]
    scope: str = ""
    """The namespace of the token; `*` means all."""

    def require(self, role: str) -> None:
        """Raise `AccessError` without the role; administrators have every role."""
        if role not in self.roles and "admin" not in self.roles:
            raise AccessError(
                f"this needs the role {role!r}",
                hint=f"the token has {', '.join(sorted(self.roles))}",
                authenticated=True,
            )


OPEN: Final = Access("anonymous", ANY, frozenset(ROLES), ANY)
"""The access of every request to a broker without tokens."""


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
        """Whether a hashed secret is the current one, or the previous one within its grace period."""
        if self.revoked or (self.expires is not None and moment >= self.expires):
            return False
        if hmac.compare_digest(self.hash, secret):
            return True
        grace = self.previous is not None and self.previous_until is not None and moment < self.previous_until
        return grace and hmac.compare_digest(self.previous or b"", secret)


def check_namespace(name: str) -> str:
    """Return the name if it is a valid namespace."""
    if not _NAMESPACE.fullmatch(name):
        raise InputError(
            f"{name[:64]!r} is not a valid namespace", hint="use up to 63 lower-case letters, digits, _ . and -"
        )
    return name


class Keyring:
    """All tokens, in memory. Methods that change them run in a transaction of the log."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._tokens: dict[str, AccessToken] = {}

    def load(self) -> None:
        """Read all tokens from the database."""
        with self._database.reader() as connection:
            rows = connection.execute(select(tokens)).mappings().all()
        self._tokens = {row["id"]: _token(row) for row in rows}

    def __len__(self) -> int:
        return len(self._tokens)

    def list(self, namespace: str) -> list[AccessToken]:
        """The tokens of a namespace; all tokens for `*`."""
        return [token for token in self._tokens.values() if namespace in (ANY, token.namespace)]

    def authenticate(self, text: str) -> Access:
        """Return the access that a token grants."""
        prefix, _, rest = text.partition("_")
        token_id, _, secret = rest.partition("_")
        token = self._tokens.get(token_id)
        if prefix != _PREFIX or token is None or not token.accepts(_hash(secret), now()):
            raise AccessError("the token is not valid", hint="it may have expired, been revoked or replaced")
        return Access(token.id, token.namespace, token.roles, token.namespace)

    def create(
        self, connection: Connection, *, name: str, namespace: str, roles: Iterable[str], expires: int | None = None
    ) -> tuple[AccessToken, str]:
        """Create a token; returns it and its text, which cannot be read again later."""
        chosen = frozenset(roles)
        if not chosen or not chosen <= {*ROLES}:
            raise InputError(
                f"unknown roles: {', '.join(sorted(chosen - {*ROLES})) or 'none'}",
                hint=f"use some of {', '.join(ROLES)}",
            )
        if namespace != ANY:
            check_namespace(namespace)
        token_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        token = AccessToken(token_id, namespace, name, chosen, _hash(secret), expires=expires, made=now())
        connection.execute(tokens.insert(), _row(token))
        self._tokens[token_id] = token
        return token, f"{_PREFIX}_{token_id}_{secret}"

    def rotate(self, connection: Connection, id: str, *, namespace: str, grace: float) -> tuple[AccessToken, str]:
        """Give a token a new secret; the old one stays valid for `grace` seconds."""
        old, secret = self._of(id, namespace), secrets.token_urlsafe(32)
        until = now() + int(grace * 1e6)
        token = replace(old, hash=_hash(secret), previous=old.hash, previous_until=until)
        connection.execute(tokens.update().where(tokens.c.id == id).values(**_row(token)))
        self._tokens[id] = token
        return token, f"{_PREFIX}_{id}_{secret}"

    def revoke(self, connection: Connection, id: str, *, namespace: str) -> None:
        """Revoke a token immediately."""
        token = replace(self._of(id, namespace), revoked=True)
        connection.execute(tokens.update().where(tokens.c.id == id).values(revoked=True))
        self._tokens[id] = token

    def _of(self, id: str, namespace: str) -> AccessToken:
        token = self._tokens.get(id)
        if token is None or namespace not in (ANY, token.namespace):
            raise NotFoundError(f"there is no token {id[:20]!r}", hint="GET /v1/tokens lists them")
        return token


class RateLimit:
    """A token bucket per actor: `rate` events per second, with bursts of up to ten seconds' worth."""

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, actor: str, events: int) -> None:
        """Count events; raises `QuotaError` above the rate."""
        if self._rate is None:
            return
        moment, most = time.monotonic(), self._rate * 10
        left, before = self._left.get(actor, (most, moment))
        left = min(most, left + (moment - before) * self._rate)
        if left < min(events, most):
            self._left[actor] = (left, moment)
            raise QuotaError(
                f"more than {self._rate:g} events per second",
                hint="publish more slowly, or raise the limit with --rate",
            )
        self._left[actor] = (left - events, moment)


@lru_cache(maxsize=1024)
def _within(access: Access, namespace: str) -> Access:
    return replace(access, namespace=check_namespace(namespace))


def access_in(access: Access, wanted: str | None) -> Access:
    """The access in the namespace of a request; only tokens for all namespaces may choose one."""
    if access.namespace == ANY:
        return _within(access, wanted or DEFAULT_NAMESPACE)
    if wanted is not None and wanted != access.namespace:
        raise AccessError("this token is for another namespace", hint="do not send a namespace", authenticated=True)
    return access


def _hash(secret: str) -> bytes:
    # Secrets have 256 random bits, so an unsalted hash is safe.
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
