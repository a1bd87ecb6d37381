"""`likewise history`: show past events and notifications of a broker, or explain one."""

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
    why: Annotated[
        str | None, typer.Option(help="Id of an event: explain why it matches the subscription, or why not.")
    ] = None,
    since: Annotated[str | None, typer.Option(help="From this time on (ISO 8601).")] = None,
    until: Annotated[str | None, typer.Option(help="Before this time (ISO 8601).")] = None,
    limit: Annotated[int, typer.Option(help="Show at most this many; 0 shows all.", min=0)] = 20,
    oldest: Annotated[bool, typer.Option(help="Show the oldest first.")] = False,
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
            names = subscription or [stored["name"] for stored in client.all_subscriptions()]
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
        for entry in client.pages(kind, newest=not oldest, limit=limit or None, **options):
            shown += 1
            if as_json:
                print_json(entry if kind == "notifications" else _event(entry))
            else:
                output.print(_line(kind, entry), markup=False, soft_wrap=True)
    if not shown and not as_json:
        errors.print(f"{counted(0, kind[:-1])} yet", markup=False)


def _explain(explanation: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(explanation)
    else:
        output.print(explanation["text"], markup=False, soft_wrap=True)


def _event(entry: dict[str, Any]) -> dict[str, Any]:
    """An event in the format that other commands read, without its position in the log."""
    return {name: entry[name] for name in ("id", "time", "end", "theme", "attributes") if name in entry}


def _line(kind: str, entry: dict[str, Any]) -> str:
    if kind == "events":
        return f"{entry['position']}  {entry['time']}  {entry['id']}  {attributes_line(entry)}"
    events = "  then  ".join(map(attributes_line, entry["events"]))
    return f"{entry['id']}  {entry['subscription']}  {entry['score']:.2f}  {events}"
