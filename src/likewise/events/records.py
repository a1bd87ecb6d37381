"""Bad records: what is known of one, and where it goes so that the good ones go on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.events.instants import FEW
from likewise.files import named_errors

if TYPE_CHECKING:
    from likewise.events.columns import EventColumns
    from likewise.events.formats.byte_table import ByteTable
    from likewise.events.mapping import RecordMapping

__all__ = ["BadRecord", "DeadLetters", "Flaw", "IdSet", "OnError", "OnMapping", "RecordIntake"]

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

OnMapping: TypeAlias = "Callable[[RecordMapping], None]"
"""Takes the mapping that was guessed for records that are not in the form of events."""


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
            try:
                self._file.write(msgspec.json.encode(letter) + b"\n")
                # If the command is interrupted, the file has every letter so far.
                self._file.flush()
            except OSError:
                self._abandon()
                raise
        self.count += 1

    def _abandon(self) -> None:
        """Close a file that takes no more; closing tries to write once more and fails again."""
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()

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


class Flaw(NamedTuple):
    """What is wrong with the record of a line."""

    line: int
    reason: InputError
    raw: bytes


class IdSet:
    """The ids that came before. Whole columns of them go into a table without a Python object for each.

    >>> ids = IdSet()
    >>> ids.add("a"), ids.add("a"), ids.add_all(pa.array(["a", "b", "b", None])).tolist()
    (True, False, [True, False, True, False])
    """

    def __init__(self, few: set[str] | None = None) -> None:
        self._few = set() if few is None else few
        self._table: ByteTable | None = None

    def add(self, key: str) -> bool:
        """Whether an id is new; from now on it is not."""
        if self._table is not None:
            return not self._table.enter(pa.array([key], pa.string()))[0]
        before = len(self._few)
        self._few.add(key)
        return len(self._few) > before

    def add_all(self, ids: pa.StringArray) -> NDArray[np.bool_]:
        """Which ids came before, in this column or earlier; a missing one never did."""
        from likewise.events.formats.byte_table import ByteTable

        if self._table is None and len(ids) <= FEW:
            return np.array([key is not None and not self.add(key) for key in ids.to_pylist()], np.bool_)
        if self._table is None:
            self._table = ByteTable()
            self._table.enter(pa.array(list(self._few), pa.string()))
        if not ids.null_count:
            return self._table.enter(ids)
        there = ids.is_valid().to_numpy(zero_copy_only=False)
        again = np.zeros(len(ids), np.bool_)
        again[there] = self._table.enter(ids.drop_null())
        return again


@dataclass(slots=True)
class RecordIntake:
    """One source being read: turns flaws into bad records and refuses ids seen before."""

    source: str
    on_error: OnError | None = None
    seen: IdSet | None = field(default_factory=IdSet)
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
        if self.seen is None or self.seen.add(key):
            return True
        self.reject(used_before(key), line=line, raw=raw)
        return False

    def admit(self, columns: EventColumns, flaws: list[Flaw], raw: Callable[[int], bytes]) -> Iterator[EventColumns]:
        """The events with new ids; flaws become bad records. `raw` gives the record of a line."""
        lines = columns.lines
        assert lines is not None
        again = self.seen.add_all(columns.ids) if self.seen is not None else np.zeros(0, np.bool_)
        if again.any():
            rows = np.flatnonzero(again)
            flaws += [Flaw(int(lines[at]), used_before(columns.id_of(at)), raw(int(lines[at]))) for at in rows.tolist()]
            columns = columns.take(np.flatnonzero(~again))
            lines = lines[~again]
        flaws.sort(key=lambda flaw: flaw.line)
        if flaws and self.on_error is None:
            # Who takes no bad records still gets what stands before the first of them.
            columns = columns[: int(np.searchsorted(lines, flaws[0].line))]
            if len(columns):
                yield columns
        for flaw in flaws:
            self.reject(flaw.reason, line=flaw.line, raw=flaw.raw)
        if len(columns):
            yield columns


def used_before(key: str) -> InputError:
    """The flaw of an event whose id another has."""
    return InputError(f"id {key!r} was used before", hint="every event needs its own id")
