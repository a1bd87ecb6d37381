"""The web page of a broker: events, matches and their explanations. It needs the extra `page`."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from likewise.broker.page.city import INTERESTS, Recordings, city_day

if TYPE_CHECKING:
    from fastapi import FastAPI

    from likewise.broker.service import Broker

__all__ = ["INTERESTS", "Recordings", "add_page", "city_day", "has_page"]


def has_page() -> bool:
    """Whether the packages that the page needs are installed."""
    return find_spec("nicegui") is not None


def add_page(app: FastAPI, broker: Broker, *, recordings: Recordings | None = None) -> bool:
    """Add the page to the broker's application; returns False if its packages are not installed."""
    if not has_page():
        return False
    from likewise.broker.page.mount import mount_page

    mount_page(app, broker, recordings=recordings)
    return True
