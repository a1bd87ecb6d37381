"""`likewise tail`: print the events of a broker as they are stored."""

from __future__ import annotations

from typing import Annotated

import typer

from likewise.cli.output import output, print_json
from likewise.cli.remote.broker import (
    URL,
    AsJson,
    Count,
    Namespace,
    Timeout,
    Token,
    Url,
    attributes_line,
    connect,
)


def register(app: typer.Typer) -> None:
    app.command("tail")(tail)


def tail(
    *,
    after: Annotated[
        str | None, typer.Option(help="Start after this position in the log; 0 starts with the oldest event.")
    ] = None,
    count: Count = None,
    timeout: Timeout = None,
    url: Url = URL,
    token: Token = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> None:
    """Print every event of the broker as it arrives, until Ctrl-C.

    Example: `likewise tail --json --count 10`
    """
    with connect(url, token, namespace) as client:
        for number, event in enumerate(client.stream_events(after=after, timeout=timeout), 1):
            if as_json:
                print_json(event)
            else:
                output.print(f"{event['time']}  {attributes_line(event)}", markup=False, soft_wrap=True)
            if number == count:
                break
