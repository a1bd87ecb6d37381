"""The facade of likewise.events."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import likewise.events


def test_every_public_name_resolves() -> None:
    assert [name for name in likewise.events.__all__ if not hasattr(likewise.events, name)] == []


def test_examples_in_docstrings_hold() -> None:
    results = {
        info.name: doctest.testmod(importlib.import_module(info.name))
        for info in pkgutil.walk_packages(likewise.events.__path__, "likewise.events.")
    }
    assert {name: result.failed for name, result in results.items() if result.failed} == {}
    assert sum(result.attempted for result in results.values()) > 5
