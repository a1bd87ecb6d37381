"""Bad records: what is known of one, and where it goes so that the good ones go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, TypeAlias

import msgspec

from likewise.errors import InputError
from likewise.files import named_errors

__all__ = ["BadRecord", "DeadLetters", "OnError"]

RAW_LIMIT = 16_384


@dataclass(frozen=True, slots=True)
class BadRecord:
    """One record that is no event: where it stands, why, and its first bytes.

    >>> print(BadRecord("events.jsonl", 3, "not JSON", b"{").error())
    events.jsonl:3: not JSON
    """

    source: str
    line: int | None
    reason: str
    raw: bytes
    hint: str | None = None

    def error(self) -> InputError:
        """The same as an error to raise."""
        return InputError(self.reason, source=self.source, line=self.line, hint=self.hint)


OnError: TypeAlias = Callable[[BadRecord], None]
"""Takes a bad record; reading goes on when it returns."""


class DeadLetters:
    """A file of bad records, one JSON line each: source, line, reason, record.

    Give it as `on_error`; the file is made with the first bad record, so no file means no bad record. A second run
    appends: what an earlier one kept is never lost.

    >>> with DeadLetters("bad.jsonl") as letters:
    ...     letters.count
    0
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.count = 0
        self._file: BinaryIO | None = None

    def __call__(self, record: BadRecord) -> None:
        text = record.raw.decode("utf-8", errors="backslashreplace")
        letter = {"source": record.source, "line": record.line, "reason": record.reason, "record": text}
        with named_errors(self.path):
            if self._file is None:
                self._file = _appended(self.path)
            self._file.write(msgspec.json.encode(letter) + b"\n")
            # Whoever ends the command in the middle finds every letter in the file.
            self._file.flush()
        self.count += 1

    def __enter__(self) -> DeadLetters:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _appended(path: Path) -> BinaryIO:
    """The file, ready for another line, even where its last one was cut short."""
    cut = False
    if path.is_file() and path.stat().st_size:
        with path.open("rb") as before:
            before.seek(-1, 2)
            cut = before.read(1) != b"\n"
    file = path.open("ab")
    if cut:
        file.write(b"\n")
    return file


@dataclass(slots=True)
class Intake:
    """One source being read: turns flaws into bad records and refuses ids seen before."""

    source: str
    on_error: OnError | None = None
    seen: set[str] | None = field(default_factory=set)
    rejected: int = 0

    def reject(self, flaw: InputError, *, line: int | None, raw: bytes) -> None:
        """Hand a bad record over, or raise it if nobody takes it."""
        record = BadRecord(self.source, line, flaw.message, bytes(raw[:RAW_LIMIT]), flaw.hint)
        self.rejected += 1
        if self.on_error is None:
            raise record.error() from None
        self.on_error(record)

    def is_new(self, key: str, *, line: int | None, raw: bytes) -> bool:
        """Whether this id comes for the first time; the second is a bad record."""
        if self.seen is None:
            return True
        if key not in self.seen:
            self.seen.add(key)
            return True
        self.reject(InputError(f"id {key!r} was used before", hint="every event needs its own id"), line=line, raw=raw)
        return False
