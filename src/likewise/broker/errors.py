"""Errors that only a running broker raises."""

from __future__ import annotations

from likewise.errors import LikewiseError

__all__ = [
    "AccessError",
    "BusyError",
    "ConflictError",
    "NotFoundError",
    "QuotaError",
    "RemoteError",
    "StorageError",
    "TooLargeError",
]


class StorageError(LikewiseError):
    """The database cannot be read or written at the moment; nothing was acknowledged."""


class BusyError(LikewiseError):
    """The broker is overloaded; a later retry may succeed."""


class QuotaError(LikewiseError):
    """A limit of this client or namespace was reached."""


class TooLargeError(LikewiseError):
    """A request body or a subscription is larger than allowed."""


class ConflictError(LikewiseError):
    """The name is already in use, or an idempotency key was used for another request."""


class NotFoundError(LikewiseError):
    """Nothing has this name or id."""


class AccessError(LikewiseError):
    """The token is missing or invalid, or lacks the required role."""

    def __init__(self, message: str, *, hint: str | None = None, authenticated: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.authenticated = authenticated
        """Whether the token is valid but does not allow the request."""


class RemoteError(LikewiseError):
    """A broker refused a request; `problem` is its problem document."""

    def __init__(self, message: str, *, status: int, problem: dict[str, object], hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.problem = problem
