"""The glossary of a broker: edited on the page, stored as a text file in its folder, used by all engines."""

from __future__ import annotations

import threading
from pathlib import Path

from likewise.broker.auth import ANY, Access
from likewise.broker.errors import AccessError
from likewise.broker.service import Broker
from likewise.errors import BuildError
from likewise.events import normalise
from likewise.files import write_whole
from likewise.semantics import Glossary

_lock = threading.Lock()


class GlossaryEditor:
    """Reads and changes the glossary of a broker and the list of rejected suggestions."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._rejected = broker.settings.folder / "glossary-rejected.txt"

    @property
    def entries(self) -> dict[str, tuple[str, ...]]:
        """Terms and their meanings."""
        return dict(self._broker.engine_factory.glossary.entries)

    def rejected(self) -> set[str]:
        """Rejected suggestions, as `term = meaning`."""
        return set(_lines(self._rejected))

    def accept(self, access: Access, term: str, meaning: str) -> None:
        """Add a meaning of a term, in all engines."""
        _check(access)
        short, full = normalise(term), normalise(meaning)
        if not short or not full or short == full:
            raise BuildError("a glossary entry needs a word and a different meaning", hint="fill in both fields")
        if any(sign in short + full for sign in "=;#"):
            raise BuildError("a glossary entry cannot contain = ; or #", hint="remove these characters")
        others = tuple(other for other in self.entries.get(short, ()) if other != full)
        self._store(self.entries | {short: (full, *others)})

    def remove(self, access: Access, term: str) -> None:
        """Remove a term from the glossary."""
        _check(access)
        self._store({short: meanings for short, meanings in self.entries.items() if short != term})

    def reject(self, access: Access, term: str, meaning: str) -> None:
        """Reject a suggestion, so that it is not shown again."""
        _check(access)
        with _lock:
            lines = [*_lines(self._rejected), " ".join(f"{term} = {meaning}".split())]
            write_whole(self._rejected, "\n".join(dict.fromkeys(lines)) + "\n")

    def _store(self, entries: dict[str, tuple[str, ...]]) -> None:
        lines = [f"{short} = {'; '.join(meanings)}" for short, meanings in sorted(entries.items())]
        glossary = Glossary.from_text("\n".join(lines))
        with _lock:
            write_whole(self._broker.engine_factory.glossary_file, "\n".join(lines) + "\n")
            self._broker.engine_factory.glossary = glossary
            self._broker.host.rebuild_engines()


def _check(access: Access) -> None:
    access.require("admin")
    if access.scope != ANY:
        raise AccessError("the glossary applies to all namespaces, but this token is for one", authenticated=True)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
