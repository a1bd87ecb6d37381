"""Cells of any Spark type as tuples of events: name, value and kind as text.

A struct or a map gives a tuple for each of its leaves, named by the path (`device.name`); an array gives several values
of one attribute. Null, an empty text, an empty array and NaN mean "no value"; the event keeps its other values. Types
that have no meaning as a value are refused when the plan is built.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from likewise.errors import BuildError
from likewise.events import COMMA, TIME_UNITS, to_instant
from likewise.pipeline.events.frame import ATTRIBUTES

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

NUMBER: Final = r"^[-+]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][-+]?\d+)?\z"
"""A number without leading zeros: codes such as 007 are texts."""
PADDED_NUMBER: Final = r"^[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?\z"
COMMA_NUMBER: Final = r"^[-+]?(\d+|\d{1,3}(\.\d{3})+),\d+\z"
MOMENT: Final = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?\z"
"""For Java and for RE2, in which `\\z` is the very end of a text."""
BOOLEANS: Final = ("true", "false")
BLANKS: Final = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())
"""The characters that Python strips; Spark's `trim` strips only the plain space."""
INFINITE: Final = ("Infinity", "-Infinity")

_NUMBERS: Final = ("byte", "short", "integer", "long", "float", "double", "decimal")
_TEXTS: Final = ("string", "char", "varchar")
_REFUSED: Final = {
    "binary": "decode it first: F.decode(F.col('{name}'), 'UTF-8'), or leave it out of attributes",
    "variant": "take the fields you need: F.variant_get(F.col('{name}'), '$.field', 'string')",
}


FieldPath: TypeAlias = tuple[str, ...]
"""The steps to a field within a cell."""


def tuples_of(
    cell: Column,
    kind: DataType,
    *,
    name: Column,
    label: str,
    read_as: str | None = None,
    without: Collection[FieldPath] = (),
) -> Column:
    """An array of tuples, never null, from a cell of any type; `read_as` is the kind that all its leaves have.

    `name` is the attribute's name as a column, since keys of maps are part of it; `label` names the cell in errors.
    Fields that are used otherwise, `without`, are left out.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, NullType, StructType

    match kind:
        case NullType():
            return _nothing()
        case StructType():
            parts = [
                tuples_of(
                    cell.getField(field.name),
                    field.dataType,
                    name=F.concat(name, F.lit(f".{field.name}")),
                    label=f"{label}.{field.name}",
                    read_as=read_as,
                    without=[path[1:] for path in without if path[0] == field.name],
                )
                for field in kind.fields
                if (field.name,) not in without
            ]
            return joined(parts)
        case ArrayType(elementType=inner):
            return _each(cell, lambda value: tuples_of(value, inner, name=name, label=label, read_as=read_as))
        case MapType(valueType=inner):
            used = [path[0] for path in without if len(path) == 1]
            kept = F.map_filter(cell, lambda key, _: ~key.cast("string").isin(*used)) if used else cell
            return _each(
                F.map_entries(kept),
                lambda entry: tuples_of(
                    entry["value"],
                    inner,
                    name=F.concat(name, F.lit("."), entry["key"].cast("string")),
                    label=f"{label}.*",
                    read_as=read_as,
                ),
            )
    text, value_kind = leaf(cell, kind, label=label, read_as=read_as)
    return F.array(tuple_of(name, text, value_kind))


def joined(parts: list[Column]) -> Column:
    """Arrays of tuples, one after the other."""
    from pyspark.sql import functions as F

    return F.concat(*parts) if len(parts) > 1 else parts[0] if parts else _nothing()


def sound(tuples: Column) -> Column:
    """Only the tuples with a value."""
    from pyspark.sql import functions as F

    return F.filter(tuples, lambda entry: entry["value"].isNotNull() & (entry["value"] != ""))


def infinite(tuples: Column) -> Column:
    """Whether a number among the values is infinite: nothing can be compared with it."""
    from pyspark.sql import functions as F

    return F.exists(tuples, lambda entry: (entry["kind"] == "number") & entry["value"].isin(*INFINITE))


def tuple_of(name: Column, value: Column, kind: Column) -> Column:
    """One tuple."""
    from pyspark.sql import functions as F

    return F.struct(
        name.cast("string").alias("name"), value.cast("string").alias("value"), kind.cast("string").alias("kind")
    )


def leaf(cell: Column, kind: DataType, *, label: str, read_as: str | None = None) -> tuple[Column, Column]:
    """The text and the kind of a single value."""
    from pyspark.sql import functions as F

    sort = kind.typeName().partition("(")[0]
    if sort in _TEXTS:
        return _text(cell.cast("string"), read_as)  # without its collation, which most functions refuse
    if sort in _NUMBERS:
        return F.nullif(cell.cast("string"), F.lit("NaN")), F.lit("text" if read_as == "text" else "number")
    if sort == "boolean":
        return cell.cast("string"), F.lit("text" if read_as == "text" else "boolean")
    if sort in ("timestamp", "timestamp_ntz"):
        return moment_text(cell), F.lit("text" if read_as == "text" else "time")
    if sort == "date":
        return cell.cast("string"), F.lit("text")
    raise refusal(label, kind, "cannot be an attribute")


def refusal(label: str, kind: DataType, why: str) -> BuildError:
    """The error for a column of a type that cannot be used."""
    hint = _REFUSED.get(kind.typeName(), "cast it to a string or a number, or leave it out")
    return BuildError(f"the column {label!r} is {kind.simpleString()}: it {why}", hint=hint.format(name=label))


def moment_text(cell: Column) -> Column:
    """A timestamp as ISO 8601 text in UTC, whatever the zone of the session; one without a zone is in the session's."""
    from pyspark.sql import functions as F

    seconds = F.unix_micros(cell.cast("timestamp_ltz")).cast("decimal(20, 0)") / F.lit(1_000_000)
    moment = F.expr("timestamp_ntz'1970-01-01 00:00:00'") + F.make_dt_interval(secs=seconds.cast("decimal(18, 6)"))
    return F.concat(F.translate(moment.cast("string"), " ", "T"), F.lit("Z"))


def _text(cell: Column, read_as: str | None) -> tuple[Column, Column]:
    """The value and kind of a text, as `value_of_cell` reads it in one process; a text of another kind stays text."""
    from pyspark.sql import functions as F

    if read_as == "text":
        return cell, F.lit("text")
    text = F.btrim(cell, F.lit(BLANKS))
    if read_as == COMMA:
        plain = F.translate(F.translate(text, ".", ""), ",", ".")
        text = F.when(text.rlike(COMMA_NUMBER), plain).otherwise(text)
    tests = {
        "number": text.rlike(PADDED_NUMBER if read_as == "number" else NUMBER),
        "boolean": F.lower(text).isin(*BOOLEANS),
        "time": text.rlike(MOMENT),
    }
    asked = tests if read_as in (None, COMMA) else {read_as: tests[read_as]}
    found = [F.when(test, F.lit(name)) for name, test in asked.items()]
    return text, F.coalesce(*found, F.lit("text"))


def _each(cell: Column, make: Any) -> Column:
    from pyspark.sql import functions as F

    return F.coalesce(F.flatten(F.transform(cell, make)), _nothing())


def _nothing() -> Column:
    from pyspark.sql import functions as F

    return F.array().cast(ATTRIBUTES)


EPOCH: Final = r"^\s*[-+]?\d+(\.\d*)?([eE][-+]?\d+)?\s*\z"
"""A number since 1970 as text, unless it has eight digits: these are a date."""
COMPACT_DATE: Final = r"^\s*\d{8}\s*\z"
ISO_TIME: Final = r"^\s*\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?)?\s*\z"
"""The ISO 8601 texts that Spark's cast reads too. The cast alone would accept years, and times of day."""
_FIRST, _LAST = to_instant(datetime.min), to_instant(datetime.max)
"""Times are in the years 1 to 9999, as in one process."""
_LARGEST: Final = (("s", 10**11), ("ms", 10**14), ("us", 10**17))
"""Without a given unit, an epoch time has the first of these units whose bound is greater."""


def moment_of(cell: Column, kind: DataType, *, label: str, format: str | None = None) -> Column:
    """A timestamp from a cell, by a `strptime` format or a unit if one is given; null where it is not a time."""
    from pyspark.sql import functions as F

    found = _timestamp(cell, kind, label=label, format=format)
    return F.when(F.unix_micros(found).between(_FIRST, _LAST), found)


def _timestamp(cell: Column, kind: DataType, *, label: str, format: str | None) -> Column:
    from pyspark.sql import functions as F

    sort = kind.typeName().partition("(")[0]
    unit = format if format in TIME_UNITS else None
    if sort in ("timestamp", "timestamp_ntz", "date"):
        return cell.cast("timestamp_ltz")
    if sort in _NUMBERS:
        return _epoch(cell, unit)
    if sort in _TEXTS:
        if unit is not None:
            number = F.when(cell.rlike(EPOCH), _epoch(cell, unit))
            return F.coalesce(F.when(cell.rlike(ISO_TIME), cell.try_cast("timestamp_ltz")), number)
        if format is not None:
            return F.try_to_timestamp(F.trim(cell), F.lit(spark_pattern(format))).cast("timestamp_ltz")
        date = F.when(
            cell.rlike(COMPACT_DATE), F.try_to_timestamp(F.trim(cell), F.lit("yyyyMMdd")).cast("timestamp_ltz")
        )
        number = F.when(cell.rlike(EPOCH) & ~cell.rlike(COMPACT_DATE), _epoch(cell))
        return F.coalesce(F.when(cell.rlike(ISO_TIME), cell.try_cast("timestamp_ltz")), date, number)
    if sort == "void":
        return cell.cast("timestamp_ltz")
    raise refusal(label, kind, "cannot be a time")


def _epoch(cell: Column, unit: str | None = None) -> Column:
    """A number since 1970: in the given unit, else in the unit that its size suggests."""
    from pyspark.sql import functions as F

    number = cell.try_cast("decimal(30, 6)")
    if unit is not None:
        return F.timestamp_micros((number * F.lit(TIME_UNITS[unit])).try_cast("bigint"))
    cases = [(F.abs(number) < F.lit(most), number * F.lit(int(TIME_UNITS[name]))) for name, most in _LARGEST]
    first, *rest = cases
    chain = reduce(lambda made, case: made.when(*case), rest, F.when(*first))
    micros = chain.otherwise(number / F.lit(1_000))
    return F.timestamp_micros(micros.try_cast("bigint"))


def spark_pattern(format: str) -> str:
    """Spark's pattern for a `strptime` format.

    >>> spark_pattern("%d/%m/%Y at %H.%M"), spark_pattern("%Y%m%dT%H%M%SZ")
    ("d/M/yyyy' at 'H.m", "yyyyMMdd'T'HHmmss'Z'")
    """
    parts = re.findall(r"%.|[^%]+", format)
    pattern = ""
    for at, part in enumerate(parts):
        # Digits that touch others have a fixed width.
        touches = any(0 <= near < len(parts) and parts[near] in _DIRECTIVES for near in (at - 1, at + 1))
        if part in _DIRECTIVES:
            wide, narrow = _DIRECTIVES[part]
            pattern += wide if touches else narrow
        elif part in _WORDS:
            pattern += _WORDS[part]
        elif part.startswith("%") and part != "%%":
            known = ", ".join([*_DIRECTIVES, *_WORDS])
            raise BuildError(f"Spark reads no times of the format {format!r}: {part}", hint=f"it knows {known}")
        else:
            pattern += re.sub(r"[A-Za-z' ]*[A-Za-z'][A-Za-z' ]*", _quoted, part.replace("%%", "%"))
    return pattern


def _quoted(text: re.Match[str]) -> str:
    return "'" + text[0].replace("'", "''") + "'"


_DIRECTIVES: Final = {
    "%Y": ("yyyy", "yyyy"),
    "%y": ("yy", "yy"),
    "%m": ("MM", "M"),
    "%d": ("dd", "d"),
    "%j": ("DDD", "D"),
    "%H": ("HH", "H"),
    "%I": ("hh", "h"),
    "%M": ("mm", "m"),
    "%S": ("ss", "s"),
    "%f": ("SSSSSS", "SSSSSS"),
}
"""Directives of numbers: in Spark's letters where digits touch, and elsewhere."""
_WORDS: Final = {"%b": "MMM", "%B": "MMMM", "%a": "E", "%A": "EEEE", "%p": "a", "%z": "[XXX][XX]"}
