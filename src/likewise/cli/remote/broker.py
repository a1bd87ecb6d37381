"""Shared code of the broker's commands: connection options, and how events and notifications are printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.errors import InputError

if TYPE_CHECKING:
    from likewise.broker import Arrival, BrokerClient

Url = Annotated[str, typer.Option(help="URL of the broker.", envvar="LIKEWISE_URL")]
Token = Annotated[
    str | None,
    typer.Option(help="Access token; that of your own broker on this machine is found.", envvar="LIKEWISE_TOKEN"),
]
Namespace = Annotated[str | None, typer.Option(help="Namespace, if the token is valid for all.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document a line.")]
Count = Annotated[int | None, typer.Option(help="Stop after this many.", min=1)]
Timeout = Annotated[float | None, typer.Option(help="Stop after this many seconds.", min=0)]
URL = "http://127.0.0.1:8420"


def connect(url: str, token: str | None, namespace: str | None) -> BrokerClient:
    """A client of the broker at a URL."""
    from likewise.broker import BrokerClient

    return BrokerClient(url, token=token, namespace=namespace)


def attributes_line(event: dict[str, Any]) -> str:
    """The attributes of an event in one line.

    >>> attributes_line({"attributes": {"type": "parking", "slot": [1, 2]}})
    'type: parking, slot: 1 | 2'
    """
    shown = (
        f"{name}: {' | '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in event["attributes"].items()
    )
    return ", ".join(shown)


def arrival_line(arrival: Arrival) -> str:
    """A notification in one line: its subscription, its score and its events."""
    events = "  then  ".join(map(attributes_line, arrival.events))
    return f"{arrival.subscription}  {arrival.score:.2f}  {events}"


def moment(text: str) -> datetime:
    """An ISO 8601 time, in UTC unless it names a zone."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text!r} is not a time", source="<option>", hint="such as 2026-01-01T10:00:00Z") from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def event_of_words(words: Iterable[str]) -> dict[str, Any]:
    """An event from `name=value` arguments; numbers and booleans are recognised.

    >>> event_of_words(["type=car park", "slots=3", "open=true"])
    {'attributes': {'type': 'car park', 'slots': 3, 'open': True}}
    """
    attributes: dict[str, Any] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name.strip():
            raise InputError(
                f"{word!r} is not an attribute", source="<argument>", hint="write name=value, such as slots=3"
            )
        attributes[name.strip()] = _value(value.strip())
    return {"attributes": attributes}


def _value(text: str) -> str | bool | int | float:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if text.lower().lstrip("+-") not in ("nan", "inf", "infinity") else text
    return text


def chunks(lines: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    """Lines in lists of at most `size`."""
    group: list[bytes] = []
    for line in lines:
        group.append(line)
        if len(group) >= size:
            yield group
            group = []
    if group:
        yield group
