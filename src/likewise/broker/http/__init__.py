"""The HTTP interface of the broker."""

from likewise.broker.http.app import create_app

__all__ = ["create_app"]
