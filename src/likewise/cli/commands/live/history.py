"""`likewise history`: look back at what a broker stored and found, and why."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from likewise.cli.output import counted, errors, output, print_json
from likewise.cli.remote.broker import URL, AsJson, Namespace, Token, Url, attributes_line, connect, moment


def register(app: typer.Typer) -> None:
    app.command("history")(history)


def history(
    what: Annotated[str | None, typer.Argument(help="`events`, `notifications`, or the id of a notification.")] = None,
    *,
    subscription: Annotated[list[str] | None, typer.Option(help="Only of this subscription; may be repeated.")] = None,
    why: Annotated[str | None, typer.Option(help="An event's id: why it answers the subscription, or why not.")] = None,
    since: Annotated[str | None, typer.Option(help="From this time on.")] = None,
    until: Annotated[str | None, typer.Option(help="Before this time.")] = None,
    limit: Annotated[int, typer.Option(help="At most this many; 0 gives all.", min=0)] = 20,
    oldest: Annotated[bool, typer.Option(help="The oldest first.")] = False,
    url: Url = URL,
    token: Token = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> None:
    """Show past events or notifications, newest first, or explain one.

    Example: `likewise history notifications --subscription parking`
    """
    with connect(url, token, namespace) as client:
        if why is not None:
            names = subscription or [one["name"] for one in client.all_subscriptions()]
            for name in names:
                _explain(client.why(why, name), as_json=as_json)
            return
        if what is not None and what.isdigit():
            _explain(client.explain(what), as_json=as_json)
            return
        options: dict[str, Any] = {
            "since": None if since is None else moment(since),
            "until": None if until is None else moment(until),
        }
        shown = 0
        kind = "events" if what == "events" else "notifications"
        if kind == "notifications":
            options["subscription"] = subscription or ()
        for one in client.pages(kind, newest=not oldest, limit=limit or None, **options):
            shown += 1
            if as_json:
                print_json(one if kind == "notifications" else _event(one))
            else:
                output.print(_line(kind, one), markup=False, soft_wrap=True)
    if not shown and not as_json:
        errors.print(f"{counted(0, kind[:-1])} yet", markup=False)


def _explain(found: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
    else:
        output.print(found["text"], markup=False, soft_wrap=True)


def _event(one: dict[str, Any]) -> dict[str, Any]:
    """An event as other commands read it, without its place in the log."""
    return {name: one[name] for name in ("id", "time", "end", "theme", "attributes") if name in one}


def _line(kind: str, one: dict[str, Any]) -> str:
    if kind == "events":
        return f"{one['position']}  {one['time']}  {one['id']}  {attributes_line(one)}"
    events = "  then  ".join(map(attributes_line, one["events"]))
    return f"{one['id']}  {one['subscription']}  {one['score']:.2f}  {events}"
