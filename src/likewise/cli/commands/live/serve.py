"""`likewise serve`: run a broker."""

from __future__ import annotations

import atexit
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from likewise.cli.output import errors, print_json
from likewise.cli.remote.federation import Nodes, State, folder_of
from likewise.errors import InputError

if TYPE_CHECKING:
    from likewise.broker import BrokerSettings, MqttSettings
    from likewise.broker.page import Recordings
    from likewise.overlay.net import OverlayEntry

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def register(app: typer.Typer) -> None:
    app.command("serve")(serve)


def serve(
    *,
    folder: Annotated[
        Path | None,
        typer.Option(help="Folder for the data. [default: in the user's data folder]", envvar="LIKEWISE_BROKER"),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.")] = 8420,
    database: Annotated[
        str | None, typer.Option(help="PostgreSQL URL, instead of SQLite in the folder.", envvar="LIKEWISE_DATABASE")
    ] = None,
    without_tokens: Annotated[
        bool, typer.Option("--open", help="Serve without tokens; only on a loopback address.")
    ] = False,
    space: Annotated[list[str] | None, typer.Option(help="Space for `~`, by name or path; may be repeated.")] = None,
    approach: Annotated[str | None, typer.Option(help="Default approach of all subscriptions.")] = None,
    lateness: Annotated[str, typer.Option(help="How late events may arrive for patterns, such as 5m.")] = "0",
    keep: Annotated[str, typer.Option(help="How long events are kept, such as 7d; 0 keeps all.")] = "7d",
    keep_size: Annotated[
        str, typer.Option(help="How large the database may grow, such as 10g; 0 sets no limit.")
    ] = "0",
    rate: Annotated[
        float | None, typer.Option(help="Most events per second that one token may publish.", min=1)
    ] = None,
    private_webhooks: Annotated[bool, typer.Option(help="Allow webhooks to private addresses.")] = False,
    mqtt: Annotated[str | None, typer.Option(help="URL of an MQTT broker, such as mqtt://127.0.0.1:1883.")] = None,
    mqtt_in: Annotated[
        list[str] | None, typer.Option(help="MQTT topic to read, such as sensors/{building}/{type}; may be repeated.")
    ] = None,
    mqtt_out: Annotated[
        str | None, typer.Option(help="MQTT topic for notifications, such as likewise/{subscription}.")
    ] = None,
    mqtt_group: Annotated[
        str | None, typer.Option(help="Share the MQTT topics with other brokers of this group.")
    ] = None,
    mqtt_retain: Annotated[bool, typer.Option(help="Retain the last notification of each MQTT topic.")] = False,
    node: Nodes = None,
    state: State = None,
    certificate: Annotated[Path | None, typer.Option(help="TLS certificate (PEM).")] = None,
    key: Annotated[Path | None, typer.Option(help="TLS key (PEM).")] = None,
    page: Annotated[bool, typer.Option(help="Serve the web page on the same port.")] = True,
    demo: Annotated[
        bool,
        typer.Option(help="Play a day in a city, without tokens; in a temporary folder unless --folder is given."),
    ] = False,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    check: Annotated[bool, typer.Option(help="Check settings, database and spaces, and exit.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the address, or the results of --check, as JSON on stdout.")
    ] = False,
) -> None:
    """Run a live broker with HTTP, server-sent events, WebSocket, MQTT, webhooks and a web page.

    From another terminal: `likewise subscribe '{type~ = parking~}'` and `likewise publish type='car park'`.

    Example: `likewise serve --folder broker --keep 30d`
    """
    from likewise.broker import BrokerSettings, Quotas, Retention, configure_logs, default_folder, is_loopback

    settings = BrokerSettings(
        folder=folder or (_demo_folder() if demo else default_folder()),
        database=database,
        host=host,
        port=port,
        open=without_tokens or (demo and is_loopback(host)),
        spaces=tuple(space or ()),
        approach=approach,
        lateness=int(_number(lateness, _UNITS, "5m") * 1e6),
        private_webhooks=private_webhooks,
        mqtt=_mqtt(mqtt, mqtt_in, mqtt_out, group=mqtt_group, retain=mqtt_retain),
        certificate=certificate,
        key=key,
        quotas=Quotas(events_per_second=rate),
        retention=Retention(
            age=_number(keep, _UNITS, "7d") or None, bytes=int(_number(keep_size, _SIZES, "10g")) or None
        ),
        page=page,
        demo=demo,
    )
    configure_logs(level=log_level)
    if check:
        _check(settings, as_json=as_json)
    else:
        _run(settings, _federation(node, state), as_json=as_json)


def _federation(nodes: list[str] | None, state: Path | None) -> OverlayEntry | None:
    """The connection to a federation to which the broker forwards its events, if any."""
    if not nodes:
        if state is not None:
            raise InputError("--state needs --node", source="<option>", hint="add --node HOST:PORT")
        return None
    from likewise.overlay.net import OverlayEntry

    return OverlayEntry(nodes, state=folder_of(state))


def _run(settings: BrokerSettings, federation: OverlayEntry | None, *, as_json: bool) -> None:
    from likewise.broker import listen, run_broker

    sock = listen(settings.host, settings.port)
    port = sock.getsockname()[1]
    scheme = "https" if settings.certificate else "http"
    url = f"{scheme}://{settings.host}:{port}"
    if as_json:
        print_json({"url": url, "token_file": None if settings.open else str(settings.token_file)})
        sys.stdout.flush()
    else:
        _announce(url, settings)
    run_broker(settings, sock=sock, recordings=_recordings() if settings.demo else None, federation=federation)


def _demo_folder() -> Path:
    """A temporary folder that is deleted when the process ends."""
    temporary = tempfile.TemporaryDirectory(prefix="likewise-demo-", ignore_cleanup_errors=True)
    atexit.register(temporary.cleanup)
    return Path(temporary.name)


def _recordings() -> Recordings | None:
    """A day of recorded streams, if the data sets are there."""
    from likewise.evaluation.datasets.streams import city_recordings

    folder = os.environ.get("LIKEWISE_DATA")
    if not folder or not (Path(folder) / "streams").is_dir():
        return None
    return lambda: city_recordings(Path(folder))


def _announce(url: str, settings: BrokerSettings) -> None:
    from likewise.broker import has_page

    errors.print(f"likewise broker on {url}", markup=False)
    if settings.page:
        line = f"page: {url}/" if has_page() else "no page: pip install 'likewise[page]'"
        errors.print(line, markup=False, soft_wrap=True)
    if not settings.open:
        errors.print(f"administrator token: {settings.token_file}", markup=False, soft_wrap=True)


def _check(settings: BrokerSettings, *, as_json: bool) -> None:
    from likewise.broker import check_broker

    if as_json:
        print_json(dict(check_broker(settings)))
        return
    for name, result in check_broker(settings):
        typer.echo(f"{name}: {result}")


def _number(text: str, units: dict[str, int], example: str) -> float:
    """A number with a unit.

    >>> _number("5m", _UNITS, "5m"), _number("2g", _SIZES, "2g")
    (300.0, 2147483648.0)
    """
    parts = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]?)b?", text.strip().lower())
    if parts is None or parts[2] not in units:
        known = ", ".join(filter(None, units))
        hint = f"write a number and a unit ({known}), such as {example}"
        raise InputError(f"{text!r} is not understood", source="<option>", hint=hint)
    return float(parts[1]) * units[parts[2]]


def _mqtt(
    url: str | None, topics: list[str] | None, output: str | None, *, group: str | None, retain: bool
) -> MqttSettings | None:
    from likewise.broker import MqttSettings

    if url is None:
        if topics or output:
            raise InputError(
                "--mqtt-in and --mqtt-out need --mqtt", source="<option>", hint="--mqtt mqtt://127.0.0.1:1883"
            )
        return None
    return MqttSettings(url=url, topics=tuple(topics or ()), output=output, group=group, retain=retain)
