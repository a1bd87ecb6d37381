"""The MQTT bridge: events from topics, acknowledged when they are on disk, and notifications to topics."""

from __future__ import annotations

import asyncio
import hashlib
import re
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
import structlog

from likewise.broker.auth import Access
from likewise.broker.errors import StorageError
from likewise.broker.intake import Gathered, gather_cloudevents, gather_lines
from likewise.broker.log import letter_row
from likewise.broker.records import Letter, LogRecord, Notice, now
from likewise.broker.schema import dead_letters
from likewise.broker.settings import MqttSettings
from likewise.delivery import Joined, joining
from likewise.errors import BuildError, LikewiseError
from likewise.events import BadRecord

if TYPE_CHECKING:
    from likewise.broker.service import Broker

logs = structlog.get_logger("likewise.mqtt")
_PLACE = re.compile(r"\{(\w+)\}")


class TopicTemplate:
    """A topic whose levels are attributes.

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
                raise BuildError(f"{level!r} of {text!r} is no whole level", hint="such as sensors/{building}/{type}")
            if "#" in level and (level != "#" or number != len(levels) - 1):
                raise BuildError(f"# stands alone and last in a topic, not as in {text!r}")
        self.filter = _PLACE.sub("+", text)
        parts = [_part(level) for level in levels]
        pattern = "/".join(parts).replace("/(?:.*)", "(?:/.*)?")
        self._pattern = re.compile(pattern)

    def attributes(self, topic: str) -> dict[str, str] | None:
        """The attributes of a topic; None if it is not of this kind."""
        found = self._pattern.fullmatch(topic)
        return None if found is None else found.groupdict()


def _part(level: str) -> str:
    if place := _PLACE.fullmatch(level):
        return f"(?P<{place[1]}>[^/]+)"
    return {"+": "[^/]*", "#": "(?:.*)"}.get(level) or re.escape(level)


class MqttBridge:
    """Runs beside the broker; without a connection it waits and tries again, and the broker goes on."""

    def __init__(self, broker: Broker, settings: MqttSettings) -> None:
        self._broker, self._settings = broker, settings
        self._templates = [TopicTemplate(text) for text in settings.topics]
        self._access = Access("mqtt", settings.namespace, frozenset({"publish", "subscribe"}))
        self._seen: dict[str, bytes] = {}
        self._client: Any = None
        self.state = "not connected yet"

    async def run(self) -> None:
        """Connect, then pass messages on until cancelled."""
        try:
            await self._connect()
            await (self._send() if self._settings.output else asyncio.Event().wait())
        finally:
            if self._client is not None:
                await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    async def _connect(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self._join)
            except LikewiseError as error:
                self.state = error.message
                logs.warning("no MQTT broker", reason=error.message)
                await asyncio.sleep(2)
            else:
                self.state = "ok"
                logs.info("MQTT connected", topics=self._settings.topics)
                return

    def _join(self) -> None:
        client = joining(self._settings.url, client=self._settings.client_id, keeps=True)
        client.max_inflight_messages_set(1000)
        client.max_queued_messages_set(0)
        client.on_message = self._received
        group = f"$share/{self._settings.group}/" if self._settings.group else ""
        joined = Joined(client, [(group + template.filter, 1) for template in self._templates])
        client.on_disconnect = self._lost
        answered = client.on_connect

        def back(*arguments: Any) -> None:
            self.state = "ok"
            answered(*arguments)

        client.on_connect = back
        self._client = client
        joined.wait(self._settings.url)

    def _lost(self, *_: Any) -> None:
        self.state = "connection lost"
        logs.warning("MQTT connection lost")

    # in, on the client's thread

    def _received(self, client: Any, _: Any, message: Any) -> None:
        digest = hashlib.blake2b(message.payload, digest_size=16).digest()
        if message.retain and self._seen.get(message.topic) == digest:
            client.ack(message.mid, message.qos)  # the broker sends retained messages again after every restart
            return
        self._seen[message.topic] = digest
        self._broker.counts["mqtt_received"] += 1
        gathered = self._gather(message.topic, message.payload)
        received = self._broker.stamps.take(len(gathered.events))
        records = [
            LogRecord.of_event(event, namespace=self._settings.namespace, publisher="mqtt", received=moment)
            for moment, event in enumerate(gathered.events, received)
        ]
        done: Future[Any] = self._broker.log.append(records) if records else self._bury(message, gathered.rejected)
        done.add_done_callback(lambda stored: self._acknowledge(client, message, stored))

    def _acknowledge(self, client: Any, message: Any, stored: Future[Any]) -> None:
        """Only what is on disk; the rest is sent again when the connection comes back."""
        if stored.exception() is None:
            client.ack(message.mid, message.qos)
        else:
            logs.warning("MQTT message not stored", reason=str(stored.exception()))
            client.reconnect()

    def _gather(self, topic: str, payload: bytes) -> Gathered:
        extra = next((found for one in self._templates if (found := one.attributes(topic)) is not None), {})
        try:
            value = msgspec.json.decode(payload)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            value = payload.decode("utf-8", "replace").strip()
        if isinstance(value, dict) and "specversion" in value:
            return gather_cloudevents(payload)
        if isinstance(value, dict) and isinstance(value.get("attributes"), dict):
            document = value | {"attributes": extra | value["attributes"]}
        else:
            document = {"attributes": extra | (value if isinstance(value, dict) else {"value": value})}
        return gather_lines((msgspec.json.encode(document),))

    def _bury(self, message: Any, rejected: list[BadRecord]) -> Future[Any]:
        reason = rejected[0].reason if rejected else "the message holds no event"
        letter = Letter(self._settings.namespace, f"mqtt {message.topic}", reason, message.payload, now())
        self._broker.counts["mqtt_rejected"] += 1
        return self._broker.log.write(lambda connection: connection.execute(dead_letters.insert(), letter_row(letter)))

    # out

    async def _send(self) -> None:
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
        """Until the other broker has confirmed all; it may be away meanwhile."""
        under_way = [
            self._client.publish(self._topic(notice), notice.body, qos=1, retain=self._settings.retain)
            for notice in notices
        ]
        for message in under_way:
            while not message.is_published():
                if self._broker.hub.closing.is_set():
                    raise TimeoutError
                message.wait_for_publish(0.5)

    def _topic(self, notice: Notice) -> str:
        name = quote(notice.subscription, safe=" ")
        output = self._settings.output or ""
        return (
            output.replace("{subscription}", name)
            .replace("{kind}", notice.kind)
            .replace("{namespace}", notice.namespace)
        )
