"""Avro container files, read with fastavro; each record is a flat record read by a mapping."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from importlib import import_module
from typing import Any, BinaryIO, Final

from likewise.errors import InputError, MissingError

MAGIC: Final = b"Obj\x01"


def read_avro_records(stream: BinaryIO, *, source: str) -> Iterator[dict[str, Any]]:
    """Yield the records of a container file; a broken block raises InputError."""
    try:
        fastavro = import_module("fastavro")
    except ImportError:
        raise MissingError("reading Avro needs fastavro", hint="pip install 'likewise[avro]'") from None
    count = 0
    try:
        for record in fastavro.reader(stream):
            if not isinstance(record, dict):
                raise InputError("the schema of the file is not a record", source=source, hint="write records")
            count += 1
            yield record
    except InputError:
        raise
    except Exception as error:
        # fastavro has no error class: a broken block raises ValueError, EOFError, struct.error or zlib.error.
        cause = str(error) or type(error).__name__
        message = f"cannot be read as Avro after {count:,} records: {cause}" if count else f"not an Avro file: {cause}"
        raise InputError(message, source=source) from None


def plain_record(value: Any) -> Any:
    """Convert an Avro value to JSON types: logical types become numbers or text.

    Bytes are kept; they are refused only if a mapping makes them an attribute.

    >>> plain_record({"at": datetime(2026, 3, 1, 9), "cost": Decimal("1.50"), "tags": ["a"]})
    {'at': '2026-03-01T09:00:00Z', 'cost': 1.5, 'tags': ['a']}
    """
    match value:
        case dict():
            return {key: plain_record(item) for key, item in value.items()}
        case list() | tuple():
            return [plain_record(item) for item in value]
        case datetime():
            return value.isoformat().replace("+00:00", "Z") if value.tzinfo else f"{value.isoformat()}Z"
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
    return value if value is None or isinstance(value, bool | int | float | str | bytes) else str(value)
