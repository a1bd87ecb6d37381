"""The errors of a live broker, beside those of the language and of bad input."""

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
    """The database cannot store at the moment; nothing was acknowledged."""


class BusyError(LikewiseError):
    """More was asked than can be done at the moment."""


class QuotaError(LikewiseError):
    """A limit of this client or namespace is reached."""


class TooLargeError(LikewiseError):
    """A body or a text that is longer than allowed."""


class ConflictError(LikewiseError):
    """Something of that name is already there, or has changed meanwhile."""


class NotFoundError(LikewiseError):
    """There is nothing of that name."""


class AccessError(LikewiseError):
    """No token, a wrong one, or one without the role."""

    def __init__(self, message: str, *, hint: str | None = None, known: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.known = known
        """Whether the token is good but lacks the role."""


class RemoteError(LikewiseError):
    """A broker that refused a request: its problem document."""

    def __init__(self, message: str, *, status: int, problem: dict[str, object], hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.problem = problem
