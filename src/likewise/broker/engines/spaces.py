"""Build the engines of the broker, all with the same spaces, glossary and options."""

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


class EngineFactory:
    """Creates and restores engines that share their spaces and glossary."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._spaces: list[Space] = []
        self.names: list[str] = []
        self.glossary = Glossary()
        """The users' abbreviations and synonyms, from `glossary.txt` in the broker's folder."""
        self._evidence: tuple[Glossary, Evidence] | None = None
        self.glossary_file = settings.folder / "glossary.txt"
        self.is_warm = False
        """Whether everything that the first event needs is loaded and compiled."""

    def open(self) -> None:
        """Open the configured spaces, by default the largest installed one, and read the glossary."""
        names = list(self._settings.spaces) or _largest_space()
        self._spaces = [find_space(name) for name in names]
        self.names = [space.path.name for space in self._spaces]
        if self.glossary_file.is_file():
            self.glossary = Glossary.from_file(self.glossary_file)

    def describe(self) -> list[dict[str, Any]]:
        """The names and sizes of the spaces."""
        return [
            {"name": space.name, "terms": space.terms, "concepts": space.concepts, "postings": space.postings}
            for space in self._spaces
        ]

    def evidence(self) -> Evidence:
        """The evidence measure over the spaces and the glossary."""
        if self._evidence is None or self._evidence[0] is not self.glossary:
            self._evidence = self.glossary, Evidence(self._spaces, glossary=self.glossary)
        return self._evidence[1]

    def make(self, refuse: Callable[[Refused], None]) -> Engine:
        """Create an engine."""
        return Engine(refuse=refuse, **self._options())

    def restore(self, data: bytes, refuse: Callable[[Refused], None]) -> Engine:
        """Restore an engine from a snapshot."""
        return Engine.restore(data, refuse=refuse, **self._options())

    def warm(self) -> threading.Thread:
        """Load and compile everything that the first event needs, in a background thread."""

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
            with contextlib.suppress(LikewiseError):  # a missing part is reported when a subscription needs it
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
            # With spaces, the approaches of the papers keep their own measures.
            options["measure"] = {"evidence": self.evidence()} if self._spaces else self.evidence()
        if self._settings.approach is not None:
            options["approach"] = self._settings.approach
        return options


def _largest_space() -> list[str]:
    spaces = [(manifest.size, str(path)) for path, manifest in list_spaces() if isinstance(manifest, Manifest)]
    return [max(spaces)[1]] if spaces else []
