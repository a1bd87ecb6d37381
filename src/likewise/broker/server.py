"""Running the broker: one process, one port, stopped in order by SIGTERM or Ctrl-C."""

from __future__ import annotations

import contextlib
import errno
import gc
import logging
import signal
import socket
import sys
from types import FrameType
from typing import Any

import structlog
import uvicorn

from likewise.broker.delivery.federation import Federation
from likewise.broker.http import create_app
from likewise.broker.page import Recordings, add_page
from likewise.broker.service import Broker
from likewise.broker.settings import BrokerSettings
from likewise.errors import BuildError


class _Server(uvicorn.Server):
    """Ends the endless streams first, so that clients see a clean end and the others are answered."""

    def __init__(self, config: uvicorn.Config, broker: Broker) -> None:
        super().__init__(config)
        self._broker = broker
        self._signal = ""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's name
        """The first signal ends in order, with exit code 0; the second does not wait."""
        # Nothing more: a signal may come in the middle of a line of the log, whose lock is then held below.
        self.force_exit = self.should_exit
        self.should_exit = True
        self._signal = signal.Signals(sig).name

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then all else."""
        self._broker.close_streams()
        with contextlib.suppress(OSError):  # a log that nobody reads any more must not keep the server from ending
            structlog.get_logger("likewise.broker").info("stopping", signal=self._signal)
        await super().shutdown(sockets)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except OSError as error:
        found.close()
        hint = "choose another with --port" if error.errno == errno.EADDRINUSE else "check --host and --port"
        raise BuildError(f"cannot listen on {host}:{port}: {error.strerror}", hint=hint) from None
    found.listen(2048)
    found.set_inheritable(True)
    return found


def run_broker(
    settings: BrokerSettings,
    *,
    sock: socket.socket | None = None,
    recordings: Recordings | None = None,
    federation: Federation | None = None,
) -> None:
    """Run a broker until it is stopped.

    `recordings` are events that the demo mixes into its own; a `federation` gets all that is published here.
    """
    opened = sock or listen(settings.host, settings.port)
    broker = Broker(settings, federation=federation)
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # what it would say is said in our own way
    app = create_app(broker)
    if settings.page:
        add_page(app, broker, recordings=recordings)
    # What is loaded stays, and requests leave few cycles behind: looking for garbage seldom is enough.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    # Requests, log and engines hand each event on; a thread that waits 5 ms for its turn would be most of the way.
    sys.setswitchinterval(0.0005)
    config = uvicorn.Config(app, **_options(settings))
    server = _Server(config, broker)
    try:
        server.run(sockets=[opened])
    except SystemExit:
        raise broker.trouble or BuildError("the broker could not start", hint="the log says more") from None
    finally:
        opened.close()


def _options(settings: BrokerSettings) -> dict[str, Any]:
    return {
        "log_config": None,
        "access_log": False,
        "lifespan": "on",
        "ws": "websockets-sansio",
        "timeout_graceful_shutdown": 10,
        "timeout_keep_alive": 75,
        "server_header": False,
        "proxy_headers": False,
        "date_header": False,
        "backlog": 2048,
        "ssl_certfile": settings.certificate,
        "ssl_keyfile": settings.key,
    }
