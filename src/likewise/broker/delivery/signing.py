"""Webhook security: which URLs are allowed, and how requests are signed."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import os
import secrets
from pathlib import Path
from urllib.parse import urlsplit

from likewise.errors import BuildError

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def signing_key(folder: Path) -> bytes:
    """The broker's signing key, created on first use and readable by this user only."""
    path = folder / "signing.key"
    if not path.exists():
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(32))
    return path.read_bytes()


def signing_secret(key: bytes, namespace: str, name: str, salt: str) -> str:
    """The secret of one webhook, derived from the signing key, so that the database contains no secrets.

    >>> signing_secret(b"key", "default", "parking", "1")[:12]
    'whsec_J0L2Jr'
    """
    message = "\0".join((namespace, name, salt)).encode("utf-8", "surrogatepass")
    return "whsec_" + base64.b64encode(hmac.digest(key, message, hashlib.sha256)).decode()


def signature(secret: str, *, id: str, timestamp: int, body: bytes) -> str:
    """The signature of a message as defined by Standard Webhooks."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = hmac.digest(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256)
    return "v1," + base64.b64encode(signed).decode()


def check_target(url: str, *, private: bool) -> None:
    """Raise `BuildError` for a URL that is not HTTP, or whose host is obviously private.

    >>> check_target("https://example.org/hook", private=False)
    >>> check_target("http://127.0.0.1/hook", private=False)
    Traceback (most recent call last):
        ...
    likewise.errors.BuildError: a webhook cannot go to 127.0.0.1, which is not a public address
      hint: the broker's administrator may allow it with --private-webhooks
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise BuildError(f"not a URL: {url[:100]!r}", hint="write, for example, https://example.org/hook") from None
    if parts.scheme not in ("http", "https") or not host:
        raise BuildError(
            f"a webhook needs an http or https URL, not {url[:100]!r}",
            hint="write, for example, https://example.org/hook",
        )
    if parts.username is not None or parts.password is not None:
        raise BuildError(
            "a webhook URL cannot contain a user or password", hint="let the receiver check the signature instead"
        )
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        if host == "localhost" or host.endswith((".localhost", ".local", ".internal")):
            address = ipaddress.ip_address("127.0.0.1")
        else:
            return  # host names are resolved and checked at every connection
    if not private and not is_public(address):
        raise BuildError(
            f"a webhook cannot go to {host}, which is not a public address",
            hint="the broker's administrator may allow it with --private-webhooks",
        )


def is_public(address: IpAddress) -> bool:
    """Whether an address is publicly routable.

    >>> [is_public(ipaddress.ip_address(text)) for text in ("8.8.8.8", "10.0.0.1", "::ffff:127.0.0.1", "169.254.0.1")]
    [True, False, False, False]
    """
    mapped = getattr(address, "ipv4_mapped", None)
    if mapped is not None:
        return is_public(mapped)
    return address.is_global and not address.is_multicast
