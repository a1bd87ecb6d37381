"""`likewise subscriptions`: list, show, add, change and remove subscriptions of a broker."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from likewise.cli.output import counted, output, print_json
from likewise.cli.remote.broker import URL, AsJson, Namespace, Token, Url, connect
from likewise.errors import InputError

Name = Annotated[str, typer.Argument(help="Name of the subscription.")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="List, add, change and remove subscriptions of a broker.", no_args_is_help=True)
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
        stored = list(client.all_subscriptions(tag=tag))
    for subscription in stored:
        if as_json:
            print_json(subscription)
        else:
            state = "  (paused)" if subscription["paused"] else ""
            output.print(f"{subscription['name']}{state}  {subscription['text']}", markup=False, soft_wrap=True)
    if not stored and not as_json:
        output.print(
            "no subscriptions yet; add one: likewise subscriptions add 'parking: {type~ = parking~}'",
            markup=False,
            soft_wrap=True,
        )


def show(name: Name, url: Url = URL, token: Token = None, namespace: Namespace = None, as_json: AsJson = False) -> None:
    """Show one subscription.

    Example: `likewise subscriptions show parking`
    """
    with connect(url, token, namespace) as client:
        _show(client.get_subscription(name), as_json=as_json)


def add(
    text: Annotated[str, typer.Argument(help="Text of the subscriptions, or @FILE.")],
    *,
    tag: Annotated[list[str] | None, typer.Option(help="Tag of the subscriptions; may be repeated.")] = None,
    webhook: Annotated[str | None, typer.Option(help="URL to post notifications to.")] = None,
    url: Url = URL,
    token: Token = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> None:
    """Add all subscriptions of a text; on an error, none is added.

    Example: `likewise subscriptions add 'parking: {type~ = parking~}' --tag city`
    """
    with connect(url, token, namespace) as client:
        added = client.subscribe(_text(text), tags=tag or (), webhook=webhook)["subscriptions"]
    for subscription in added:
        if as_json:
            print_json(subscription)
        elif subscription.get("secret"):
            line = f"{subscription['name']} added; the secret of its webhook: {subscription['secret']}"
            output.print(line, markup=False)
    if not as_json:
        output.print(f"{counted(len(added), 'subscription')} added", markup=False)


def replace(
    name: Name,
    text: Annotated[str, typer.Argument(help="New text, or @FILE.")],
    *,
    url: Url = URL,
    token: Token = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> None:
    """Replace the text of a subscription; tags and webhook stay.

    Example: `likewise subscriptions replace parking '{type~ = garage~}'`
    """
    with connect(url, token, namespace) as client:
        _show(client.change_subscription(name, text=_text(text)), as_json=as_json)


def pause(
    name: Name, url: Url = URL, token: Token = None, namespace: Namespace = None, as_json: AsJson = False
) -> None:
    """Pause a subscription; a pattern loses its partial instances.

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


def _show(subscription: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(subscription)
        return
    for key, value in subscription.items():
        if value not in (None, [], ""):
            output.print(f"{key}: {value}", markup=False, soft_wrap=True)


def _text(text: str) -> str:
    from likewise.cli.reading.input import read_text

    if text == "@":
        raise InputError("no file name after @", source="<argument>", hint="such as @subscriptions.lw")
    return read_text(text[1:]) if text.startswith("@") else text
