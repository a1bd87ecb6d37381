"""`likewise subscribe`: follow subscriptions of a broker or a federation."""

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
        list[str] | None,
        typer.Argument(help="Subscription as text, or names of stored ones. [default: all stored]"),
    ] = None,
    *,
    keep: Annotated[
        bool, typer.Option(help="Keep a subscription that was given as text after the command ends.")
    ] = False,
    after: Annotated[
        str | None, typer.Option(help="Start after the notification with this id; 0 starts with the oldest.")
    ] = None,
    score: Annotated[float, typer.Option(help="Show only notifications with at least this score.", min=0, max=1)] = 0.0,
    count: Count = None,
    timeout: Timeout = None,
    url: Url = URL,
    token: Token = None,
    namespace: Namespace = None,
    node: Nodes = None,
    state: State = None,
    as_json: AsJson = False,
) -> None:
    """Subscribe, and print notifications as they arrive, until Ctrl-C.

    With --node, they come from a federation, and subscriptions are given as texts or files.

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
        # A new subscription is read from its start, so that nothing is lost between creating and following it.
        start = "0" if after is None and is_new else after
        arrivals = client.stream(*names, after=start, score=score, timeout=timeout)
        for number, arrival in enumerate(arrivals, 1):
            if as_json:
                typer.echo(msgspec.json.encode(arrival).decode())
            else:
                output.print(arrival_line(arrival), markup=False, soft_wrap=True)
            if number == count:
                break


def _source(interest: list[str]) -> str:
    """The text of subscriptions that are given as texts or files."""
    if not interest:
        raise InputError("no subscription is given", source="<argument>", hint="give its text, or the path of a file")
    return "\n".join(argument if _is_text(argument) else read_text(Path(argument)) for argument in interest)


def _is_text(argument: str) -> bool:
    """Whether an argument is a subscription's text, not a name or path."""
    return "{" in argument or "(" in argument


@contextlib.contextmanager
def _followed(client: BrokerClient, interest: list[str], *, keep: bool) -> Iterator[tuple[list[str], bool]]:
    """The names to follow, and whether all are new; texts are subscribed, and unsubscribed at the end unless kept."""
    texts = [argument for argument in interest if _is_text(argument)]
    names = [argument for argument in interest if argument not in texts]
    created: list[str] = []
    try:
        for text in texts:
            created += _subscribed(client, text)
        for name in names:
            client.get_subscription(name)
        shown = ", ".join((*names, *created)) or "all subscriptions"
        errors.print(f"following {shown}", markup=False)
        yield [*names, *created], bool(created) and not names
    finally:
        if not keep:
            for name in created:
                with contextlib.suppress(Exception):
                    client.unsubscribe(name)


def _subscribed(client: BrokerClient, text: str) -> list[str]:
    from likewise.language import Subscription, format_subscription, parse

    parsed = parse(text)
    if [subscription.name for subscription in parsed] == ["s1"] and not text.lstrip().startswith("s1"):
        # A text without a name gets a random one, so that it replaces no other.
        [unnamed] = parsed
        text = format_subscription(Subscription(f"cli-{secrets.token_hex(3)}", unnamed.body, unnamed.options))
    return [stored["name"] for stored in client.subscribe(text)["subscriptions"]]
