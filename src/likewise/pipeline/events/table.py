"""Events from the columns of any table: which column is the id, which the time, which are attributes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from likewise.errors import BuildError, named_options
from likewise.events import (
    JOINED,
    TIME_UNITS,
    RecordMapping,
    TimeRule,
    zone_of,
)
from likewise.pipeline.events.cells import (
    NUMBER_TYPES,
    TEXT_TYPES,
    Attribute,
    FieldPath,
    check_attribute,
    refusal,
    sort_of,
    zoned,
)
from likewise.pipeline.events.frame import (
    BETWEEN,
    DIGITS,
    EVENT_COLUMNS,
    EVENTS_SCHEMA,
    NO_ID,
    Keep,
    column,
    folding,
    refuse_twin_fields,
    watermark_of,
)
from likewise.pipeline.events.table_step import MomentColumns, TableStep
from likewise.pipeline.events.transfer import Decoded, EventOrigin, SentColumns, remember, with_watermark
from likewise.pipeline.options import check_frame

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructField, StructType


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
        """The cell as Spark writes it; null for NaN."""
        from pyspark.sql import functions as F

        # Without its collation, which most functions refuse.
        text = self.value if self.kind.simpleString() == "string" else self.value.cast("string")
        return F.when(~F.isnan(self.value), text) if self.kind.typeName() in ("float", "double") else text


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
    check_frame(table)
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
