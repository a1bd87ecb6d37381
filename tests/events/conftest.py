"""Property tests here say what must hold, not how fast: a busy machine must not fail them."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
