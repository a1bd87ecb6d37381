"""The broker's own glossary: accepted in the page, kept as a text file in its folder, used by all engines."""

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


class GlossaryBook:
    """The entries of a broker's glossary, and suggestions that were rejected."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._rejected = broker.settings.folder / "glossary-rejected.txt"

    @property
    def entries(self) -> dict[str, tuple[str, ...]]:
        """Short forms and what they stand for."""
        return dict(self._broker.maker.glossary.entries)

    def rejected(self) -> set[str]:
        """Suggestions that nobody wants to see again, as `word = meaning`."""
        return set(_lines(self._rejected))

    def accept(self, access: Access, term: str, meaning: str) -> None:
        """A word stands for another from now on, in all engines."""
        _check(access)
        short, meant = normalise(term), normalise(meaning)
        if not short or not meant or short == meant:
            raise BuildError("a word stands for other words", hint="write its meaning in full")
        if any(sign in short + meant for sign in "=;#"):
            raise BuildError("a glossary has words only", hint="leave out = ; and #")
        others = tuple(one for one in self.entries.get(short, ()) if one != meant)
        self._keep(self.entries | {short: (meant, *others)})

    def forget(self, access: Access, term: str) -> None:
        """A word stands for itself again."""
        _check(access)
        self._keep({short: meant for short, meant in self.entries.items() if short != term})

    def reject(self, access: Access, term: str, meaning: str) -> None:
        """Never suggest this again."""
        _check(access)
        with _lock:
            lines = [*_lines(self._rejected), " ".join(f"{term} = {meaning}".split())]
            write_whole(self._rejected, "\n".join(dict.fromkeys(lines)) + "\n")

    def _keep(self, entries: dict[str, tuple[str, ...]]) -> None:
        lines = [f"{short} = {'; '.join(meant)}" for short, meant in sorted(entries.items())]
        made = Glossary.from_text("\n".join(lines))
        with _lock:
            write_whole(self._broker.maker.glossary_file, "\n".join(lines) + "\n")
            self._broker.maker.glossary = made
            self._broker.host.remake()


def _check(access: Access) -> None:
    access.require("admin")
    if access.scope != ANY:
        raise AccessError("the glossary serves all namespaces, and this token is for one", known=True)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
