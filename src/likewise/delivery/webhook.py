"""A webhook: JSON documents sent by POST, with retries while the receiver is down or overloaded."""

from __future__ import annotations

import http.client
import itertools
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from likewise.errors import BuildError, DeliveryError

PATIENCE: Final = 60.0
"""Seconds for which delivery is retried."""
_TIMEOUT: Final = 30.0
_LONGEST_PAUSE: Final = 10.0


@dataclass(frozen=True, slots=True)
class Webhook:
    """Posts to one URL.

    No answer and the codes 429 and 5xx are retried for `patience` seconds; other 4xx codes fail at once.
    """

    url: str
    patience: float = PATIENCE
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise BuildError(f"{self.url!r} is not the address of a webhook", hint="such as http://localhost:8000/hook")

    def post(self, body: bytes, *, key: str) -> None:
        """Send one document; `key` is its `Idempotency-Key`, by which the receiver can drop a repeat."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": key, **self.headers}
        request = urllib.request.Request(self.url, data=body, headers=headers, method="POST")
        end = time.monotonic() + self.patience
        for attempt in itertools.count(1):
            try:
                with urllib.request.urlopen(request, timeout=_TIMEOUT):
                    return
            except (OSError, http.client.HTTPException) as error:
                pause = min(2.0**attempt / 10, _LONGEST_PAUSE)
                if _is_final(error) or time.monotonic() + pause > end:
                    raise DeliveryError(f"{self.url} did not accept message {key}: {error}") from error
                time.sleep(pause)


def _is_final(error: Exception) -> bool:
    """Whether a retry is useless: the receiver rejected the message itself."""
    return isinstance(error, urllib.error.HTTPError) and error.code < 500 and error.code != 429
