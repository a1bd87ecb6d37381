"""`likewise subscriptions`: list, show, add, change and remove the subscriptions of a broker."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from likewise.cli.output import counted, output, print_json
from likewise.cli.remote.broker import URL, AsJson, Namespace, Token, Url, connect
from likewise.errors import InputError

Name = Annotated[str, typer.Argument(help="The subscription's name.")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="The subscriptions of a broker.", no_args_is_help=True)
    for command in (add, replace, pause, resume, remove):
        group.command(command.__name__)(command)
    group.command("list")(list_all)
    group.command("show")(show)
    app.add_typer(group, name="subscriptions")


def list_all(
    tag: Annotated[str | None, typer.Option(help="Only those with this tag.")] = None,
    url: Url = URL,
    token: Token = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> None:
    """List subscriptions by name.

    Example: `likewise subscriptions list --tag city`
    """
    with connect(url, token, namespace) as client:
        found = list(client.all_subscriptions(tag=tag))
    for one in found:
        if as_json:
            print_json(one)
        else:
            state = "  (paused)" if one["paused"] else ""
            output.print(f"{one['name']}{state}  {one['text']}", markup=False, soft_wrap=True)
    if not found and not as_json:
        output.print(
            "no subscriptions yet; add one: likewise subscriptions add 'parking: {type~ = parking~}'", markup=False
        )


def show(name: Name, url: Url = URL, token: Token = None, namespace: Namespace = None, as_json: AsJson = False) -> None:
    """Show one subscription.

    Example: `likewise subscriptions show parking`
    """
    with connect(url, token, namespace) as client:
        _show(client.get_subscription(name), as_json=as_json)


def add(
    text: Annotated[str, typer.Argument(help="The text, or @FILE.")],
    *,
    tag: Annotated[list[str] | None, typer.Option(help="A tag; several may be given.")] = None,
    webhook: Annotated[str | None, typer.Option(help="A URL to send notifications to.")] = None,
    url: Url = URL,
    token: Token = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> None:
    """Add subscriptions: all of a text or, on an error, none.

    Example: `likewise subscriptions add 'parking: {type~ = parking~}' --tag city`
    """
    with connect(url, token, namespace) as client:
        found = client.subscribe(_text(text), tags=tag or (), webhook=webhook)["subscriptions"]
    for one in found:
        if as_json:
            print_json(one)
        elif one.get("secret"):
            output.print(f"{one['name']} added; the secret of its webhook: {one['secret']}", markup=False)
    if not as_json:
        output.print(f"{counted(len(found), 'subscription')} added", markup=False)


def replace(
    name: Name,
    text: Annotated[str, typer.Argument(help="The new text, or @FILE.")],
    *,
    url: Url = URL,
    token: Token = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> None:
    """Give a subscription a new text; tags and webhook stay.

    Example: `likewise subscriptions replace parking '{type~ = garage~}'`
    """
    with connect(url, token, namespace) as client:
        _show(client.change_subscription(name, text=_text(text)), as_json=as_json)


def pause(
    name: Name, url: Url = URL, token: Token = None, namespace: Namespace = None, as_json: AsJson = False
) -> None:
    """Pause a subscription; a pattern forgets what it holds.

    Example: `likewise subscriptions pause parking`
    """
    with connect(url, token, namespace) as client:
        _show(client.change_subscription(name, paused=True), as_json=as_json)


def resume(
    name: Name, url: Url = URL, token: Token = None, namespace: Namespace = None, as_json: AsJson = False
) -> None:
    """Resume a paused subscription.

    Example: `likewise subscriptions resume parking`
    """
    with connect(url, token, namespace) as client:
        _show(client.change_subscription(name, paused=False), as_json=as_json)


def remove(
    name: Name, url: Url = URL, token: Token = None, namespace: Namespace = None, as_json: AsJson = False
) -> None:
    """Remove a subscription; its notifications stay in the history.

    Example: `likewise subscriptions remove parking`
    """
    with connect(url, token, namespace) as client:
        client.unsubscribe(name)
    if as_json:
        print_json({"removed": name})
    else:
        output.print(f"{name} removed", markup=False)


def _show(one: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(one)
        return
    for key, value in one.items():
        if value not in (None, [], ""):
            output.print(f"{key}: {value}", markup=False, soft_wrap=True)


def _text(text: str) -> str:
    from likewise.cli.reading.input import read_text

    if text == "@":
        raise InputError("no file after @", source="<argument>", hint="@subscriptions.txt")
    return read_text(text[1:]) if text.startswith("@") else text
