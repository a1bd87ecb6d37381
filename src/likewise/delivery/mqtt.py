"""MQTT client connections: errors carry the broker's reason, and a client reconnects when the broker restarts."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, Self
from urllib.parse import unquote, urlsplit

from likewise.errors import BuildError, DeliveryError, LikewiseError, MissingError

_CONNECT_TIMEOUT: Final = 20.0
"""Seconds to wait for the broker to accept a connection and its subscriptions."""
_MAX_UNCONFIRMED: Final = 10_000
_POLL = 0.05


@dataclass(frozen=True, slots=True)
class Address:
    """A broker's address, from `mqtt://user:password@host:port`.

    >>> Address.parse("mqtt://localhost"), Address.parse("broker:1884").port
    (Address(host='localhost', port=1883, user=None, password=None, tls=False), 1884)
    """

    host: str
    port: int
    user: str | None = None
    password: str | None = None
    tls: bool = False

    @classmethod
    def parse(cls, url: str) -> Address:
        """Parse a URL; the scheme is optional."""
        parts = urlsplit(url if "//" in url else f"mqtt://{url}")
        if parts.scheme not in ("mqtt", "mqtts") or not parts.hostname:
            raise BuildError(f"{url!r} is no address of an MQTT broker", hint="such as mqtt://localhost:1883")
        tls = parts.scheme == "mqtts"
        user, password = (unquote(part) if part else None for part in (parts.username, parts.password))
        return cls(parts.hostname, parts.port or (8883 if tls else 1883), user, password, tls)


def client_name(path: str) -> str:
    """A client id derived from a path: unique and stable, since a broker drops a client whose id connects again.

    >>> client_name("/data/state")
    'likewise-c4f7d617'
    """
    return f"likewise-{blake2b(path.encode(), digest_size=4).hexdigest()}"


def mqtt_client(broker: str, *, client: str, persistent: bool = False) -> Any:
    """A client that is not yet connected; if `persistent`, with a lasting session and manual acknowledgement."""
    import paho.mqtt.client as mqtt
    from paho.mqtt.enums import CallbackAPIVersion

    address = Address.parse(broker)
    created = mqtt.Client(
        CallbackAPIVersion.VERSION2,
        client_id=client,
        clean_session=not persistent,
        manual_ack=persistent,
        userdata=address,
    )
    created.reconnect_delay_set(1, 5)
    if address.user is not None:
        created.username_pw_set(address.user, address.password)
    if address.tls:
        created.tls_set()
    return created


class MqttConnection:
    """Connects a client and subscribes to its topics, also after each reconnect."""

    def __init__(self, client: Any, topics: Sequence[tuple[str, int]] = ()) -> None:
        self._client = client
        self._topics = list(topics)
        self._answered = threading.Event()
        self._refusal: str | None = None
        client.on_connect = self._connected
        client.on_subscribe = self._subscribed

    def wait(self, broker: str) -> None:
        """Connect, and wait until the broker has accepted; from then on the client reconnects automatically."""
        address = Address.parse(broker)
        place = f"{address.host}:{address.port}"
        try:
            self._client.connect(address.host, address.port)
        except OSError as error:
            raise MissingError(f"no MQTT broker answers at {place}: {error}", hint="is it running?") from error
        self._client.loop_start()
        if not self._answered.wait(_CONNECT_TIMEOUT) or self._refusal is not None:
            self._client.disconnect()
            self._client.loop_stop()
            reason = self._refusal or f"no answer in {_CONNECT_TIMEOUT:g} seconds"
            raise LikewiseError(f"the MQTT broker at {place} refused: {reason}", hint="check user, password and topic")

    def _connected(self, client: Any, _: Any, __: Any, reason: Any, ___: Any) -> None:
        if reason.is_failure:
            self._answer([reason])
        elif self._topics:
            client.subscribe(self._topics)
        else:
            self._answer([])

    def _subscribed(self, _: Any, __: Any, ___: Any, reasons: Any, ____: Any) -> None:
        self._answer(reasons)

    def _answer(self, reasons: Sequence[Any]) -> None:
        if not self._answered.is_set():
            self._refusal = next((str(reason) for reason in reasons if reason.is_failure), None)
            self._answered.set()


class MqttPublisher:
    """Publishes messages; leaving the `with` block waits until the broker has confirmed all of them.

    `patience` is how many seconds to wait for a connection, and for the next confirmation.
    """

    def __init__(self, broker: str, *, client: str, patience: float) -> None:
        self._broker = broker
        self._patience = patience
        self._client = mqtt_client(broker, client=client)
        self._client.max_queued_messages_set(0)
        self._client.max_inflight_messages_set(1000)
        self._client.on_publish = self._published
        self._sent = 0
        self._confirmed = 0

    def __enter__(self) -> Self:
        end = time.monotonic() + self._patience
        connection = MqttConnection(self._client)
        while True:
            try:
                connection.wait(self._broker)
            except MissingError:
                if time.monotonic() + 1 > end:
                    raise
                time.sleep(1)
            else:
                return self

    def send(self, topic: str, payload: bytes) -> None:
        """Queue a message; it is sent as soon as there is a connection."""
        # MQTT has only 65,535 ids for unconfirmed messages.
        self._wait(_MAX_UNCONFIRMED)
        self._client.publish(topic, payload, qos=1)
        self._sent += 1

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._wait(0)
        finally:
            self._client.disconnect()
            self._client.loop_stop()

    def _wait(self, limit: int) -> None:
        """Wait until at most `limit` messages are unconfirmed; each confirmation restarts the timeout."""
        last, end = self._confirmed, time.monotonic() + self._patience
        while self._sent - self._confirmed > limit:
            if self._confirmed > last:
                last, end = self._confirmed, time.monotonic() + self._patience
            if time.monotonic() > end:
                left = self._sent - self._confirmed
                raise DeliveryError(f"{self._broker} did not confirm {left:,} messages", hint="check the broker")
            time.sleep(_POLL)

    def _published(self, *_: Any) -> None:
        self._confirmed += 1
