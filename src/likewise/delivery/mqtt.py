"""A connection to an MQTT broker, in or out, that says why it is refused and outlives a broker that restarts."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, Self
from urllib.parse import unquote, urlsplit

from likewise.errors import BuildError, DeliveryError, LikewiseError, MissingError

_ANSWER: Final = 20.0
"""Seconds in which a broker answers."""
_UNDER_WAY: Final = 10_000
_POLL = 0.05


@dataclass(frozen=True, slots=True)
class Address:
    """A broker, from `mqtt://user:password@host:port`.

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
        """The parts of an address; the scheme may be left out."""
        parts = urlsplit(url if "//" in url else f"mqtt://{url}")
        if parts.scheme not in ("mqtt", "mqtts") or not parts.hostname:
            raise BuildError(f"{url!r} is no address of an MQTT broker", hint="such as mqtt://localhost:1883")
        tls = parts.scheme == "mqtts"
        user, password = (unquote(part) if part else None for part in (parts.username, parts.password))
        return cls(parts.hostname, parts.port or (8883 if tls else 1883), user, password, tls)


def name_of(path: str) -> str:
    """A client's name of its own, and the same again: brokers throw out one whose name another comes with.

    >>> name_of("/data/state")
    'likewise-c4f7d617'
    """
    return f"likewise-{blake2b(path.encode(), digest_size=4).hexdigest()}"


def joining(broker: str, *, client: str, keeps: bool = False) -> Any:
    """A client that is not yet connected; with `keeps` its session stays, and messages are acknowledged manually."""
    import paho.mqtt.client as mqtt
    from paho.mqtt.enums import CallbackAPIVersion

    address = Address.parse(broker)
    made = mqtt.Client(
        CallbackAPIVersion.VERSION2, client_id=client, clean_session=not keeps, manual_ack=keeps, userdata=address
    )
    made.reconnect_delay_set(1, 5)
    if address.user is not None:
        made.username_pw_set(address.user, address.password)
    if address.tls:
        made.tls_set()
    return made


class Joined:
    """Connects, subscribes if there is something to subscribe to, also again, and knows whether the broker agreed."""

    def __init__(self, client: Any, topics: Sequence[tuple[str, int]] = ()) -> None:
        self._client = client
        self._topics = list(topics)
        self._answered = threading.Event()
        self._refusal: str | None = None
        client.on_connect = self._connected
        client.on_subscribe = self._subscribed

    def wait(self, broker: str) -> None:
        """Until the broker has agreed; from then on the client comes back by itself."""
        address = Address.parse(broker)
        place = f"{address.host}:{address.port}"
        try:
            self._client.connect(address.host, address.port)
        except OSError as error:
            raise MissingError(f"no MQTT broker answers at {place}: {error}", hint="is it running?") from error
        self._client.loop_start()
        if not self._answered.wait(_ANSWER) or self._refusal is not None:
            self._client.disconnect()
            self._client.loop_stop()
            why = self._refusal or f"no answer in {_ANSWER:g} seconds"
            raise LikewiseError(f"the MQTT broker at {place} refused: {why}", hint="check user, password and topic")

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


class Outgoing:
    """Messages that are out when it closes: each was confirmed by the broker, which may have been away meanwhile."""

    def __init__(self, broker: str, *, client: str, patience: float) -> None:
        self._broker = broker
        self._patience = patience
        self._client = joining(broker, client=client)
        self._client.max_queued_messages_set(0)
        self._client.max_inflight_messages_set(1000)
        self._client.on_publish = self._published
        self._out = 0
        self._confirmed = 0

    def __enter__(self) -> Self:
        end = time.monotonic() + self._patience
        joined = Joined(self._client)
        while True:
            try:
                joined.wait(self._broker)
            except MissingError:
                if time.monotonic() + 1 > end:
                    raise
                time.sleep(1)
            else:
                return self

    def send(self, topic: str, payload: bytes) -> None:
        """Hand over a message; without a connection it waits for the next one."""
        # Messages under way have numbers, of which there are only 65,535.
        self._wait(_UNDER_WAY)
        self._client.publish(topic, payload, qos=1)
        self._out += 1

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._wait(0)
        finally:
            self._client.disconnect()
            self._client.loop_stop()

    def _wait(self, most: int) -> None:
        """Wait until at most `most` messages are unconfirmed; each confirmation starts the patience anew."""
        last, end = self._confirmed, time.monotonic() + self._patience
        while self._out - self._confirmed > most:
            if self._confirmed > last:
                last, end = self._confirmed, time.monotonic() + self._patience
            if time.monotonic() > end:
                left = self._out - self._confirmed
                raise DeliveryError(f"{self._broker} did not confirm {left:,} messages", hint="check the broker")
            time.sleep(_POLL)

    def _published(self, *_: Any) -> None:
        self._confirmed += 1
