"""Events from the columns of any table: which column is the id, which the time, which are attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from likewise.errors import BuildError
from likewise.pipeline.events.frame import FLAW, KINDS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NUMBER: Final = r"^[-+]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][-+]?\d+)?\z"
"""Leading zeros are those of codes: 007 is a text."""
MOMENT: Final = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)?\z"
"""Read by Java and by RE2, to which `\\z` is the very end."""
EPOCH: Final = r"^\d{9,11}(\.\d+)?\z"
"""Seconds since 1970, in the years 1973 to 5138: shorter numbers may be dates, longer ones are not seconds."""
BOOLEANS: Final = ("true", "false")
UNEVEN_ROW: Final = "the row has another number of cells"


@dataclass(frozen=True, slots=True)
class TableMapping:
    """Which columns make an event.

    `attributes` are names of columns, or a mapping from columns to attribute names; without it, every column
    that has no other use. A cell that reads as a number, a boolean or a timestamp is one, unless `kinds`
    says otherwise for its column. `theme` is a column with tags divided by commas, or a list of tags for
    all. `constants` are attributes with the same text in every event.
    """

    id: str | None = None
    time: str | None = None
    end: str | None = None
    theme: str | Sequence[str] = ()
    attributes: Sequence[str] | Mapping[str, str] | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, str] = field(default_factory=dict)
    time_format: str | None = None

    def __post_init__(self) -> None:
        for column, kind in self.kinds.items():
            if kind not in KINDS:
                raise BuildError(f"column {column!r} cannot be of kind {kind!r}", hint=f"one of {', '.join(KINDS)}")

    def renamed(self, present: Sequence[str]) -> dict[str, str]:
        """Attribute columns of a table and the names that events give them."""
        if isinstance(self.attributes, Mapping):
            return dict(self.attributes)
        if self.attributes is not None:
            return {name: name for name in self.attributes}
        used = {self.id, self.time, self.end, self.theme if isinstance(self.theme, str) else None}
        return {name: name for name in present if name not in used and not name.startswith("_")}

    def names(self, present: Sequence[str]) -> list[str]:
        """The columns of a table, once it is sure that all that are spoken of are there."""
        spoken = [self.id, self.time, self.end, self.theme if isinstance(self.theme, str) else None]
        for name in [*spoken, *self.renamed(present)]:
            if name is not None and name not in present:
                raise BuildError(f"the table has no column {name!r}", hint=f"it has {', '.join(present)}")
        return list(present)


def events_from_columns(
    table: DataFrame, columns: TableMapping, *, broken: str | None = None, source: str | None = None
) -> DataFrame:
    """Events from a table of cells; the whole work is done by Spark's own expressions.

    A row without a value in any attribute, or whose time cannot be read, is no event: it gets a `flaw`. `broken` and
    `source` are columns of the table that have the text of a row that could not be read, and the file of each.
    """
    from pyspark.sql import functions as F  # noqa: N812

    present = [name for name in table.columns if name not in (broken, source)]
    columns.names(present)
    cells = table.select("*", _row(present).alias("_row"))
    made = cells.select(
        "*",
        _id(columns).alias("_id"),
        _moment(columns.time, columns).alias("_time"),
        _moment(columns.end, columns).alias("_end"),
        _attributes(table, columns, present).alias("_attributes"),
    ).select("*", _reason(columns, broken).alias("_reason"))
    good = F.col("_reason").isNull()
    letter = F.struct(
        (F.col(source) if source else F.lit("<table>")).alias("source"),
        F.lit(None).cast("bigint").alias("line"),
        F.col("_reason").alias("reason"),
        (F.coalesce(F.col(broken), F.col("_row")) if broken else F.col("_row")).alias("record"),
    )
    return made.select(
        F.when(good, F.col("_id")).alias("id"),
        F.when(good, F.col("_time")).alias("time"),
        F.when(good, F.coalesce("_end", "_time")).alias("end"),
        F.when(good, _theme(columns)).alias("theme"),
        F.when(good, F.col("_attributes")).alias("attributes"),
        F.when(~good, letter).cast(FLAW).alias("flaw"),
    )


def _row(present: Sequence[str]) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    return F.to_json(F.struct(*(F.col(f"`{name}`") for name in present)))


def _id(columns: TableMapping) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    # A row without an id is known by what it says, so that reading it twice gives the same id.
    if columns.id is None:
        return F.lower(F.hex(F.xxhash64("_row")))
    return F.col(f"`{columns.id}`").cast("string")


def _moment(name: str | None, columns: TableMapping) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    if name is None:
        return F.lit(None).cast("timestamp")
    if columns.time_format is None:
        cell = F.col(f"`{name}`")
        seconds = F.timestamp_seconds(cell.cast("string").try_cast("decimal(20, 6)"))
        return F.coalesce(cell.try_cast("timestamp"), F.when(cell.cast("string").rlike(EPOCH), seconds))
    return F.try_to_timestamp(F.col(f"`{name}`"), F.lit(columns.time_format))


def _theme(columns: TableMapping) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    if isinstance(columns.theme, str):
        tags = F.split(F.trim(F.coalesce(F.col(f"`{columns.theme}`"), F.lit(""))), r"\s*,\s*")
        return F.filter(tags, lambda tag: tag != "")
    return F.array(*(F.lit(tag) for tag in columns.theme)).cast("array<string>")


def _attributes(table: DataFrame, columns: TableMapping, present: Sequence[str]) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    types = dict(table.dtypes)
    made = [
        _tuples(name, attribute, columns.kinds.get(name) or _kind_of_type(types[name]), types[name])
        for name, attribute in columns.renamed(present).items()
    ]
    fixed = [F.array(_struct(F.lit(name), F.lit(text), F.lit("text"))) for name, text in columns.constants.items()]
    return F.filter(F.concat(*made, *fixed), lambda each: each["value"].isNotNull())


def _tuples(name: str, attribute: str, kind: str | None, type: str) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    column = F.col(f"`{name}`")
    cells = column if type.startswith("array<") else F.array(column)
    if kind is None or kind != "text":
        cells = F.transform(cells, lambda cell: F.trim(cell.cast("string")))
    else:
        cells = F.transform(cells, lambda cell: cell.cast("string"))
    return F.transform(
        F.filter(cells, lambda cell: cell != ""),
        lambda cell: _struct(F.lit(attribute), cell, F.lit(kind) if kind else _guessed(cell)),
    )


def _struct(name: Column, value: Column, kind: Column) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    return F.struct(name.alias("name"), value.alias("value"), kind.alias("kind"))


def _guessed(cell: Column) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    return (
        F.when(cell.rlike(NUMBER), F.lit("number"))
        .when(F.lower(cell).isin(*BOOLEANS), F.lit("boolean"))
        .when(cell.rlike(MOMENT), F.lit("time"))
        .otherwise(F.lit("text"))
    )


def _kind_of_type(type: str) -> str | None:
    if type in ("tinyint", "smallint", "int", "bigint", "float", "double") or type.startswith("decimal"):
        return "number"
    return {"boolean": "boolean", "timestamp": "time"}.get(type)


def reasons(columns: TableMapping) -> list[str]:
    """What a row can lack to be an event, the first that holds being told."""
    told = ["the event has no attributes"]
    if columns.id is not None:
        told.append(f"no {columns.id}")
    told += [f"{name} is not a time" for name in (columns.time, columns.end) if name is not None]
    return [*told, "the event ends before it starts"]


def _reason(columns: TableMapping, broken: str | None) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    tests = [F.size("_attributes") == 0]
    if columns.id is not None:
        tests.append(F.coalesce(F.col("_id"), F.lit("")) == "")
    for name, made in ((columns.time, "_time"), (columns.end, "_end")):
        if name is not None:
            tests.append(F.col(f"`{name}`").isNotNull() & F.col(made).isNull())
    tests.append(F.col("_end") < F.col("_time"))
    told = [F.when(test, F.lit(text)) for test, text in zip(tests, reasons(columns), strict=True)]
    reason = F.coalesce(*told)
    if broken is not None:
        reason = F.when(F.col(broken).isNotNull(), F.lit(UNEVEN_ROW)).otherwise(reason)
    return reason
