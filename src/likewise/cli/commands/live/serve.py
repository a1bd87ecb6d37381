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
    folder: Annotated[Path | None, typer.Option(help="Where data is kept.", envvar="LIKEWISE_BROKER")] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on; 0 takes a free one.")] = 8420,
    database: Annotated[
        str | None, typer.Option(help="A PostgreSQL URL instead of SQLite in the folder.", envvar="LIKEWISE_DATABASE")
    ] = None,
    without_tokens: Annotated[bool, typer.Option("--open", help="Serve without tokens, on this machine only.")] = False,
    space: Annotated[list[str] | None, typer.Option(help="A space for `~`; several may be given.")] = None,
    approach: Annotated[str | None, typer.Option(help="How to match, for all subscriptions.")] = None,
    lateness: Annotated[str, typer.Option(help="How late events may come for patterns, such as 5m.")] = "0",
    keep: Annotated[str, typer.Option(help="How long the log keeps events, such as 7d; 0 keeps all.")] = "7d",
    keep_size: Annotated[
        str, typer.Option(help="How large the database may grow, such as 10g; 0 sets no limit.")
    ] = "0",
    rate: Annotated[float | None, typer.Option(help="Events a second that one token may publish.", min=1)] = None,
    private_webhooks: Annotated[bool, typer.Option(help="Let webhooks go to private addresses.")] = False,
    mqtt: Annotated[str | None, typer.Option(help="An MQTT broker, such as mqtt://127.0.0.1:1883.")] = None,
    mqtt_in: Annotated[
        list[str] | None, typer.Option(help="Topics to read, such as sensors/{building}/{type}; may be repeated.")
    ] = None,
    mqtt_out: Annotated[
        str | None, typer.Option(help="Topic of notifications, such as likewise/{subscription}.")
    ] = None,
    mqtt_group: Annotated[str | None, typer.Option(help="Share the topics with others of this group.")] = None,
    mqtt_retain: Annotated[bool, typer.Option(help="Keep the last notification of each topic.")] = False,
    node: Nodes = None,
    state: State = None,
    certificate: Annotated[Path | None, typer.Option(help="TLS certificate (PEM).")] = None,
    key: Annotated[Path | None, typer.Option(help="TLS key (PEM).")] = None,
    page: Annotated[bool, typer.Option(help="Serve the page for people on the same port.")] = True,
    demo: Annotated[
        bool,
        typer.Option(help="Play a day in a city, without tokens, in a folder of its own unless --folder is given."),
    ] = False,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    check: Annotated[bool, typer.Option(help="Check settings, database and spaces, and stop.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="The address, or what --check found, as one JSON line on stdout.")
    ] = False,
) -> None:
    """Run a broker: publish, subscribe, look back, over HTTP and MQTT, with a page to look at.

    Subscribe and publish from another terminal with `likewise subscribe` and `likewise publish`.

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
    """The federation whose entry this broker is."""
    if not nodes:
        if state is not None:
            raise InputError("a certificate needs a federation", source="<option>", hint="--node HOST:PORT")
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
    """A folder that goes away with the process."""
    found = tempfile.TemporaryDirectory(prefix="likewise-demo-", ignore_cleanup_errors=True)
    atexit.register(found.cleanup)
    return Path(found.name)


def _recordings() -> Recordings | None:
    """A day of the real streams, where the data sets are."""
    from likewise.evaluation.datasets.streams import city_recordings

    given = os.environ.get("LIKEWISE_DATA")
    if not given or not (Path(given) / "streams").is_dir():
        return None
    return lambda: city_recordings(Path(given))


def _announce(url: str, settings: BrokerSettings) -> None:
    from likewise.broker import has_page

    errors.print(f"likewise broker on {url}", markup=False)
    if settings.page:
        found = f"page: {url}/" if has_page() else "no page: pip install 'likewise[page]'"
        errors.print(found, markup=False, soft_wrap=True)
    if not settings.open:
        errors.print(f"token of the administrator: {settings.token_file}", markup=False, soft_wrap=True)


def _check(settings: BrokerSettings, *, as_json: bool) -> None:
    from likewise.broker import check_broker

    if as_json:
        print_json(dict(check_broker(settings)))
        return
    for what, found in check_broker(settings):
        typer.echo(f"{what}: {found}")


def _number(text: str, units: dict[str, int], example: str) -> float:
    """A number with a unit.

    >>> _number("5m", _UNITS, "5m"), _number("2g", _SIZES, "2g")
    (300.0, 2147483648.0)
    """
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]?)b?", text.strip().lower())
    if found is None or found[2] not in units:
        raise InputError(f"{text!r} is not understood", source="<option>", hint=f"such as {example}")
    return float(found[1]) * units[found[2]]


def _mqtt(
    url: str | None, topics: list[str] | None, output: str | None, *, group: str | None, retain: bool
) -> MqttSettings | None:
    from likewise.broker import MqttSettings

    if url is None:
        if topics or output:
            raise InputError("topics need an MQTT broker", source="<option>", hint="--mqtt mqtt://127.0.0.1:1883")
        return None
    return MqttSettings(url=url, topics=tuple(topics or ()), output=output, group=group, retain=retain)
