"""Likewise: subscribe in your own words and get the right events, each with a score and a reason.

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

_MODULES = {
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
    """Import a public name on first use, so that `import likewise` stays fast."""
    if name not in _MODULES:
        raise AttributeError(f"module 'likewise' has no attribute {name!r}")
    value = getattr(_import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
