"""Events from the columns of any table: which column is the id, which the time, which are attributes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.errors import BuildError, named_options
from likewise.events import (
    JOINED,
    NO_TIME,
    TIME_UNITS,
    RecordMapping,
    TimeRule,
    instants,
    read_times,
    to_instant,
    zone_of,
)
from likewise.pipeline.events.cells import (
    BLANKS,
    NUMBER_TYPES,
    TEXT_TYPES,
    Attribute,
    FieldPath,
    Flags,
    Numbers,
    TupleReader,
    check_attribute,
    infinite_rows,
    refusal,
    sort_of,
    zoned,
)
from likewise.pipeline.events.frame import (
    ARROW_SCHEMA,
    BETWEEN,
    DIGITS,
    EVENT_COLUMNS,
    EVENTS_SCHEMA,
    INFINITE_NUMBER,
    NO_ATTRIBUTES,
    NO_ID,
    Keep,
    column,
    folding,
    refuse_twin_fields,
    watermark_of,
)
from likewise.pipeline.events.transfer import Batches, Decoded, EventOrigin, SentColumns, remember, with_watermark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructField, StructType

UNEVEN_ROW: Final = "the row has another number of cells"


def check_mapping(mapping: object) -> None:
    """Refuse anything but a `RecordMapping`, such as a dictionary."""
    if not isinstance(mapping, RecordMapping):
        hint = "such as RecordMapping(id='key', time='at'), from likewise.events"
        raise BuildError(f"a mapping of columns cannot be {type(mapping).__name__}", hint=hint)


def bound(mapping: RecordMapping, present: Sequence[str], fold: Callable[[str], str] = str) -> RecordMapping:
    """A mapping with names as the table spells them; a name that is neither a column nor a path is refused."""
    if not mapping.complete:
        raise BuildError("a mapping is not guessed on Spark", hint="name the columns that it needs")

    def spelt(name: str) -> str:
        return _spelt(name, present, fold)

    mapping = replace(mapping, undivided=[name for name in mapping.times if JOINED in name and name in present])
    chosen: Any = mapping.attributes
    if isinstance(chosen, Mapping):
        chosen = {spelt(name): called for name, called in chosen.items()}
    elif chosen is not None:
        chosen = [spelt(name) for name in chosen]
    return replace(
        mapping,
        **_roles(mapping, spelt),
        attributes=chosen,
        kinds={spelt(n): kind for n, kind in mapping.kinds.items()},
    )


def _roles(mapping: RecordMapping, spelt: Callable[[str], str]) -> dict[str, Any]:
    """The fields of each role that the table has; each role needs at least one of its fields."""
    names: dict[str, str] = {}
    missing: dict[str, BuildError] = {}
    for name, role in ((name, role) for role, fields in mapping.used.items() for name in fields):
        try:
            names[name] = JOINED.join(map(spelt, mapping.parts(name, role)))
        except BuildError as error:
            missing[name] = error
    found: dict[str, Any] = {}
    for role, fields in mapping.used.items():
        found[role] = [names[name] for name in fields if name in names]
        if not found[role]:
            raise missing[fields[0]]
    if "theme" in found:
        (found["theme"],) = found["theme"]
    if isinstance(mapping.time_format, Mapping):
        formats = mapping.time_format.items()
        found["time_format"] = {names.get(name, name): given for name, given in formats if name not in missing}
    if isinstance(mapping.zone, Mapping):
        found["zone"] = {names.get(name, name): given for name, given in mapping.zone.items() if name not in missing}
    return found


def _spelt(name: str, present: Sequence[str], fold: Callable[[str], str]) -> str:
    if name in present:
        return name
    alike = [other for other in present if fold(other) == fold(name)]
    if len(alike) == 1:
        return alike[0]
    if len(alike) > 1:
        raise BuildError(f"the table has several columns {name!r}: {', '.join(alike)}", hint="spell it as one of them")
    root, *rest = _path_steps(name)
    if not rest and root != name:
        return _spelt(root, present, fold)
    if rest and any(fold(other) == fold(root) for other in present):
        return name
    near = get_close_matches(name, present, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(present)}"
    raise BuildError(f"the table has no column {name!r}", hint=hint)


def _path_steps(path: str) -> list[str]:
    """The names on a path; those in backticks may hold dots.

    >>> _path_steps("device.name"), _path_steps("`a.b`.`tick``tock`")
    (['device', 'name'], ['a.b', 'tick`tock'])
    """
    parts = re.findall(r"`(?:[^`]|``)*`|[^.]+", path)
    return [part[1:-1].replace("``", "`") if part[0] == part[-1] == "`" != part else part for part in parts] or [path]


def _refuse_twins(names: Sequence[str], fold: Callable[[str], str]) -> None:
    """Refuse two columns that Spark cannot tell apart; its own error fills the screen."""
    known: dict[str, str] = {}
    for name in names:
        twin = known.get(fold(name))
        if twin is not None:
            raise BuildError(f"the table has two columns {twin!r} and {name!r}", hint="rename or drop one of them")
        known[fold(name)] = name


class TableCell(NamedTuple):
    """A resolved column of a table: the expression, its type and its name or path."""

    value: Column
    kind: DataType
    label: str

    @property
    def text(self) -> Column:
        """The cell as Spark writes it."""
        # Without its collation, which most functions refuse.
        return self.value if self.kind.simpleString() == "string" else self.value.cast("string")


@named_options
def events_from_columns(
    table: DataFrame,
    columns: RecordMapping,
    *,
    computed: Mapping[str, Column] | None = None,
    keep: Keep = (),
    broken: str | None = None,
    source: str | None = None,
) -> DataFrame:
    """Events from the columns of a table, which workers read as Spark has them.

    A field of the mapping is a column, or the path of a field in a struct or map (`device.name`); `computed` adds
    columns made of others, by name, as `withColumns` does. Structs and maps are flattened by path, arrays are several
    values. A text that reads as a number, a boolean or a timestamp is one, unless `kinds` says otherwise for its
    column. Times without a zone are in that of the session. A row without a value in any attribute, without its id, or
    whose time cannot be read, gets a `flaw` instead. `keep` names columns of the table that stay beside those of the
    event (`"*"`: all with other names). `broken` and `source` are columns of the table with the text of an unreadable
    row and with the file of each row.
    """
    check_mapping(columns)
    table = with_computed(table, computed)
    present = [name for name in table.columns if name not in (broken, source)]
    _refuse_twins(table.columns, folding(table))
    mapping = bound(columns, present, folding(table))
    if mapping.zone is not None:
        raise BuildError("Spark reads times in the zone of its session", hint="set spark.sql.session.timeZone")
    plan = TablePlan.of(table, mapping, present, broken=broken, source=source)
    kept = kept_columns(keep, present, taken=EVENT_COLUMNS, fold=folding(table))
    rows, step = plan.rows(kept, letters=True)
    made = rows.mapInArrow(Decoded(step), with_fields(EVENTS_SCHEMA, [table.schema[name] for name in kept]))
    timed = mapping.used.get("time", ())
    watermark = watermark_of(table, timed[0]) if len(timed) == 1 else {}
    return remember(with_watermark(made, watermark), EventOrigin(plan.rows))


def with_fields(schema: str | StructType, more: Iterable[StructField]) -> StructType:
    """A schema with further fields."""
    from pyspark.sql.types import StructField, StructType

    own = cast("StructType", StructType.fromDDL(schema)).fields if isinstance(schema, str) else schema.fields
    return StructType([*own, *(StructField(field.name, field.dataType, metadata=field.metadata) for field in more)])


def with_computed(table: DataFrame, computed: Mapping[str, Column] | None) -> DataFrame:
    """The table with computed columns; expressions that Spark cannot resolve are refused."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import Column as AnyColumn

    if computed is not None and not isinstance(computed, Mapping):
        raise BuildError("computed columns have names", hint='such as computed={"double": F.col("a") * 2}')
    for name, made in (computed or {}).items():
        if not isinstance(made, AnyColumn):
            raise BuildError(f"the computed column {name!r} is no Column", hint="such as F.col('a') * 2")
    if not computed:
        return table
    try:
        wider = table.withColumns(dict(computed))
        wider.schema  # noqa: B018 - over Spark Connect, this analyses the plan
    except AnalysisException as error:
        reason = str(error).partition("SQLSTATE")[0].strip().splitlines()[0]
        raise BuildError(f"a computed column cannot be made: {reason}", hint="check its names and types") from None
    return wider


def keep_names(keep: object) -> list[str]:
    """The columns that `keep` names; a list of names, or a single one."""
    keep = () if keep is None else keep
    names = [keep] if isinstance(keep, str) or not isinstance(keep, Collection) else list(keep)
    wrong = next((name for name in names if not isinstance(name, str)), "")
    if not isinstance(wrong, str):
        kind = type(wrong).__name__
        raise BuildError(f"columns to keep are named by text, not by {kind}", hint='such as keep=["tenant"]')
    return cast("list[str]", names)


def kept_columns(
    keep: Keep, present: Sequence[str], *, taken: Sequence[str], fold: Callable[[str], str] = str
) -> list[str]:
    """The checked names of the columns to keep; `"*"` is all whose names are not `taken`.

    >>> kept_columns("*", ["id", "tenant"], taken=["id", "time"]), kept_columns(["tenant"], ["tenant"], taken=["id"])
    (['tenant'], ['tenant'])
    """
    ours = {fold(name) for name in taken}
    names = keep_names(keep)
    if names == ["*"]:
        return [name for name in present if fold(name) not in ours]
    chosen = [_spelt(name, present, fold) for name in names]
    for name in chosen:
        if name not in present:
            root = _spelt(_path_steps(name)[0], present, fold)
            raise BuildError(f"{name!r} is a field; only whole columns can be kept", hint=f"keep the column {root!r}")
        if fold(name) in ours:
            raise BuildError(f"the column {name!r} cannot be kept beside ours", hint="rename it first")
    return list(dict.fromkeys(chosen))


@dataclass(frozen=True)
class TablePlan:
    """The columns of a mapping, resolved against a table."""

    table: DataFrame
    mapping: RecordMapping
    present: list[str]
    own: dict[str, list[tuple[str, list[TableCell]]]]
    """The columns of each role; a joined time has several cells."""
    chosen: list[tuple[Attribute, TableCell]]
    broken: str | None
    source: str | None

    @classmethod
    def of(
        cls, table: DataFrame, mapping: RecordMapping, present: list[str], *, broken: str | None, source: str | None
    ) -> TablePlan:
        """Checked when the plan is built."""
        wanted = mapping.renamed(present)
        paths = [name for name in mapping.taken if name not in present and mapping.names is None]
        # Fields within columns that have another role, if attributes were not chosen.
        nested = [_steps(table.schema, path, folding(table)) for path in paths]
        cells = iter(_resolved(table, [*mapping.taken, *wanted], present))
        own = {
            role: [(name, [next(cells) for _ in mapping.parts(name, role)]) for name in names]
            for role, names in mapping.used.items()
        }
        chosen = []
        for (name, called), cell in zip(wanted.items(), cells, strict=True):
            title = ".".join(_path_steps(called)) if called == name not in present else called
            without = tuple(path[1:] for path in nested if path[0] == name)
            chosen.append((Attribute(title, mapping.kinds.get(name), without), cell))
        plan = cls(table, mapping, present, own, chosen, broken, source)
        plan.rows((), letters=False)
        for attribute, cell in chosen:
            check_attribute(cell.kind, cell.label, attribute.without)
        return plan

    def rows(self, kept: Sequence[str], letters: bool) -> tuple[DataFrame, TableStep]:
        """The columns that are needed, and the step that makes events of them; dead letters need all columns."""
        sent = SentColumns()
        kinds = {name: self.table.schema[name].dataType for name in self.table.columns}
        written = [name for name in self.present if kinds[name].typeName() not in _UNWRITTEN]

        def whole(name: str | None, form: str = "whole") -> int | None:
            return None if name is None else sent.place(name, form, column(name))

        def attribute(cell: TableCell) -> int:
            made = zoned(cell.value, cell.kind)
            return sent.place(cell.label, "whole" if made is cell.value else "zoned", made)

        step = TableStep(
            attributes=tuple((attribute(cell), chosen) for chosen, cell in self.chosen),
            constants=tuple(self.mapping.constants.items()),
            ids=tuple(self._id(sent, cell) for _, (cell,) in self.own.get("id", ())),
            digest=None if self.mapping.id is not None else sent.place("digest", "digest", _digest(written)),
            times={role: self._moments(sent, role) for role in ("time", "end")},
            theme=self._theme(sent),
            tags=self.mapping.tags,
            broken=whole(self.broken),
            source=whole(self.source),
            record=tuple((name, _sendable(sent, name, kinds[name])) for name in written) if letters else None,
            kept=tuple((name, sent.place(name, "whole", column(name))) for name in kept),
            names={role: " or ".join(names) for role, names in self.mapping.used.items()},
        )
        return self.table.select(*sent.columns), step

    @staticmethod
    def _id(sent: SentColumns, cell: TableCell) -> int:
        if cell.kind.typeName() in (*NO_ID, *_UNWRITTEN):
            raise refusal(cell.label, cell.kind, "cannot be an id")
        return sent.place(cell.label, "whole" if cell.text is cell.value else "text", cell.text)

    def _moments(self, sent: SentColumns, role: str) -> tuple[MomentColumns, ...]:
        made = []
        for name, cells in self.own.get(role, ()):
            forms = [(_day_text(cell), "day") for cell in cells] if len(cells) > 1 else [_moment(cells[0])]
            places = (sent.place(cell.label, form, value) for cell, (value, form) in zip(cells, forms, strict=True))
            is_text = len(cells) > 1 or sort_of(cells[0].kind) in TEXT_TYPES
            form = self.mapping.rule_of(name).format
            rule = TimeRule(form if is_text or form in TIME_UNITS else None, self._zone() if is_text else None)
            made.append(MomentColumns(tuple(places), rule))
        return tuple(made)

    def _zone(self) -> tzinfo:
        """The zone of texts without one."""
        name = self.table.sparkSession.conf.get("spark.sql.session.timeZone") or "UTC"
        try:
            return zone_of(name)
        except BuildError as error:
            hint = "set spark.sql.session.timeZone to a region, such as America/Los_Angeles"
            raise BuildError(f"times are in the zone of the session, and {error.message}", hint=hint) from None

    def _theme(self, sent: SentColumns) -> int | None:
        for _, (cell,) in self.own.get("theme", ()):
            if not re.fullmatch(r"(string|(var)?char\(\d+\)|array<string)( collate \w+)?>?", cell.kind.simpleString()):
                raise refusal(cell.label, cell.kind, "cannot be a theme")
            return sent.place(cell.label, "whole", cell.value)
        return None


_UNWRITTEN: Final = ("geography", "geometry")
"""Types that Spark cannot write as text."""
_HALF_TIME: Final = "a part of the time is missing"
UNSENDABLE: Final = re.compile(r"\binterval( (year|month)( to month)?)?(?=[,>]|$)")
"""Types without a counterpart in Arrow."""


def _day_text(cell: TableCell) -> Column:
    """A part of a joined time; of a timestamp only the day."""
    day = cell.kind.typeName().startswith("timestamp")
    return cell.value.cast("date").cast("string") if day else cell.text


def _moment(cell: TableCell) -> tuple[Column, str]:
    """A column of times as a worker reads it, and its form."""
    sort = sort_of(cell.kind)
    if sort in ("timestamp", "timestamp_ntz", "date", "void"):
        return (cell.value, "whole") if sort == "timestamp" else (cell.value.cast("timestamp_ltz"), "moment")
    if sort in (*TEXT_TYPES, *NUMBER_TYPES):
        return cell.value, "whole"
    raise refusal(cell.label, cell.kind, "cannot be a time")


def _sendable(sent: SentColumns, name: str, kind: DataType) -> int:
    if UNSENDABLE.search(kind.simpleString()):
        return sent.place(name, "text", column(name).cast("string"))
    return sent.place(name, "whole", column(name))


def _resolved(table: DataFrame, names: Sequence[str], present: Sequence[str]) -> list[TableCell]:
    """Columns with their types, as Spark's analysis finds them."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F

    for name in names:
        if name not in present:
            _steps(table.schema, name, folding(table))
    values = [column(name) if name in present else F.col(name) for name in names]
    try:
        fields = table.select(*values).schema.fields if names else []
    except AnalysisException as error:
        reason = str(error).partition("SQLSTATE")[0].strip().splitlines()[0]
        raise BuildError(f"the columns cannot be used: {reason}", hint="check the names and paths") from None
    for field, name in zip(fields, names, strict=True):
        refuse_twin_fields(field.dataType, name, folding(table))
    return [TableCell(value, field.dataType, name) for name, value, field in zip(names, values, fields, strict=True)]


def _steps(kind: Any, path: str, fold: Callable[[str], str]) -> FieldPath:
    """The steps of a path as the schema spells them; a missing step is refused.

    Spark's own error is long and goes to standard error.
    """
    steps = list[str]()
    for name in _path_steps(path):
        step = name
        while kind.typeName() == "array":
            kind = kind.elementType
        if kind.typeName() == "map":
            kind = kind.valueType
        elif kind.typeName() == "struct":
            found = [field for field in kind.fields if fold(field.name) == fold(name)]
            if not found:
                hint = f"there are {', '.join(kind.names)}"
                raise BuildError(f"there is no field {name!r} on the path {path!r}", hint=hint)
            step, kind = found[0].name, found[0].dataType
        else:
            raise BuildError(f"the path {path!r} goes on after {kind.simpleString()}", hint="end it before that")
        steps.append(step)
    return tuple(steps)


def _digest(names: Sequence[str]) -> Column:
    """The digest that `row_id` makes of the cells of a line."""
    from pyspark.sql import functions as F

    cells = F.array(*(column(name).cast("string") for name in names))
    return F.substring(F.sha1(F.array_join(cells, BETWEEN, "")), 1, DIGITS)


# In a worker.


@dataclass(frozen=True, slots=True)
class MomentColumns:
    """The columns of a time, or of the parts of a joined one."""

    places: tuple[int, ...]
    rule: TimeRule

    def read(self, batch: pa.RecordBatch) -> Moments:
        """The times of a batch."""
        cells = batch.column(self.places[0])
        half: Flags = np.zeros(batch.num_rows, np.bool_)
        if len(self.places) > 1:
            texts = [pc.utf8_trim_whitespace(batch.column(place)) for place in self.places]
            texts = [pc.if_else(pc.equal(text, ""), None, text) for text in texts]
            gone = np.array([text.is_null().to_numpy(zero_copy_only=False) for text in texts])
            cells = pc.binary_join_element_wise(*texts, " ")
            half = np.asarray(gone.any(axis=0) & ~gone.all(axis=0))
        kind = cells.type
        if pa.types.is_timestamp(kind):
            times = np.asarray(pc.fill_null(instants(cells), NO_TIME).to_numpy(zero_copy_only=False), np.int64)
            times = np.where((times != NO_TIME) & ((times < FIRST) | (times > LAST)), ODD, times)
        elif pa.types.is_integer(kind):
            times = _epochs(cells, self.rule.format)
        else:
            numbers = pa.types.is_floating(kind) or pa.types.is_decimal(kind)
            texts = _number_texts(cells) if numbers else cells.cast(pa.string())
            times, flaws = read_times(texts, self.rule, field="time")
            times[list(flaws)] = ODD
        wrong = times == ODD
        return Moments(np.where(wrong, NO_TIME, times), wrong | half, half)


def _epochs(cells: pa.Array, unit: str | None) -> Numbers:
    """Integers since 1970 as times, `ODD` if out of range; without a unit, their size tells it.

    >>> _epochs(pa.array([5, 1_700_000_000_000, 1_700_000_000_000_000_123]), None).tolist()
    [5000000, 1700000000000000, 1700000000000000]
    """
    numbers = pc.fill_null(cells.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    sizes = np.where(numbers < 0, -(numbers + 1), numbers)
    units = np.searchsorted(_LARGEST, sizes, side="right") if unit is None else _UNITS.index(unit)
    scale = np.array([1_000_000, 1_000, 1, 1])[units]
    whole, rest = np.divmod(numbers, 1_000)
    # Half a microsecond goes to the even one.
    rounded = whole + ((rest > 500) | ((rest == 500) & (whole % 2 == 1)))
    fits = (numbers >= -(-FIRST // scale)) & (numbers <= LAST // scale)
    times = np.where(units == 3, rounded, np.where(fits, numbers * scale, ODD))
    return np.where(cells.is_valid().to_numpy(zero_copy_only=False), times, NO_TIME)


def _number_texts(cells: pa.Array) -> pa.StringArray:
    """Numbers as texts that are not taken for dates such as 20260101."""
    texts = cells.cast(pa.string())
    dotted = pc.binary_join_element_wise(texts, "", ".")
    return pc.if_else(pc.match_substring_regex(texts, r"^[-+]?\d+\z"), dotted, texts)


_UNITS: Final = ("s", "ms", "us", "ns")
_LARGEST: Final = np.array([10**11, 10**14, 10**17])
"""Without a given unit, an epoch time has the first of these units whose bound is greater."""


class Moments(NamedTuple):
    """Times, and which of them cannot be read, or lack a part."""

    times: Numbers
    wrong: Flags
    half: Flags

    @classmethod
    def of(cls, columns: Sequence[MomentColumns], batch: pa.RecordBatch) -> Moments:
        """Of several columns, the first with a value counts, even if that is not a time."""
        none = np.zeros(batch.num_rows, np.bool_)
        times, wrong, half = np.full(batch.num_rows, NO_TIME, np.int64), none, none
        for moments in (part.read(batch) for part in reversed(columns)):
            there = moments.wrong | (moments.times != NO_TIME)
            times, wrong = np.where(there, moments.times, times), np.where(there, moments.wrong, wrong)
            half = half | moments.half
        return cls(times, wrong, half)


@dataclass(frozen=True, slots=True)
class TableStep:
    """Makes events of the columns of a table: what is at which place in the batches that Spark sends."""

    attributes: tuple[tuple[int, Attribute], ...]
    constants: tuple[tuple[str, str], ...]
    ids: tuple[int, ...]
    digest: int | None
    """The place of the ids of rows whose table has no column for them."""
    times: Mapping[str, tuple[MomentColumns, ...]]
    theme: int | None
    tags: tuple[str, ...]
    broken: int | None
    """The place of the text of a row that could not be read."""
    source: int | None
    record: tuple[tuple[str, int], ...] | None
    """The columns of the record of a dead letter; without them, only events are made."""
    kept: tuple[tuple[str, int], ...]
    names: Mapping[str, str]
    """The columns of each role, as they are named in a dead letter."""

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        return (self.read(batch) for batch in batches if batch.num_rows)

    def read(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The events of a batch, and flaws in place of the rows that are none."""
        rows, reader = batch.num_rows, TupleReader()
        parts = [reader.read(batch.column(place), attribute) for place, attribute in self.attributes]
        parts += [reader.constant(name, text, rows) for name, text in self.constants]
        attributes, ids = reader.list_of(parts, rows=rows), self._ids(batch)
        start, end = (Moments.of(self.times[role], batch) for role in ("time", "end"))
        reasons = self._reasons(batch, attributes, ids, start, end)
        ends = np.where(end.times == NO_TIME, start.times, end.times)
        moments = (pa.array(times, mask=times == NO_TIME).cast(_MOMENT) for times in (start.times, ends))
        flaws = pa.nulls(rows, ARROW_SCHEMA.field("flaw").type)
        columns = [ids, *moments, self._themes(batch), attributes]
        if reasons:
            # A null index makes a row without values.
            there = np.ones(rows, np.bool_)
            there[list(reasons)] = False
            order = pa.array(np.arange(rows), mask=~there)
            columns = [values.take(order) for values in columns]
            flaws = self._letters(batch, reasons)
        kept = [batch.column(place) for _, place in self.kept]
        names = [*EVENT_COLUMNS, *(name for name, _ in self.kept)]
        return pa.RecordBatch.from_arrays([*columns, flaws, *kept], names=names)

    def _ids(self, batch: pa.RecordBatch) -> pa.Array:
        texts = [batch.column(place).cast(pa.string()) for place in self.ids]
        if self.digest is not None:
            digests = batch.column(self.digest).cast(pa.string())
            return digests if self.source is None else pc.binary_join_element_wise(self._sources(batch), digests, ":")
        # Of several columns, the first with a value counts.
        return texts[0] if len(texts) == 1 else pc.coalesce(*(pc.if_else(pc.equal(t, ""), None, t) for t in texts))

    def _sources(self, batch: pa.RecordBatch) -> pa.Array:
        sources = "<table>" if self.source is None else batch.column(self.source).cast(pa.string())
        return pa.repeat(sources, batch.num_rows) if isinstance(sources, str) else sources

    def _themes(self, batch: pa.RecordBatch) -> pa.ListArray:
        if self.theme is None:
            offsets = np.arange(batch.num_rows + 1, dtype=np.int32) * len(self.tags)
            tags = pa.array(self.tags * batch.num_rows, pa.string())
            return pa.ListArray.from_arrays(pa.array(offsets), tags)
        cells = batch.column(self.theme)
        if not pa.types.is_list(cells.type):
            cells = pc.split_pattern(cells.cast(pa.string()), ",")
        owner = np.repeat(np.arange(len(cells)), pc.fill_null(pc.list_value_length(cells), 0))
        tags = pc.utf8_trim(cells.flatten().cast(pa.string()), characters=BLANKS)
        there = pc.fill_null(pc.not_equal(tags, ""), False)
        counts = np.bincount(owner[there.to_numpy(zero_copy_only=False)], minlength=len(cells))
        offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), tags.filter(there))

    def _reasons(
        self, batch: pa.RecordBatch, attributes: pa.ListArray, ids: pa.Array, start: Moments, end: Moments
    ) -> dict[int, str]:
        """Why rows are no events; the first reason that applies counts."""
        both = (start.times != NO_TIME) & (end.times != NO_TIME)
        tests: list[tuple[str, Any]] = [(NO_ATTRIBUTES, attributes.value_lengths().to_numpy() == 0)]
        if self.ids:
            tests.append((f"no {self.names['id']}", pc.equal(pc.fill_null(ids, ""), "")))
        tests.append((_HALF_TIME, start.half | end.half))
        tests += [(f"{self.names.get(role)} is not a time", m.wrong) for role, m in (("time", start), ("end", end))]
        tests.append(("the event ends before it starts", both & (end.times < start.times)))
        if self.broken is not None:
            tests.insert(0, (UNEVEN_ROW, batch.column(self.broken).is_valid()))
        reasons = dict.fromkeys(infinite_rows(attributes).tolist(), INFINITE_NUMBER)
        for reason, holds in reversed(tests):
            reasons |= dict.fromkeys(np.flatnonzero(holds).tolist(), reason)
        return reasons

    def _letters(self, batch: pa.RecordBatch, reasons: Mapping[int, str]) -> pa.Array:
        """The flaws of all rows; null for events."""
        rows = sorted(reasons)
        if self.record is None:
            # Only whether there is one is asked.
            letters: dict[int, Any] = {row: {"reason": reasons[row]} for row in rows}
        else:
            bad = batch.take(pa.array(rows))
            records = record_texts({name: bad.column(place) for name, place in self.record})
            broken = [None] * len(rows) if self.broken is None else bad.column(self.broken).to_pylist()
            sources = self._sources(bad).to_pylist()
            letters = {
                row: {"source": source, "line": None, "reason": reasons[row], "record": whole or record}
                for row, source, whole, record in zip(rows, sources, broken, records, strict=True)
            }
        kind = ARROW_SCHEMA.field("flaw").type
        return pa.array([letters.get(row) for row in range(batch.num_rows)], kind)


_MOMENT: Final = pa.timestamp("us", tz="UTC")
FIRST, LAST = to_instant(datetime.min), to_instant(datetime.max)
"""Times are in the years 1 to 9999, as in one process."""
ODD: Final = NO_TIME + 1
"""Not a time."""


def record_texts(columns: Mapping[str, pa.Array]) -> list[str]:
    """Rows as JSON, without the cells that are null.

    >>> record_texts({"id": pa.array(["e"]), "gone": pa.nulls(1), "levels": pa.array([[1.5, float("inf")]])})
    ['{"id":"e","levels":[1.5,"Infinity"]}']
    """
    values = [[_plain(value, cells.type) for value in _values(cells)] for cells in columns.values()]
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True))
    return [
        msgspec.json.encode({name: value for name, value in row.items() if value is not None}).decode() for row in rows
    ]


def _values(cells: pa.Array) -> list[Any]:
    try:
        return list(cells.to_pylist())
    except (ValueError, OverflowError):
        # A time that Python cannot represent.
        return [None if value is None else "out of range" for value in cells.is_valid().to_pylist()]


def _plain(value: Any, kind: pa.DataType) -> Any:
    """A value as JSON has it."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {str(key): _plain(item, kind.item_type) for key, item in value}
    if pa.types.is_struct(kind):
        fields = ((field.name, _plain(value[field.name], field.type)) for field in kind)
        return {name: item for name, item in fields if item is not None}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_plain(item, kind.value_type) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' * (value < 0)}Infinity"
    return value
