"""Structured logs on stderr: JSON lines, or readable lines on a terminal. Secrets are removed."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

_SECRET_KEYS = ("authorization", "token", "secret", "password", "cookie")
_SECRETS = re.compile(r"lw_[0-9a-f]+_[\w\-]+|whsec_[\w+/=]+|(?<=access_token=)[^&\s]+|(?<=://)[^/@\s]+:[^/@\s]+(?=@)")


def configure_logs(*, level: str) -> None:
    """Set up logging for this process: JSON unless stderr is a terminal."""
    number = getattr(logging, level.upper(), logging.INFO)
    renderer: Any = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    if not sys.stderr.isatty():
        renderer = structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            redacted,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, force=True)


def redacted(_logger: object, _method: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace secrets, recognised by key or by format.

    >>> dict(redacted(None, "", {"token": "x", "url": "http://a/?access_token=abc&b=1"}))
    {'token': '…', 'url': 'http://a/?access_token=…&b=1'}
    """
    for key, value in entry.items():
        if key in _SECRET_KEYS:
            entry[key] = "…"
        elif isinstance(value, str):
            entry[key] = _SECRETS.sub("…", value)
    return entry
