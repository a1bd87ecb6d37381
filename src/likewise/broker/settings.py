"""The settings of a broker, validated on construction."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from likewise.errors import BuildError

DEFAULT_PORT: Final = 8420
DEFAULT_NAMESPACE: Final = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """Limits per client, subscription or namespace."""

    body_bytes: int = 8 << 20
    events_per_second: float | None = None
    """Per token; None means no limit."""
    subscriptions: int = 10_000
    """Per namespace."""
    subscription_bytes: int = 64 << 10
    pattern_instances: int = 100_000
    backlog_events: int = 100_000
    """Stored events that are not matched yet; beyond this, publishers wait."""
    streams: int = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HookPolicy:
    """How webhooks are retried; times are in seconds."""

    attempts: int = 8
    first_pause: float = 0.5
    longest_pause: float = 60.0
    timeout: float = 10.0
    pause_after: int = 3
    """Dead letters in a row after which a receiver is paused."""
    pause: float = 600.0
    poll: float = 0.5
    """Interval between checks for changed subscriptions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long the log keeps events and notifications."""

    age: float | None = 7 * 86_400.0
    """Seconds."""
    bytes: int | None = None
    """Maximum size of the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """Storage, address, engine options and limits of a broker."""

    folder: Path
    database: str | None = None
    """A SQLAlchemy URL; SQLite in the folder by default."""
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    open: bool = False
    """Serve without tokens; only on a loopback address."""
    spaces: tuple[str, ...] = ()
    approach: str | None = None
    lateness: int = 0
    """Microseconds that patterns wait for late events."""
    live_clock: bool = True
    """Advance event time with the clock while a live stream is silent."""
    snapshot_events: int = 50_000
    snapshot_seconds: float = 300.0
    private_webhooks: bool = False
    webhooks: HookPolicy = field(default_factory=HookPolicy)
    mqtt: MqttSettings | None = None
    certificate: Path | None = None
    key: Path | None = None
    quotas: Quotas = field(default_factory=Quotas)
    retention: Retention = field(default_factory=Retention)
    page: bool = True
    demo: bool = False

    def __post_init__(self) -> None:
        if self.open and not is_loopback(self.host):
            raise BuildError(
                f"a broker without tokens cannot listen on {self.host}",
                hint="remove --open, or listen on 127.0.0.1",
            )
        if (self.certificate is None) != (self.key is None):
            raise BuildError("TLS needs a certificate and its key", hint="give both --certificate and --key")
        if self.lateness < 0:
            raise BuildError("lateness cannot be negative", hint="use 0 to process events in order of arrival")
        if not 0 <= self.port <= 65_535:
            raise BuildError(f"{self.port} is not a valid port", hint=f"use 0 to 65535; the default is {DEFAULT_PORT}")

    @property
    def url(self) -> str:
        """The SQLAlchemy URL of the database."""
        return self.database or f"sqlite:///{self.folder / 'broker.sqlite3'}"

    @property
    def token_file(self) -> Path:
        """File with the first administrator token, readable by this user only."""
        return self.folder / "admin.token"


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttSettings:
    """The connection to an MQTT broker: topics to read events from, and the topic of notifications."""

    url: str = field(repr=False)
    namespace: str = DEFAULT_NAMESPACE
    topics: tuple[str, ...] = ()
    """Templates such as `sensors/{building}/{room}/{type}`; each `{name}` is one level and becomes an attribute."""
    group: str | None = None
    """Shared-subscription group whose members divide the messages among them."""
    output: str | None = None
    """Topic template for notifications, such as `likewise/{subscription}`."""
    retain: bool = False
    client_id: str = "likewise-broker"


def default_folder() -> Path:
    """The folder in `LIKEWISE_BROKER`, or `likewise/broker` in the user's data folder."""
    if folder := os.environ.get("LIKEWISE_BROKER"):
        return Path(folder)
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "likewise" / "broker"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
