"""Likewise: subscribe in your own words, and get the right events with a score and a reason."""

__version__ = "0.1.0"

__all__ = ["__version__"]
