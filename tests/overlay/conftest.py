"""Lets the tests of this folder import its helper modules, and the random patterns of the composite tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "composite"))
