"""How the broker builds engines: which spaces they read, and the same options for every namespace."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

from likewise.broker.settings import BrokerSettings
from likewise.composite import Limits, Refused
from likewise.engine import Engine
from likewise.errors import LikewiseError
from likewise.semantics import Evidence, Glossary, Manifest, Space, find_space, list_spaces


class EngineMaker:
    """Makes and restores engines over the same spaces."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._spaces: list[Space] = []
        self.names: list[str] = []
        self.glossary = Glossary()
        """The users' own abbreviations and synonyms, from `glossary.txt` in the folder."""
        self._evidence: tuple[Glossary, Evidence] | None = None
        self.glossary_file = settings.folder / "glossary.txt"
        self.is_warm = False
        """Whether all is loaded and compiled that a first event would wait for."""

    def open(self) -> None:
        """Open the chosen spaces; without a choice, the one on the shelf that knows most."""
        chosen = list(self._settings.spaces) or _largest()
        self._spaces = [find_space(name) for name in chosen]
        self.names = [space.path.name for space in self._spaces]
        if self.glossary_file.is_file():
            self.glossary = Glossary.from_file(self.glossary_file)

    def describe(self) -> list[dict[str, Any]]:
        """The spaces, with their sizes."""
        return [
            {"name": space.name, "terms": space.terms, "concepts": space.concepts, "postings": space.postings}
            for space in self._spaces
        ]

    def evidence(self) -> Evidence:
        """How words are weighed here, over the spaces and with the glossary."""
        if self._evidence is None or self._evidence[0] is not self.glossary:
            self._evidence = self.glossary, Evidence(self._spaces, glossary=self.glossary)
        return self._evidence[1]

    def make(self, refuse: Callable[[Refused], None]) -> Engine:
        """A new engine."""
        return Engine(refuse=refuse, **self._options())

    def restore(self, data: bytes, refuse: Callable[[Refused], None]) -> Engine:
        """An engine from a snapshot."""
        return Engine.restore(data, refuse=refuse, **self._options())

    def warm(self) -> threading.Thread:
        """Load and compile what the first event would wait for, beside the start."""

        def work() -> None:
            try:
                self._warm_up()
            finally:
                self.is_warm = True

        thread = threading.Thread(target=work, name="likewise-warm", daemon=True)
        thread.start()
        return thread

    def _warm_up(self) -> None:
        engine = self.make(lambda _: None)
        for text in ("warm: {type~ = start~}", "both: {a = 1} then {b = 1} within 1 second"):
            with contextlib.suppress(LikewiseError):  # what does not work is reported when a subscription meets it
                engine.subscribe(text)
        engine.publish_batch([{"type": "begin", "a": 1}] * 10)

    def _options(self) -> dict[str, Any]:
        quotas = self._settings.quotas
        options: dict[str, Any] = {
            "lateness": self._settings.lateness,
            "limits": Limits(quotas.pattern_instances),
            "spaces": self._spaces,
        }
        if self.glossary.entries:
            # With spaces the papers' approaches keep measures of their own.
            options["measure"] = {"evidence": self.evidence()} if self._spaces else self.evidence()
        if self._settings.approach is not None:
            options["approach"] = self._settings.approach
        return options


def _largest() -> list[str]:
    found = [(manifest.size, str(path)) for path, manifest in list_spaces() if isinstance(manifest, Manifest)]
    return [max(found)[1]] if found else []
