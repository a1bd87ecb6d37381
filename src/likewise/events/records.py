"""Bad records: their source, line and reason, and dead letter files for them."""

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


RAW_LIMIT = 16_384


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that is not a valid event: its source, line, reason, and first bytes.

    >>> print(BadRecord("events.jsonl", 3, "not JSON", b"{").error())
    events.jsonl:3: not JSON
    """

    source: str
    line: int | None
    reason: str
    raw: bytes
    hint: str | None = None

    def error(self) -> InputError:
        """The record as an error to raise."""
        return InputError(self.reason, source=self.source, line=self.line, hint=self.hint)


OnError: TypeAlias = Callable[[BadRecord], None]
"""Takes a bad record; reading continues when it returns."""

OnMapping: TypeAlias = "Callable[[RecordMapping], None]"
"""Takes the mapping guessed for records that are not in the form of events."""


class DeadLetters:
    """A file of bad records, one JSON line each: source, line, reason, record.

    Pass it as `on_error`. The file is created with the first bad record, so no file means no bad records. A second run
    appends, so earlier records are never lost.

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
                # If the command is interrupted, the file has every record so far.
                self._file.flush()
            except OSError:
                self._abandon()
                raise
        self.count += 1

    def _abandon(self) -> None:
        """Close a file that cannot be written; closing tries to write and fails repeated."""
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
    """Open the file for appending; completes a truncated last line."""
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
    """The error of the record on a line."""

    line: int
    reason: InputError
    raw: bytes


class IdSet:
    """The ids seen so far. Whole columns are added without creating Python objects.

    >>> ids = IdSet()
    >>> ids.add("a"), ids.add("a"), ids.add_all(pa.array(["a", "b", "b", None])).tolist()
    (True, False, [True, False, True, False])
    """

    def __init__(self, few: set[str] | None = None) -> None:
        self._few = set() if few is None else few
        self._table: ByteTable | None = None

    def add(self, key: str) -> bool:
        """Add an id; returns whether it was new."""
        if self._table is not None:
            return not self._table.enter(pa.array([key], pa.string()))[0]
        before = len(self._few)
        self._few.add(key)
        return len(self._few) > before

    def add_all(self, ids: pa.StringArray) -> NDArray[np.bool_]:
        """Add ids; returns which were seen before, in this column or earlier. Null never was."""
        from likewise.events.formats.byte_table import ByteTable

        if self._table is None and len(ids) <= FEW:
            return np.array([key is not None and not self.add(key) for key in ids.to_pylist()], np.bool_)
        if self._table is None:
            self._table = ByteTable()
            self._table.enter(pa.array(list(self._few), pa.string()))
        if not ids.null_count:
            return self._table.enter(ids)
        present = ids.is_valid().to_numpy(zero_copy_only=False)
        known = np.zeros(len(ids), np.bool_)
        known[present] = self._table.enter(ids.drop_null())
        return known


@dataclass(slots=True)
class RecordIntake:
    """The intake of one source: turns errors into bad records and refuses repeated ids."""

    source: str
    on_error: OnError | None = None
    seen: IdSet | None = field(default_factory=IdSet)
    rejected: int = 0

    def reject(self, flaw: InputError, *, line: int | None, raw: bytes) -> None:
        """Pass a bad record to `on_error`, or raise it if there is none."""
        record = BadRecord(self.source, line, flaw.message, bytes(raw[:RAW_LIMIT]), flaw.hint)
        self.rejected += 1
        if self.on_error is None:
            raise record.error() from None
        self.on_error(record)

    def is_new(self, key: str, *, line: int | None, raw: bytes) -> bool:
        """Whether this id is new; a repeated one becomes a bad record."""
        if self.seen is None or self.seen.add(key):
            return True
        self.reject(used_before(key), line=line, raw=raw)
        return False

    def admit(self, columns: EventColumns, flaws: list[Flaw], raw: Callable[[int], bytes]) -> Iterator[EventColumns]:
        """Yield the events with new ids; flaws become bad records. `raw` returns the record of a line."""
        lines = columns.lines
        assert lines is not None
        repeated = self.seen.add_all(columns.ids) if self.seen is not None else np.zeros(0, np.bool_)
        if repeated.any():
            rows = np.flatnonzero(repeated)
            flaws += [Flaw(int(lines[at]), used_before(columns.id_of(at)), raw(int(lines[at]))) for at in rows.tolist()]
            columns = columns.take(np.flatnonzero(~repeated))
            lines = lines[~repeated]
        flaws.sort(key=lambda flaw: flaw.line)
        if flaws and self.on_error is None:
            # Without `on_error`, still yield the events before the first bad record.
            columns = columns[: int(np.searchsorted(lines, flaws[0].line))]
            if len(columns):
                yield columns
        for flaw in flaws:
            self.reject(flaw.reason, line=flaw.line, raw=flaw.raw)
        if len(columns):
            yield columns


def used_before(key: str) -> InputError:
    """The error of an event with a repeated id."""
    return InputError(f"id {key!r} was used before", hint="every event needs its own id")
