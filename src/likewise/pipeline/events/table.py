"""Events from the columns of any table: which column is the id, which the time, which are attributes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from likewise.errors import BuildError
from likewise.events import RecordMapping
from likewise.pipeline.events.cells import (
    UNITS,
    infinite,
    joined,
    moment_of,
    refusal,
    sound,
    tuple_of,
    tuples_of,
)
from likewise.pipeline.events.frame import ATTRIBUTES, EVENT_COLUMNS, FLAW, KINDS, Keep, column, folding

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

UNEVEN_ROW: Final = "the row has another number of cells"
NO_ATTRIBUTES: Final = "the event has no attributes"
INFINITE_NUMBER: Final = "a number is infinite"


@dataclass(frozen=True, slots=True)
class TableMapping:
    """Which columns make an event.

    A column is a name, the path of a field in a struct or map (`device.name`), or a `Column`. `attributes` are such
    columns, or a mapping from names of columns to names of attributes, or from names of attributes to a `Column`;
    without it, every column that has no other use. Structs and maps are flattened by path, arrays are several values.
    A text that reads as a number, a boolean or a timestamp is one, unless `kinds` says otherwise for its column.
    `theme` is a column with an array of tags or with tags divided by commas, or a list of tags for all. `constants`
    are attributes with the same text in every event; an empty text is no value. `time_format` is Spark's pattern for
    times as text, `time_unit` (s, ms, us) that of numbers since 1970; without it, their size tells.
    """

    id: str | Column | None = None
    time: str | Column | None = None
    end: str | Column | None = None
    theme: str | Column | Sequence[str] = ()
    attributes: Sequence[str | Column] | Mapping[str, str | Column] | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, str] = field(default_factory=dict)
    time_format: str | None = None
    time_unit: str | None = None

    def __post_init__(self) -> None:
        for name, kind in self.kinds.items():
            if kind not in KINDS:
                raise BuildError(f"column {name!r} cannot be of kind {kind!r}", hint=f"one of {', '.join(KINDS)}")
        if self.time_unit is not None and self.time_unit not in UNITS:
            raise BuildError(f"times cannot be in {self.time_unit!r}", hint=f"one of {', '.join(UNITS)}")

    @property
    def plain(self) -> bool:
        """Whether it speaks of whole columns by their names alone, so that workers can read them without Spark."""
        used = [*self._spoken(), *self._attribute_specs()]
        own = self.time_unit is None and self.time_format is None
        return own and all(isinstance(each, str) for each in used)

    def record_mapping(self, zone: str) -> RecordMapping:
        """The same as readers outside Spark know it, for mappings that are `plain`."""
        named: Any = (self.id, self.time, self.end)
        key, time, end = named
        theme: Any = self.theme
        chosen: Any = self.attributes
        constants = {name: text for name, text in self.constants.items() if text}
        return RecordMapping(key, time, end, theme, chosen, constants, self.kinds, zone=zone)

    def bound(self, present: Sequence[str], fold: Callable[[str], str] = str) -> TableMapping:
        """The same with names as the table spells them; one that is no column and no path is refused."""

        def spelt(name: Any) -> Any:
            return _spelt(name, present, fold) if isinstance(name, str) else name

        chosen: Any = self.attributes
        if isinstance(chosen, Mapping):
            chosen = {(spelt(key) if isinstance(value, str) else key): value for key, value in chosen.items()}
        elif chosen is not None:
            chosen = [spelt(each) for each in ([chosen] if isinstance(chosen, str) else chosen)]
        return replace(
            self,
            id=spelt(self.id),
            time=spelt(self.time),
            end=spelt(self.end),
            theme=spelt(self.theme) if isinstance(self.theme, str) else self.theme,
            attributes=chosen,
            kinds={spelt(name): kind for name, kind in self.kinds.items()},
        )

    def renamed(self, present: Sequence[str]) -> dict[str, str]:
        """Attribute columns of a table and the names that events give them, for mappings that are `plain`."""
        if isinstance(self.attributes, Mapping):
            return {str(name): str(attribute) for name, attribute in self.attributes.items()}
        if self.attributes is not None:
            return {str(name): str(name) for name in self.attributes}
        used = {each for each in self._spoken() if isinstance(each, str)}
        return {name: name for name in present if name not in used}

    def names(self, present: Sequence[str]) -> list[str]:
        """The columns of a table, once it is sure that all that are spoken of are there."""
        self.bound(present)
        return list(present)

    def _spoken(self) -> list[Any]:
        """The columns with a use of their own."""
        theme = self.theme if not isinstance(self.theme, Sequence) or isinstance(self.theme, str) else None
        return [each for each in (self.id, self.time, self.end, theme) if each is not None]

    def _attribute_specs(self) -> list[Any]:
        if isinstance(self.attributes, Mapping):
            return [key if isinstance(value, str) else value for key, value in self.attributes.items()]
        return list(self.attributes or ())


def _spelt(name: str, present: Sequence[str], fold: Callable[[str], str]) -> str:
    if name in present:
        return name
    alike = [each for each in present if fold(each) == fold(name)]
    if len(alike) == 1:
        return alike[0]
    if len(alike) > 1:
        raise BuildError(f"the table has several columns {name!r}: {', '.join(alike)}", hint="spell it as one of them")
    root = name.partition(".")[0].strip("`")
    if "." in name and any(fold(each) == fold(root) for each in present):
        return name
    near = get_close_matches(name, present, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(present)}"
    raise BuildError(f"the table has no column {name!r}", hint=hint)


class TableCell(NamedTuple):
    """A column of a table as it was resolved: the expression, its type, and what it is called."""

    value: Column
    kind: DataType
    label: str


def events_from_columns(
    table: DataFrame,
    columns: TableMapping,
    *,
    keep: Keep = (),
    broken: str | None = None,
    source: str | None = None,
) -> DataFrame:
    """Events from a table of cells; the whole work is done by Spark's own expressions.

    A row without a value in any attribute, without its id, or whose time cannot be read, is no event: it gets a
    `flaw`. `keep` are columns of the table that stay beside those of the event (`"*"`: all with other names). `broken`
    and `source` are columns of the table that have the text of a row that could not be read, and the file of each.
    """
    from pyspark.sql import functions as F

    present = [name for name in table.columns if name not in (broken, source)]
    mapping = columns.bound(present, folding(table))
    plan = _Plan.of(table, mapping, present)
    kept = kept_columns(keep, present, taken=EVENT_COLUMNS, fold=folding(table))
    cells = table.select(
        plan.id().alias(_ID),
        *(plan.moment(name).alias(f"_likewise_{name}") for name in ("time", "end")),
        plan.theme().alias(_THEME),
        plan.attributes().alias(_ATTRIBUTES),
        plan.unread().alias(_UNREAD),
        *(column(name).alias(f"_likewise_{at}") for at, name in enumerate(kept)),
        *((column(broken) if broken else F.lit(None).cast("string")).alias(_BROKEN),),
        *((column(source) if source else F.lit("<table>")).alias(_SOURCE),),
        _row(present).alias(_ROW),
    )
    judged = cells.select("*", _reason(mapping, broken is not None).alias(_REASON))
    return judged.select(
        *_event_columns(mapping), *(F.col(f"_likewise_{at}").alias(name) for at, name in enumerate(kept))
    )


_ID, _TIME, _END, _THEME, _ATTRIBUTES, _UNREAD, _BROKEN, _SOURCE, _ROW, _REASON = (
    f"_likewise_{name}"
    for name in ("id", "time", "end", "theme", "attributes", "unread", "broken", "source", "row", "reason")
)


def _event_columns(mapping: TableMapping) -> list[Column]:
    from pyspark.sql import functions as F

    good = F.col(_REASON).isNull()
    # A row without an id is known by what it says, so that reading it twice gives the same id.
    key = F.col(_ID) if mapping.id is not None else F.lower(F.hex(F.xxhash64(_ROW)))
    letter = F.struct(
        F.col(_SOURCE).alias("source"),
        F.lit(None).cast("bigint").alias("line"),
        F.col(_REASON).alias("reason"),
        F.coalesce(F.col(_BROKEN), F.col(_ROW)).alias("record"),
    )
    return [
        F.when(good, key).alias("id"),
        F.when(good, F.col(_TIME)).alias("time"),
        F.when(good, F.coalesce(_END, _TIME)).alias("end"),
        F.when(good, F.col(_THEME)).alias("theme"),
        F.when(good, F.col(_ATTRIBUTES)).alias("attributes"),
        F.when(~good, letter).cast(FLAW).alias("flaw"),
    ]


def kept_columns(
    keep: Keep, present: Sequence[str], *, taken: Sequence[str], fold: Callable[[str], str] = str
) -> list[str]:
    """The columns that go through beside ours, checked: `"*"` is all whose names are free.

    >>> kept_columns("*", ["id", "tenant"], taken=["id", "time"]), kept_columns(["tenant"], ["tenant"], taken=["id"])
    (['tenant'], ['tenant'])
    """
    ours = {fold(name) for name in taken}
    if keep == "*":
        return [name for name in present if fold(name) not in ours]
    chosen = [_spelt(name, present, fold) for name in ([keep] if isinstance(keep, str) else keep)]
    for name in chosen:
        if fold(name) in ours:
            raise BuildError(f"the column {name!r} cannot be kept beside ours", hint="rename it first")
    return list(dict.fromkeys(chosen))


class _Plan(NamedTuple):
    """The columns of a mapping, resolved against a table."""

    mapping: TableMapping
    own: dict[str, TableCell]
    chosen: list[tuple[str, str, TableCell]]

    @classmethod
    def of(cls, table: DataFrame, mapping: TableMapping, present: Sequence[str]) -> _Plan:
        named = {name: getattr(mapping, name) for name in ("id", "time", "end")}
        if not isinstance(mapping.theme, Sequence) or isinstance(mapping.theme, str):
            named["theme"] = mapping.theme
        wanted = _wanted(mapping, present)
        specs = [spec for spec in named.values() if spec is not None] + [spec for _, spec in wanted]
        cells = iter(_resolved(table, specs, present))
        own = {name: next(cells) for name, spec in named.items() if spec is not None}
        chosen = [
            (name or cell.label, spec if isinstance(spec, str) else cell.label, cell)
            for (name, spec), cell in zip(wanted, cells, strict=True)
        ]
        return cls(mapping, own, chosen)

    def id(self) -> Column:
        from pyspark.sql import functions as F

        cell = self.own.get("id")
        if cell is None:
            return F.lit(None).cast("string")
        if cell.kind.typeName() in ("array", "map", "struct", "binary", "variant"):
            raise refusal(cell.label, cell.kind, "cannot be an id")
        return cell.value.cast("string")

    def moment(self, name: str) -> Column:
        from pyspark.sql import functions as F

        cell, mapping = self.own.get(name), self.mapping
        if cell is None:
            return F.lit(None).cast("timestamp")
        return moment_of(cell.value, cell.kind, label=cell.label, format=mapping.time_format, unit=mapping.time_unit)

    def unread(self) -> Column:
        """Which times are there and cannot be read: an array of whether, for time and end."""
        from pyspark.sql import functions as F

        cells = [(self.own.get(name), self.moment(name)) for name in ("time", "end")]
        return F.array(*(F.lit(False) if c is None else c.value.isNotNull() & made.isNull() for c, made in cells))

    def theme(self) -> Column:
        from pyspark.sql import functions as F

        cell = self.own.get("theme")
        if cell is None:
            return F.array(*(F.lit(tag) for tag in self.mapping.theme)).cast("array<string>")  # type: ignore[union-attr]  # fixed tags here
        sort = cell.kind.typeName().partition("(")[0]
        if sort in ("string", "char", "varchar"):
            tags = F.split(F.trim(F.coalesce(cell.value, F.lit(""))), r"\s*,\s*")
        elif cell.kind.simpleString() == "array<string>":
            tags = F.transform(F.coalesce(cell.value, F.array().cast("array<string>")), F.trim)
        else:
            raise refusal(cell.label, cell.kind, "cannot be a theme")
        return F.filter(tags, lambda tag: tag.isNotNull() & (tag != ""))

    def attributes(self) -> Column:
        from pyspark.sql import functions as F

        made = [
            tuples_of(cell.value, cell.kind, name=F.lit(name), label=cell.label, read_as=self.mapping.kinds.get(spec))
            for name, spec, cell in self.chosen
        ]
        fixed = [
            F.array(tuple_of(F.lit(name), F.lit(text), F.lit("text"))) for name, text in self.mapping.constants.items()
        ]
        return sound(joined([*made, *fixed]).cast(ATTRIBUTES))


def _wanted(mapping: TableMapping, present: Sequence[str]) -> list[tuple[str | None, Any]]:
    """The name of each attribute, if it is given, and the column that it comes from."""
    if isinstance(mapping.attributes, Mapping):
        return [(value, key) if isinstance(value, str) else (key, value) for key, value in mapping.attributes.items()]
    if mapping.attributes is not None:
        return [(each if isinstance(each, str) else None, each) for each in mapping.attributes]
    return [(name, name) for name in mapping.renamed(present)]


def _resolved(table: DataFrame, specs: Sequence[Any], present: Sequence[str]) -> list[TableCell]:
    """Columns with their types, as Spark's analysis finds them."""
    from pyspark.errors import AnalysisException

    def values(which: Sequence[Any]) -> list[Column]:
        return [_expression(spec, present) for spec in which]

    for spec in specs:
        if isinstance(spec, str) and spec not in present:
            _check_path(table.schema, spec, folding(table))
    try:
        fields = table.select(*values(specs)).schema.fields if specs else []
    except AnalysisException:
        for spec in specs:
            try:
                _ = table.select(*values([spec])).schema
            except AnalysisException as error:
                told = str(error).partition("SQLSTATE")[0].strip().splitlines()[0]
                raise BuildError(
                    f"the column {_shown(spec)!r} cannot be used: {told}", hint="check the name or path"
                ) from None
        raise
    labels = [spec if isinstance(spec, str) else field.name for spec, field in zip(specs, fields, strict=True)]
    return [
        TableCell(value, field.dataType, label)
        for value, field, label in zip(values(specs), fields, labels, strict=True)
    ]


def _check_path(kind: Any, path: str, fold: Callable[[str], str]) -> None:
    """Every step of a path is there; Spark would say so too, at length and on standard error."""
    for part in re.findall(r"`(?:[^`]|``)*`|[^.]+", path):
        name = part.strip("`").replace("``", "`")
        while kind.typeName() == "array":
            kind = kind.elementType
        if kind.typeName() == "map":
            kind = kind.valueType
        elif kind.typeName() == "struct":
            found = [field.dataType for field in kind.fields if fold(field.name) == fold(name)]
            if not found:
                hint = f"there are {', '.join(kind.names)}"
                raise BuildError(f"there is no field {name!r} on the path {path!r}", hint=hint)
            kind = found[0]
        else:
            raise BuildError(f"the path {path!r} goes on after {kind.simpleString()}", hint="end it before that")


def _expression(spec: Any, present: Sequence[str]) -> Column:
    from pyspark.sql import functions as F

    if not isinstance(spec, str):
        given: Column = spec
        return given
    return column(spec) if spec in present else F.col(spec)


def _shown(spec: Any) -> str:
    return spec if isinstance(spec, str) else str(spec)


def _row(present: Sequence[str]) -> Column:
    from pyspark.sql import functions as F

    return F.to_json(F.struct(*(column(name) for name in present)))


def reasons(columns: TableMapping) -> list[str]:
    """What a row can lack to be an event; the first that holds is reported."""
    told = [NO_ATTRIBUTES]
    if columns.id is not None:
        told.append(f"no {_shown(columns.id)}")
    told += [f"{_shown(name)} is not a time" for name in (columns.time, columns.end) if name is not None]
    return [*told, "the event ends before it starts", INFINITE_NUMBER]


def _reason(columns: TableMapping, broken: bool) -> Column:
    from pyspark.sql import functions as F

    tests = [F.size(_ATTRIBUTES) == 0]
    if columns.id is not None:
        tests.append(F.coalesce(F.col(_ID), F.lit("")) == "")
    tests += [F.get(_UNREAD, at) for at, name in enumerate((columns.time, columns.end)) if name is not None]
    tests += [F.col(_END) < F.col(_TIME), infinite(F.col(_ATTRIBUTES))]
    told = [F.when(test, F.lit(text)) for test, text in zip(tests, reasons(columns), strict=True)]
    reason = F.coalesce(*told)
    return F.when(F.col(_BROKEN).isNotNull(), F.lit(UNEVEN_ROW)).otherwise(reason) if broken else reason
