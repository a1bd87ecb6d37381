"""Events from the columns of any table: which column is the id, which the time, which are attributes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from likewise.errors import BuildError
from likewise.events import JOINED, RecordMapping
from likewise.pipeline.events.cells import (
    BLANKS,
    FieldPath,
    infinite,
    joined,
    moment_of,
    refusal,
    sound,
    tuple_of,
    tuples_of,
)
from likewise.pipeline.events.frame import (
    ATTRIBUTES,
    BETWEEN,
    DIGITS,
    EVENT_COLUMNS,
    FLAW,
    INFINITE_NUMBER,
    NO_ATTRIBUTES,
    NO_ID,
    Keep,
    column,
    folding,
    refuse_twin_fields,
    watermark_of,
    with_metadata,
)
from likewise.pipeline.options import named_options

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

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
    """A resolved column of a table: the expression, its type and its name."""

    value: Column
    kind: DataType
    label: str
    parts: int = 0
    """The number of columns that were joined to it."""


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
    """Events from the columns of a table, by Spark's own expressions alone.

    A field of the mapping is a column, or the path of a field in a struct or map (`device.name`); `computed` adds
    columns made of others, by name, as `withColumns` does. Structs and maps are flattened by path, arrays are several
    values. A text that reads as a number, a boolean or a timestamp is one, unless `kinds` says otherwise for its
    column. Times without a zone are in that of the session. A row without a value in any attribute, without its id, or
    whose time cannot be read, gets a `flaw` instead. `keep` names columns of the table that stay beside those of the
    event (`"*"`: all with other names). `broken` and `source` are columns of the table with the text of an unreadable
    row and with the file of each row.
    """
    from pyspark.sql import functions as F

    check_mapping(columns)
    table = with_computed(table, computed)
    present = [name for name in table.columns if name not in (broken, source)]
    _refuse_twins(table.columns, folding(table))
    mapping = bound(columns, present, folding(table))
    if mapping.zone is not None:
        raise BuildError("Spark reads times in the zone of its session", hint="set spark.sql.session.timeZone")
    plan = _Plan.of(table, mapping, present)
    kept = kept_columns(keep, present, taken=EVENT_COLUMNS, fold=folding(table))
    written = [name for name in present if table.schema[name].dataType.typeName() not in _UNWRITTEN]
    cells = table.select(
        plan.id().alias(_ID),
        *(plan.moment(name).alias(f"_likewise_{name}") for name in ("time", "end")),
        plan.theme().alias(_THEME),
        plan.attributes().alias(_ATTRIBUTES),
        plan.unread().alias(_UNREAD),
        *(column(name).alias(f"_likewise_{at}") for at, name in enumerate(kept)),
        *((column(broken) if broken else F.lit(None).cast("string")).alias(_BROKEN),),
        *((column(source) if source else F.lit("<table>")).alias(_SOURCE),),
        _row(written).alias(_ROW),
        _digest(written).alias(_DIGEST),
    )
    judged = cells.select("*", _reason(mapping, broken is not None).alias(_REASON))
    timed = mapping.used.get("time", ())
    watermark = watermark_of(table, timed[0]) if len(timed) == 1 else {}
    return judged.select(
        *_event_columns(mapping, filed=source is not None, watermark=watermark),
        *(F.col(f"_likewise_{at}").alias(name) for at, name in enumerate(kept)),
    )


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


_ID, _TIME, _END, _THEME, _ATTRIBUTES, _UNREAD, _BROKEN, _SOURCE, _ROW, _DIGEST, _REASON = (
    f"_likewise_{name}"
    for name in ("id", "time", "end", "theme", "attributes", "unread", "broken", "source", "row", "digest", "reason")
)


def _event_columns(mapping: RecordMapping, *, filed: bool, watermark: Mapping[str, int]) -> list[Column]:
    from pyspark.sql import functions as F

    good = F.col(_REASON).isNull()
    # A row without an id gets a digest of its content, so that reading it twice gives the same id.
    digest = F.concat(_SOURCE, F.lit(":"), _DIGEST) if filed else F.col(_DIGEST)
    key = F.col(_ID) if mapping.id is not None else digest
    letter = F.struct(
        F.col(_SOURCE).alias("source"),
        F.lit(None).cast("bigint").alias("line"),
        F.col(_REASON).alias("reason"),
        F.coalesce(F.col(_BROKEN), F.col(_ROW)).alias("record"),
    )
    return [
        F.when(good, key).alias("id"),
        with_metadata(F.when(good, F.col(_TIME)), "time", watermark),
        F.when(good, F.coalesce(_END, _TIME)).alias("end"),
        F.when(good, F.col(_THEME)).alias("theme"),
        F.when(good, F.col(_ATTRIBUTES)).alias("attributes"),
        F.when(~good, letter).cast(FLAW).alias("flaw"),
    ]


def kept_columns(
    keep: Keep, present: Sequence[str], *, taken: Sequence[str], fold: Callable[[str], str] = str
) -> list[str]:
    """The checked names of the columns to keep; `"*"` is all whose names are not `taken`.

    >>> kept_columns("*", ["id", "tenant"], taken=["id", "time"]), kept_columns(["tenant"], ["tenant"], taken=["id"])
    (['tenant'], ['tenant'])
    """
    ours = {fold(name) for name in taken}
    if keep == "*":
        return [name for name in present if fold(name) not in ours]
    chosen = [_spelt(name, present, fold) for name in ([keep] if isinstance(keep, str) else keep)]
    for name in chosen:
        if name not in present:
            root = _spelt(_path_steps(name)[0], present, fold)
            raise BuildError(f"{name!r} is a field; only whole columns can be kept", hint=f"keep the column {root!r}")
        if fold(name) in ours:
            raise BuildError(f"the column {name!r} cannot be kept beside ours", hint="rename it first")
    return list(dict.fromkeys(chosen))


class _Plan(NamedTuple):
    """The columns of a mapping, resolved against a table."""

    mapping: RecordMapping
    own: dict[str, list[TableCell]]
    chosen: list[tuple[str, str, TableCell]]
    nested: list[FieldPath]
    """Fields within columns that are not attributes, because they have another role and attributes were not chosen."""

    @classmethod
    def of(cls, table: DataFrame, mapping: RecordMapping, present: Sequence[str]) -> _Plan:
        wanted = mapping.renamed(present)
        paths = [name for name in mapping.taken if name not in present and mapping.names is None]
        nested = [_steps(table.schema, path, folding(table)) for path in paths]
        cells = iter(_resolved(table, [*mapping.taken, *wanted], present))
        own = {
            role: [_whole(name, [next(cells) for _ in mapping.parts(name, role)]) for name in names]
            for role, names in mapping.used.items()
        }
        chosen = [
            (".".join(_path_steps(called)) if called == name not in present else called, name, cell)
            for (name, called), cell in zip(wanted.items(), cells, strict=True)
        ]
        return cls(mapping, own, chosen, nested)

    def id(self) -> Column:
        from pyspark.sql import functions as F

        cells = self.own.get("id", [])
        for cell in cells:
            if cell.kind.typeName() in (*NO_ID, *_UNWRITTEN):
                raise refusal(cell.label, cell.kind, "cannot be an id")
        texts = [cell.value.cast("string") for cell in cells]
        # Of several columns, the first with a value counts.
        texts = [F.when(text != "", text) for text in texts] if len(texts) > 1 else texts
        return F.coalesce(*texts) if texts else F.lit(None).cast("string")

    def moment(self, role: str) -> Column:
        """The time of a role: of several columns, the first with a value, even if it is not a time."""
        from pyspark.sql import functions as F

        made = F.lit(None).cast("timestamp_ltz")
        for cell in reversed(self.own.get(role, [])):
            written = self.mapping.rule_of(cell.label).format
            found = moment_of(cell.value, cell.kind, label=cell.label, format=written)
            made = F.when(_has_value(cell), found).otherwise(made)
        return made

    def unread(self) -> Column:
        """Three flags: the time cannot be read, the end cannot be read, a part of a joined time is missing."""
        from pyspark.sql import functions as F

        def there(role: str) -> Column:
            return reduce(or_, (_has_value(cell) for cell in self.own.get(role, [])), F.lit(False))

        cells = [cell for role in ("time", "end") for cell in self.own.get(role, [])]
        halved = reduce(or_, (cell.value == _HALVED for cell in cells if cell.parts), F.lit(False))
        lost = (there(role) & self.moment(role).isNull() for role in ("time", "end"))
        return F.array(*lost, F.coalesce(halved, F.lit(False)))

    def theme(self) -> Column:
        from pyspark.sql import functions as F

        cell = next(iter(self.own.get("theme", [])), None)
        if cell is None:
            return F.array(*(F.lit(tag) for tag in self.mapping.tags)).cast("array<string>")
        sort = cell.kind.typeName().partition("(")[0]
        if sort in ("string", "char", "varchar"):
            tags = F.split(F.trim(F.coalesce(cell.value, F.lit(""))), r"\s*,\s*")
        elif re.fullmatch(r"array<string( collate \w+)?>", cell.kind.simpleString()):
            given = cell.value.cast("array<string>")
            none = F.array().cast("array<string>")
            tags = F.transform(F.coalesce(given, none), lambda tag: F.btrim(tag, F.lit(BLANKS)))
        else:
            raise refusal(cell.label, cell.kind, "cannot be a theme")
        return F.filter(tags, lambda tag: tag.isNotNull() & (tag != ""))

    def attributes(self) -> Column:
        from pyspark.sql import functions as F

        made = [
            tuples_of(
                cell.value,
                cell.kind,
                name=F.lit(name),
                label=cell.label,
                read_as=self.mapping.kinds.get(spec),
                without=[path[1:] for path in self.nested if path[0] == spec],
            )
            for name, spec, cell in self.chosen
        ]
        fixed = [
            F.array(tuple_of(F.lit(name), F.lit(text), F.lit("text"))) for name, text in self.mapping.constants.items()
        ]
        return sound(joined([*made, *fixed]).cast(ATTRIBUTES))


_UNWRITTEN: Final = ("geography", "geometry")
"""Types that Spark cannot write as text."""
_HALVED: Final = "half"
_HALF_TIME: Final = "a part of the time is missing"


def _whole(name: str, cells: Sequence[TableCell]) -> TableCell:
    """The cell of a name: its column, or the joined texts of the columns that form a time together."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType

    if len(cells) == 1:
        return cells[0]
    days = [cell.value.cast("date") if cell.kind.typeName().startswith("timestamp") else cell.value for cell in cells]
    some, every = (reduce(by, map(_has_value, cells)) for by in (or_, and_))
    text = F.concat_ws(" ", *(F.trim(day.cast("string")) for day in days))
    return TableCell(F.when(every, text).when(some, F.lit(_HALVED)), StringType(), name, parts=len(cells))


def _has_value(cell: TableCell) -> Column:
    """Whether a cell has a value; an empty text counts as none."""
    from pyspark.sql import functions as F

    is_text = cell.kind.typeName().partition("(")[0] in ("string", "char", "varchar")
    there = cell.value.isNotNull()
    return there & (F.trim(cell.value) != "") if is_text else there


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
    return [
        # Without its collation, which most functions refuse.
        TableCell(value.cast("string") if field.dataType.typeName() == "string" else value, field.dataType, name)
        for name, value, field in zip(names, values, fields, strict=True)
    ]


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


def _row(present: Sequence[str]) -> Column:
    from pyspark.sql import functions as F

    return F.to_json(F.struct(*(column(name) for name in present)))


def _digest(present: Sequence[str]) -> Column:
    """The digest that `row_id` makes of the cells of a line."""
    from pyspark.sql import functions as F

    cells = (F.coalesce(column(name).cast("string"), F.lit("")) for name in present)
    return F.substring(F.sha1(F.concat_ws(BETWEEN, *cells)), 1, DIGITS)


def reasons(columns: RecordMapping) -> list[str]:
    """The possible flaws of a row; the first that applies is reported."""
    reasons = [NO_ATTRIBUTES]
    if columns.id is not None:
        reasons.append(f"no {' or '.join(columns.used['id'])}")
    if any(len(columns.parts(name)) > 1 for name in columns.times):
        reasons.append(_HALF_TIME)
    reasons += [f"{' or '.join(columns.used[role])} is not a time" for role in ("time", "end") if role in columns.used]
    return [*reasons, "the event ends before it starts", INFINITE_NUMBER]


def _reason(columns: RecordMapping, broken: bool) -> Column:
    from pyspark.sql import functions as F

    tests = [F.size(_ATTRIBUTES) == 0]
    if columns.id is not None:
        tests.append(F.coalesce(F.col(_ID), F.lit("")) == "")
    if any(len(columns.parts(name)) > 1 for name in columns.times):
        tests.append(F.get(_UNREAD, F.lit(2)))
    tests += [F.get(_UNREAD, at) for at, role in enumerate(("time", "end")) if role in columns.used]
    tests += [F.col(_END) < F.col(_TIME), infinite(F.col(_ATTRIBUTES))]
    found = [F.when(test, F.lit(text)) for test, text in zip(tests, reasons(columns), strict=True)]
    reason = F.coalesce(*found)
    return F.when(F.col(_BROKEN).isNotNull(), F.lit(UNEVEN_ROW)).otherwise(reason) if broken else reason
