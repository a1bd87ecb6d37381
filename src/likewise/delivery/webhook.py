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
"""Seconds for which a receiver that does not answer is asked again."""
_TIMEOUT: Final = 30.0
_LONGEST_PAUSE: Final = 10.0


@dataclass(frozen=True, slots=True)
class Webhook:
    """A receiver by its address.

    A receiver that does not answer, or says that it cannot now (429, 5xx), is asked again for `patience` seconds; one
    that refuses the message (other 4xx) fails at once.
    """

    url: str
    patience: float = PATIENCE
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise BuildError(f"{self.url!r} is not the address of a webhook", hint="such as http://localhost:8000/hook")

    def post(self, body: bytes, *, key: str) -> None:
        """Send one document; the receiver knows a repeat by its `Idempotency-Key`."""
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
    """A receiver that refuses what it was sent will refuse it again; one that is down may come back."""
    return isinstance(error, urllib.error.HTTPError) and error.code < 500 and error.code != 429
