"""`likewise subscribe`: follow subscriptions of a broker, also one made for the moment."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from likewise.cli.output import errors, output
from likewise.cli.reading.input import read_text
from likewise.cli.remote.broker import URL, AsJson, Count, Namespace, Timeout, Token, Url, arrival_line, connect
from likewise.cli.remote.federation import Nodes, State, follow, until_signal
from likewise.errors import InputError

if TYPE_CHECKING:
    from likewise.broker import BrokerClient


def register(app: typer.Typer) -> None:
    app.command("subscribe")(subscribe)


def subscribe(
    interest: Annotated[
        list[str] | None, typer.Argument(help="A subscription's text, or names; all of them by default.")
    ] = None,
    *,
    keep: Annotated[bool, typer.Option(help="Keep a subscription that was given as text.")] = False,
    after: Annotated[str | None, typer.Option(help="Begin after this notification; 0 begins with the oldest.")] = None,
    score: Annotated[float, typer.Option(help="Notifications of at least this score.", min=0, max=1)] = 0.0,
    count: Count = None,
    timeout: Timeout = None,
    url: Url = URL,
    token: Token = None,
    namespace: Namespace = None,
    node: Nodes = None,
    state: State = None,
    as_json: AsJson = False,
) -> None:
    """Print notifications as they come, until Ctrl-C, a count or a timeout.

    With --node, they come from a federation; the subscriptions are texts, or the paths of files.

    Example: `likewise subscribe '{type~ = parking~, slots > 0}'`
    """
    import msgspec

    if node:
        asyncio.run(
            until_signal(
                follow(_source(interest or []), node, state=state, count=count, timeout=timeout, as_json=as_json)
            )
        )
        return
    with connect(url, token, namespace) as client, _followed(client, interest or [], keep=keep) as followed:
        names, is_new = followed
        # All of a new subscription is new: nothing is lost between making and following it.
        start = "0" if after is None and is_new else after
        found = client.stream(*names, after=start, score=score, timeout=timeout)
        for number, arrival in enumerate(found, 1):
            if as_json:
                typer.echo(msgspec.json.encode(arrival).decode())
            else:
                output.print(arrival_line(arrival), markup=False, soft_wrap=True)
            if number == count:
                break


def _source(interest: list[str]) -> str:
    """Subscriptions, given as texts or as files."""
    if not interest:
        raise InputError("no subscription", source="<argument>", hint="give its text, or the path of a file")
    return "\n".join(one if "{" in one or "(" in one else read_text(Path(one)) for one in interest)


@contextlib.contextmanager
def _followed(client: BrokerClient, interest: list[str], *, keep: bool) -> Iterator[tuple[list[str], bool]]:
    """The names to follow, and whether all are new; a text becomes a subscription, which goes again at the end."""
    texts = [one for one in interest if "{" in one or "(" in one]
    names = [one for one in interest if one not in texts]
    made: list[str] = []
    try:
        for text in texts:
            made += _subscribed(client, text)
        for name in names:
            client.get_subscription(name)
        shown = ", ".join((*names, *made)) or "all subscriptions"
        errors.print(f"following {shown}", markup=False)
        yield [*names, *made], bool(made) and not names
    finally:
        if not keep:
            for name in made:
                with contextlib.suppress(Exception):
                    client.unsubscribe(name)


def _subscribed(client: BrokerClient, text: str) -> list[str]:
    from likewise.language import Subscription, format_subscription, parse

    found = parse(text)
    given = {one.name: one for one in found}
    if list(given) == ["s1"] and not text.lstrip().startswith("s1"):
        one = given["s1"]
        text = format_subscription(Subscription(f"cli-{secrets.token_hex(3)}", one.body, one.options))
    return [one["name"] for one in client.subscribe(text)["subscriptions"]]
