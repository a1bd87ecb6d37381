"""Every example of the language reference is read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from likewise.language import parse, parse_event, parse_pattern

PAGE = (Path(__file__).parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
BLOCKS = [body for kind, body in re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, flags=re.S | re.M) if not kind]
TABLE = PAGE[PAGE.index("| in words") : PAGE.index("[Composite events](composite.md) defines")]
PATTERNS = re.findall(r"`([^`]+)`", TABLE.replace("\\|", "|"))


@pytest.mark.parametrize("block", [block for block in BLOCKS if not block.startswith(("$", "e1:"))])
def test_subscriptions(block: str) -> None:
    assert parse(block)


@pytest.mark.parametrize("line", [line for block in BLOCKS if block.startswith("e1:") for line in block.splitlines()])
def test_events(line: str) -> None:
    assert parse_event(line).tuples


@pytest.mark.parametrize("text", PATTERNS)
def test_patterns(text: str) -> None:
    parse_pattern(text)


def test_there_are_examples_of_each_kind() -> None:
    assert len(BLOCKS) >= 6
    assert len(PATTERNS) >= 20
