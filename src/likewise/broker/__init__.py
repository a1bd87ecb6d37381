"""The broker: a live service that stores events, matches them and delivers notifications.

Names are imported on first use, so that a client does not load the server.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likewise.broker.client import Arrival, AsyncBrokerClient, BrokerClient
    from likewise.broker.errors import RemoteError
    from likewise.broker.http import create_app
    from likewise.broker.operate.check import check_broker
    from likewise.broker.operate.logs import configure_logs
    from likewise.broker.page import has_page
    from likewise.broker.server import listen, run_broker
    from likewise.broker.service import Broker
    from likewise.broker.settings import (
        DEFAULT_PORT,
        BrokerSettings,
        HookPolicy,
        MqttSettings,
        Quotas,
        Retention,
        default_folder,
        is_loopback,
    )

_HOMES = {
    "DEFAULT_PORT": "settings",
    "Arrival": "client",
    "AsyncBrokerClient": "client",
    "Broker": "service",
    "BrokerClient": "client",
    "BrokerSettings": "settings",
    "HookPolicy": "settings",
    "MqttSettings": "settings",
    "Quotas": "settings",
    "RemoteError": "errors",
    "Retention": "settings",
    "check_broker": "operate.check",
    "configure_logs": "operate.logs",
    "create_app": "http",
    "default_folder": "settings",
    "has_page": "page",
    "is_loopback": "settings",
    "listen": "server",
    "run_broker": "server",
}

__all__ = [
    "DEFAULT_PORT",
    "Arrival",
    "AsyncBrokerClient",
    "Broker",
    "BrokerClient",
    "BrokerSettings",
    "HookPolicy",
    "MqttSettings",
    "Quotas",
    "RemoteError",
    "Retention",
    "check_broker",
    "configure_logs",
    "create_app",
    "default_folder",
    "has_page",
    "is_loopback",
    "listen",
    "run_broker",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
