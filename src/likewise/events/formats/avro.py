"""Avro container files, by fastavro where it is installed: each record is a flat record with its mapping."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from importlib import import_module
from typing import Any, BinaryIO, Final

from likewise.errors import InputError, MissingError

__all__ = ["MAGIC", "plain_record", "read_avro_records"]

MAGIC: Final = b"Obj\x01"


def read_avro_records(stream: BinaryIO, *, source: str) -> Iterator[dict[str, Any]]:
    """The records of a container file; what is broken in the middle ends the file with our error."""
    try:
        fastavro = import_module("fastavro")
    except ImportError:
        raise MissingError("reading Avro needs fastavro", hint="pip install 'likewise[avro]'") from None
    count = 0
    try:
        for record in fastavro.reader(stream):
            if not isinstance(record, dict):
                raise InputError("the schema of the file is no record", source=source, hint="write records")
            count += 1
            yield record
    except InputError:
        raise
    except Exception as error:
        # fastavro has no error of its own: a broken block is a ValueError, EOFError, struct.error or zlib.error.
        why = str(error) or type(error).__name__
        told = f"cannot be read as Avro after {count:,} records: {why}" if count else f"not an Avro file: {why}"
        raise InputError(told, source=source) from None


def plain_record(value: Any) -> Any:
    """A value of Avro as JSON has it: logical types are numbers, or texts that read as what they were.

    Bytes stay what they are: they are refused only where a mapping makes an attribute of them.

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
