"""The page: see what events mean, and why each match happened. It needs the extra `page`."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from likewise.broker.page.city import INTERESTS, Recordings, city_day

if TYPE_CHECKING:
    from fastapi import FastAPI

    from likewise.broker.service import Broker

__all__ = ["INTERESTS", "Recordings", "add_page", "city_day", "has_page"]


def has_page() -> bool:
    """Whether what the page needs is installed."""
    return find_spec("nicegui") is not None


def add_page(app: FastAPI, broker: Broker, *, recordings: Recordings | None = None) -> bool:
    """Put the page into the broker's application, if it can be had; says whether."""
    if not has_page():
        return False
    from likewise.broker.page.mount import mount_page

    mount_page(app, broker, recordings=recordings)
    return True
