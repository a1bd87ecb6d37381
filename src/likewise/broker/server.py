"""Run the broker in one process on one port, until SIGTERM or Ctrl-C."""

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
    """Closes open streams first on shutdown, so that they end cleanly and other requests can finish."""

    def __init__(self, config: uvicorn.Config, broker: Broker) -> None:
        super().__init__(config)
        self._broker = broker
        self._signal = ""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's name
        """The first signal shuts down cleanly, with exit code 0; the second exits at once."""
        # No logging here: the signal may interrupt a thread that holds the logging lock.
        self.force_exit = self.should_exit
        self.should_exit = True
        self._signal = signal.Signals(sig).name

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the streams, then the server."""
        self._broker.close_streams()
        with contextlib.suppress(OSError):  # a closed stderr must not prevent the shutdown
            structlog.get_logger("likewise.broker").info("stopping", signal=self._signal)
        await super().shutdown(sockets)


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket; port 0 chooses a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        hint = "choose another port with --port" if error.errno == errno.EADDRINUSE else "check --host and --port"
        raise BuildError(f"cannot listen on {host}:{port}: {error.strerror}", hint=hint) from None
    sock.listen(2048)
    sock.set_inheritable(True)
    return sock


def run_broker(
    settings: BrokerSettings,
    *,
    sock: socket.socket | None = None,
    recordings: Recordings | None = None,
    federation: Federation | None = None,
) -> None:
    """Run a broker until it is stopped.

    The demo mixes `recordings` into its own events; everything published here is also sent to the `federation`.
    """
    listening = sock or listen(settings.host, settings.port)
    broker = Broker(settings, federation=federation)
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # the broker logs these errors itself
    app = create_app(broker)
    if settings.page:
        add_page(app, broker, recordings=recordings)
    # Loaded modules stay, and requests create few reference cycles, so rare garbage collection is enough.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    # Each event passes through three threads; the default switch interval of 5 ms would dominate the latency.
    sys.setswitchinterval(0.0005)
    config = uvicorn.Config(app, **_options(settings))
    server = _Server(config, broker)
    try:
        server.run(sockets=[listening])
    except SystemExit:
        raise broker.start_error or BuildError(
            "the broker could not start", hint="see the log for the reason"
        ) from None
    finally:
        listening.close()


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
