"""The MQTT bridge: reads events from topics and publishes notifications to topics.

A message is acknowledged when its event is on disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import re
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec
import structlog

from likewise.broker.auth import Access
from likewise.broker.errors import BusyError, QuotaError, StorageError
from likewise.broker.intake import ParsedBody, parse_cloudevents, parse_lines
from likewise.broker.settings import MqttSettings
from likewise.broker.store.records import DeadLetter, Notice, now
from likewise.delivery import MqttConnection, mqtt_client
from likewise.errors import BuildError, LikewiseError
from likewise.events import Event

if TYPE_CHECKING:
    from likewise.broker.service import Broker

logs = structlog.get_logger("likewise.mqtt")
_PLACE = re.compile(r"\{(\w+)\}")
BATCH: Final = 1_000
"""Maximum number of messages stored together."""
TOPICS: Final = 100_000
"""Topics whose last message is remembered, to recognise repeated retained messages."""


class TopicTemplate:
    """A topic pattern whose named levels become attributes.

    >>> template = TopicTemplate("sensors/{building}/{type}/#")
    >>> template.filter
    'sensors/+/+/#'
    >>> template.attributes("sensors/north/temperature/raw")
    {'building': 'north', 'type': 'temperature'}
    >>> template.attributes("lamps/north/temperature") is None
    True
    """

    def __init__(self, text: str) -> None:
        levels = text.split("/")
        for number, level in enumerate(levels):
            if ("{" in level or "}" in level) and not _PLACE.fullmatch(level):
                raise BuildError(
                    f"{level!r} in {text!r} is not a whole topic level",
                    hint="write, for example, sensors/{building}/{type}",
                )
            if "#" in level and (level != "#" or number != len(levels) - 1):
                raise BuildError(f"# must be the last level of a topic, on its own: {text!r}")
        self.filter = _PLACE.sub("+", text)
        parts = [_part(level) for level in levels]
        pattern = "/".join(parts).replace("/(?:.*)", "(?:/.*)?")
        self._pattern = re.compile(pattern)

    def attributes(self, topic: str) -> dict[str, str] | None:
        """The attributes of a topic; None if the topic does not match."""
        match = self._pattern.fullmatch(topic)
        return None if match is None else match.groupdict()


def _part(level: str) -> str:
    if place := _PLACE.fullmatch(level):
        return f"(?P<{place[1]}>[^/]+)"
    return {"+": "[^/]*", "#": "(?:.*)"}.get(level) or re.escape(level)


class MqttBridge:
    """Connects the broker to an MQTT broker. Without a connection it keeps retrying and the broker keeps working."""

    def __init__(self, broker: Broker, settings: MqttSettings) -> None:
        self._broker, self._settings = broker, settings
        self._templates = [TopicTemplate(text) for text in settings.topics]
        self._access = Access("mqtt", settings.namespace, frozenset({"publish", "subscribe"}))
        self._seen: dict[str, bytes] = {}
        self._incoming: asyncio.Queue[Any] = asyncio.Queue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Any = None
        self._confirming = threading.Condition()
        self._sent = self._confirmed = 0
        self.state = "not connected yet"

    async def run(self) -> None:
        """Connect, then transfer messages until cancelled."""
        self._loop = asyncio.get_running_loop()
        try:
            await self._connect()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._store_messages())
                if self._settings.output:
                    group.create_task(self._send_notifications())
        finally:
            if self._client is not None:
                await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    async def _connect(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self._join_broker)
            except LikewiseError as error:
                self.state = error.message
                logs.warning("cannot connect to the MQTT broker", reason=error.message)
                await asyncio.sleep(2)
            else:
                return

    def _join_broker(self) -> None:
        client = mqtt_client(self._settings.url, client=self._settings.client_id, persistent=True)
        client.max_inflight_messages_set(1000)
        client.max_queued_messages_set(0)
        client.on_message = self._received
        client.on_publish = self._delivered
        group = f"$share/{self._settings.group}/" if self._settings.group else ""
        connection = MqttConnection(client, [(group + template.filter, 1) for template in self._templates])
        client.on_disconnect = self._lost
        subscribe = client.on_connect

        def connected(*arguments: Any) -> None:
            reason = arguments[3]
            self.state = f"refused: {reason}" if reason.is_failure else "ok"
            logs.info("MQTT connected" if self.state == "ok" else "MQTT refused", topics=self._settings.topics)
            subscribe(*arguments)

        client.on_connect = connected
        self._client = client
        connection.wait(self._settings.url)

    def _lost(self, *_: Any) -> None:
        self.state = "connection lost"
        self._broker.counts["mqtt_connections_lost"] += 1
        logs.warning("MQTT connection lost")

    # incoming messages

    def _received(self, _: Any, __: Any, message: Any) -> None:
        """Runs in the MQTT client's thread."""
        assert self._loop is not None  # set by `run` before the client exists
        with contextlib.suppress(RuntimeError):  # the broker has stopped; unacknowledged messages come again
            self._loop.call_soon_threadsafe(self._incoming.put_nowait, message)

    async def _store_messages(self) -> None:
        """Store received messages in batches and acknowledge them; wait while the database is unavailable."""
        while True:
            messages = [await self._incoming.get()]
            while len(messages) < BATCH and not self._incoming.empty():
                messages.append(self._incoming.get_nowait())
            events: list[Event] = []
            letters: list[DeadLetter] = []
            for message in messages:
                self._add_message(message, events, letters)
            await self._until_stored(functools.partial(self._broker.publish, self._access, events))
            for letter in letters:
                await self._until_stored(functools.partial(self._broker.store_dead_letter, letter))
            for message in messages:
                self._client.ack(message.mid, message.qos)

    async def _until_stored(self, store: Callable[[], Awaitable[object]]) -> None:
        while True:
            try:
                await store()
                return
            except (StorageError, BusyError, QuotaError) as error:
                logs.warning("MQTT messages are waiting to be stored", reason=error.message)
                await asyncio.sleep(0.5)

    def _add_message(self, message: Any, events: list[Event], letters: list[DeadLetter]) -> None:
        """Append the events of a message, or a dead letter if it has none."""
        digest = hashlib.blake2b(message.payload, digest_size=16).digest()
        if message.retain and self._seen.get(message.topic) == digest:
            return  # retained messages are sent again on every connection
        self._seen.pop(message.topic, None)
        self._seen[message.topic] = digest
        if len(self._seen) > TOPICS:
            del self._seen[next(iter(self._seen))]
        self._broker.counts["mqtt_received"] += 1
        parsed = self._parse(message.topic, message.payload)
        events += parsed.events
        if not parsed.events:
            rejected = parsed.rejected
            reason = rejected[0].reason if rejected else "the message contains no event"
            letters.append(
                DeadLetter(self._settings.namespace, f"mqtt {message.topic}", reason, message.payload, now())
            )
            self._broker.counts["mqtt_rejected"] += 1

    def _parse(self, topic: str, payload: bytes) -> ParsedBody:
        matches = (template.attributes(topic) for template in self._templates)
        extra = next((attributes for attributes in matches if attributes is not None), {})
        try:
            value = msgspec.json.decode(payload)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            value = payload.decode("utf-8", "replace").strip()
        if isinstance(value, dict) and "specversion" in value:
            return parse_cloudevents(payload)
        if isinstance(value, dict) and isinstance(value.get("attributes"), dict):
            document = value | {"attributes": extra | value["attributes"]}
        else:
            document = {"attributes": extra | (value if isinstance(value, dict) else {"value": value})}
        return parse_lines((msgspec.json.encode(document),))

    # outgoing notifications

    async def _send_notifications(self) -> None:
        broker, namespace = self._broker, self._settings.namespace
        while not broker.hub.closing.is_set():
            try:
                cursor = await broker.read(broker.history.consumer, namespace, "mqtt")
                if cursor is None:
                    cursor = broker.hub.latest(namespace)
                    await broker.acknowledge(self._access, "mqtt", cursor)
                async for notices in broker.follow(self._access, names=None, after=cursor):
                    if notices:
                        await asyncio.to_thread(self._publish, notices)
                        broker.counts["mqtt_sent"] += len(notices)
                        await broker.acknowledge(self._access, "mqtt", notices[-1].cursor)
            except (StorageError, TimeoutError):
                await asyncio.sleep(1)

    def _publish(self, notices: list[Notice]) -> None:
        """Publish notifications and wait until the MQTT broker has confirmed all.

        The client keeps unconfirmed messages while the connection is lost.
        """
        for notice in notices:
            self._client.publish(self._topic(notice), notice.body, qos=1, retain=self._settings.retain)
        self._sent += len(notices)
        with self._confirming:
            while not self._confirming.wait_for(lambda: self._confirmed >= self._sent, 0.5):
                if self._broker.hub.closing.is_set():
                    raise TimeoutError

    def _delivered(self, *_: Any) -> None:
        """Count a confirmed message; runs in the MQTT client's thread."""
        with self._confirming:
            self._confirmed += 1
            self._confirming.notify_all()

    def _topic(self, notice: Notice) -> str:
        name = quote(notice.subscription, safe=" ")
        output = self._settings.output or ""
        return (
            output.replace("{subscription}", name)
            .replace("{kind}", notice.kind)
            .replace("{namespace}", notice.namespace)
        )
