"""Likewise: subscribe in your own words, and get the right events with a score and a reason.

>>> from likewise import Engine
>>> engine = Engine()
>>> engine.subscribe("parking: {slots > 0}")
['parking']
"""

from importlib import import_module as _import_module
from pathlib import Path as _Path
from typing import TYPE_CHECKING as _TYPE_CHECKING

from likewise._kernel_cache import keep_kernels as _keep_kernels

if _TYPE_CHECKING:
    from likewise.engine import Engine, Notification
    from likewise.errors import LikewiseError
    from likewise.events import Event
    from likewise.language import Subscription, parse
    from likewise.semantics import Space, measure

__version__ = "0.1.0"

_HOMES = {
    "Engine": "likewise.engine",
    "Event": "likewise.events",
    "LikewiseError": "likewise.errors",
    "Notification": "likewise.engine",
    "Space": "likewise.semantics",
    "Subscription": "likewise.language",
    "measure": "likewise.semantics",
    "parse": "likewise.language",
}

__all__ = [
    "Engine",
    "Event",
    "LikewiseError",
    "Notification",
    "Space",
    "Subscription",
    "__version__",
    "measure",
    "parse",
]

_keep_kernels(_Path(__file__).parent)


def __getattr__(name: str) -> object:
    """Headline names are imported when they are first asked for: `import likewise` alone stays quick."""
    if name not in _HOMES:
        raise AttributeError(f"module 'likewise' has no attribute {name!r}")
    found = getattr(_import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
