"""What the broker's commands share: the options that say which broker, and how arrivals are shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.errors import InputError

if TYPE_CHECKING:
    from likewise.broker import Arrival, BrokerClient

Url = Annotated[str, typer.Option(help="The broker.", envvar="LIKEWISE_URL", show_default="this machine")]
Token = Annotated[
    str | None,
    typer.Option(help="A token; for a broker of yours on this machine it is found.", envvar="LIKEWISE_TOKEN"),
]
Namespace = Annotated[str | None, typer.Option(help="The namespace, for a token of all namespaces.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document a line.")]
Count = Annotated[int | None, typer.Option(help="Stop after this many.", min=1)]
Timeout = Annotated[float | None, typer.Option(help="Stop after this many seconds.", min=0)]
URL = "http://127.0.0.1:8420"


def connect(url: str, token: str | None, namespace: str | None) -> BrokerClient:
    """A client of the chosen broker."""
    from likewise.broker import BrokerClient

    return BrokerClient(url, token=token, namespace=namespace)


def attributes_line(event: dict[str, Any]) -> str:
    """An event in one line.

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
    """A time as people write it."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text!r} is no time", source="<option>", hint="such as 2026-01-01T10:00:00Z") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def event_of_words(words: Iterable[str]) -> dict[str, Any]:
    """An event from `name=value` arguments; numbers and true or false are taken as such.

    >>> event_of_words(["type=car park", "slots=3", "open=true"])
    {'attributes': {'type': 'car park', 'slots': 3, 'open': True}}
    """
    attributes: dict[str, Any] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name.strip():
            raise InputError(f"{word!r} is no attribute", source="<argument>", hint="such as type=parking slots=3")
        attributes[name.strip()] = _value(value.strip())
    return {"attributes": attributes}


def _value(text: str) -> str | bool | int | float:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            found = kind(text)
        except ValueError:
            continue
        return found if text.lower().lstrip("+-") not in ("nan", "inf", "infinity") else text
    return text


def chunks(lines: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    """Lines in groups."""
    group: list[bytes] = []
    for line in lines:
        group.append(line)
        if len(group) >= size:
            yield group
            group = []
    if group:
        yield group
