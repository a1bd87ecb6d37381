"""Likewise: subscribe in your own words, and get the right events with a score and a reason."""

from pathlib import Path as _Path

from likewise._kernel_cache import keep_kernels as _keep_kernels

__version__ = "0.1.0"

__all__ = ["__version__"]

_keep_kernels(_Path(__file__).parent)
