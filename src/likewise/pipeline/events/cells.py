"""Cells of any type as tuples of events, read from Arrow columns in a worker: name, value and kind as text.

A struct or a map gives a tuple for each of its leaves, named by the path (`device.name`); an array gives several values
of one attribute. Null, an empty text, an empty array and NaN mean "no value"; the event keeps its other values. Types
that have no meaning as a value are refused when the plan is built.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.errors import BuildError
from likewise.events import COMMA
from likewise.pipeline.events.frame import KINDS, TEXTS

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

NUMBER: Final = r"^[-+]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][-+]?\d+)?\z"
"""A number without leading zeros: codes such as 007 are texts."""
PADDED_NUMBER: Final = r"^[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?\z"
COMMA_NUMBER: Final = r"^[-+]?(\d+|\d{1,3}(\.\d{3})+),\d+\z"
MOMENT: Final = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?\z"
BLANKS: Final = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())
"""The characters that Python strips."""
INFINITE: Final = ("Infinity", "-Infinity")
NO_VALUE: Final = -1

TEXT_TYPES: Final = ("string", "char", "varchar")
NUMBER_TYPES: Final = ("byte", "short", "integer", "long", "float", "double", "decimal")
_LEAVES: Final = (*TEXT_TYPES, *NUMBER_TYPES, "boolean", "timestamp", "timestamp_ntz", "date")
_REFUSED: Final = {
    "binary": "decode it first: F.decode(F.col('{name}'), 'UTF-8'), or leave it out of attributes",
    "variant": "take the fields you need: F.variant_get(F.col('{name}'), '$.field', 'string')",
}


FieldPath: TypeAlias = tuple[str, ...]
"""The steps to a field within a cell."""
Flags: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = NDArray[np.int64]


def check_attribute(kind: DataType, label: str, without: Collection[FieldPath] = ()) -> None:
    """Refuse types that cannot be attributes; `label` names the column in the error."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    match kind:
        case StructType():
            for field in kind.fields:
                if (field.name,) not in without:
                    check_attribute(field.dataType, f"{label}.{field.name}", below(without, field.name))
        case ArrayType(elementType=inner):
            check_attribute(inner, label)
        case MapType(keyType=key, valueType=inner):
            check_leaf(key, f"{label}.key", "cannot name attributes")
            check_attribute(inner, f"{label}.*")
        case _:
            check_leaf(kind, label)


def check_leaf(kind: DataType, label: str, why: str = "cannot be an attribute") -> None:
    """Refuse types that have no text as a single value; `label` names the column in the error, `why` its use."""
    if sort_of(kind) not in (*_LEAVES, "void"):
        raise refusal(label, kind, why)


def sort_of(kind: DataType) -> str:
    """The name of a type without its size: `decimal`, `varchar`."""
    return kind.typeName().partition("(")[0]


def below(paths: Collection[FieldPath], field: str) -> list[FieldPath]:
    """What remains of the paths that lead through a field."""
    return [path[1:] for path in paths if path[0] == field and len(path) > 1]


def refusal(label: str, kind: DataType, why: str) -> BuildError:
    """The error for a column of a type that cannot be used."""
    hint = _REFUSED.get(kind.typeName(), "cast it to a string or a number, or leave it out")
    return BuildError(f"the column {label!r} is {kind.simpleString()}: it {why}", hint=hint.format(name=label))


def zoned(cell: Column, kind: DataType) -> Column:
    """A column whose timestamps without a zone are in that of the session."""
    with_zones = _with_zones(kind)
    return cell if with_zones == kind else cell.cast(with_zones)


def _with_zones(kind: Any) -> Any:
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType, TimestampNTZType, TimestampType

    match kind:
        case TimestampNTZType():
            return TimestampType()
        case StructType():
            return StructType([StructField(f.name, _with_zones(f.dataType), f.nullable) for f in kind.fields])
        case ArrayType():
            return ArrayType(_with_zones(kind.elementType), kind.containsNull)
        case MapType():
            return MapType(_with_zones(kind.keyType), _with_zones(kind.valueType), kind.valueContainsNull)
    return kind


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column whose cells are attributes.

    Without a name, the cell itself names them: a struct, a map, or an array of names and values, whose texts stay
    texts. `kind` is the kind of all leaves. Fields on the paths `without` are used otherwise.
    """

    name: str | None = None
    kind: str | None = None
    without: tuple[FieldPath, ...] = ()


class Tuples(NamedTuple):
    """Tuples of a column: the row of each, in ascending order, and the numbers of its name, value and kind."""

    row: Numbers
    name: Numbers
    value: Numbers
    kind: Numbers

    def where(self, chosen: Flags) -> Tuples:
        """Some of them."""
        return Tuples(self.row[chosen], self.name[chosen], self.value[chosen], self.kind[chosen])


_NONE: Final = np.zeros(0, np.int64)
_NOTHING: Final = Tuples(_NONE, _NONE, _NONE, _NONE)


class TupleReader:
    """Reads the cells of one batch. Names and values are numbered, and each distinct value is converted once.

    >>> reader = TupleReader()
    >>> cells = pa.array([{"room": " hall ", "temp": [21.5, 1e9]}, None, {"room": "007", "temp": None}])
    >>> found = reader.list_of([reader.read(cells, Attribute("place"))], rows=3)
    >>> [[tuple(entry.values()) for entry in tuples] for tuples in found.to_pylist()][0][1:]
    [('place.temp', '21.5', 'number'), ('place.temp', '1.0E9', 'number')]
    >>> [tuple(entry.values()) for entry in found.to_pylist()[2]]
    [('place.room', '007', 'text')]
    """

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._values: list[pa.Array] = [pa.array([], pa.string())]
        self._count = 0

    def read(self, cells: pa.Array, attribute: Attribute) -> Tuples:
        """The tuples of a column."""
        if attribute.name is None:
            return self._of_named(cells)
        return self._read(cells, self._number(attribute.name), attribute.kind, attribute.without)

    def constant(self, name: str, text: str, rows: int) -> Tuples:
        """The same tuple in every row."""
        return self._read(pa.repeat(text, rows), self._number(name), "text", ()) if text else _NOTHING

    def list_of(self, parts: Sequence[Tuples], *, rows: int) -> pa.ListArray:
        """The tuples of all columns as a column of attributes; their texts are dictionaries."""
        tuples = _merged(parts)
        names = pa.DictionaryArray.from_arrays(_narrow(tuples.name), pa.array(list(self._names), pa.string()))
        values = pa.DictionaryArray.from_arrays(_narrow(tuples.value), pa.concat_arrays(self._values))
        kinds = pa.DictionaryArray.from_arrays(_narrow(tuples.kind), pa.array(KINDS))
        entries = pa.StructArray.from_arrays([names, values, kinds], names=list(TEXTS))
        offsets = np.concatenate(([0], np.cumsum(np.bincount(tuples.row, minlength=rows))))
        return pa.ListArray.from_arrays(_narrow(offsets), entries)

    def _number(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names))

    def _of_named(self, cells: pa.Array) -> Tuples:
        """The tuples of a column that names its attributes itself."""
        kind = cells.type
        if pa.types.is_struct(kind):
            fields = zip(kind, cells.flatten(), strict=True)
            return _merged(
                [self._read(part, self._number(field.name), _own_kind(field.type)) for field, part in fields]
            )
        owner, entries = _entries(cells)
        names = [field.name for field in entries.type]
        values, keys = (entries.field(names.index(name)) for name in ("value", "name" if "name" in names else "key"))
        values = pc.if_else(entries.is_valid(), values, None) if entries.null_count else values
        found = self._read(values, self._keyed(keys), _own_kind(values.type))
        return found._replace(row=owner[found.row])

    def _keyed(self, keys: pa.Array, prefix: Numbers | int | None = None) -> Numbers:
        """The numbers of names that consist of a prefix and a key."""
        encoded = keys.dictionary_encode()
        texts, _ = texts_of(encoded.dictionary, "text")
        steps = [text or "" for text in texts.to_pylist()] + [""]
        places = _indices(encoded, len(steps) - 1)
        if prefix is None:
            return np.array([self._number(step) for step in steps])[places]
        known, distinct, back = list(self._names), *np.unique(prefix * len(steps) + places, return_inverse=True)
        made = [f"{known[pair // len(steps)]}.{steps[pair % len(steps)]}" for pair in distinct.tolist()]
        return np.array([self._number(name) for name in made], np.int64)[back]

    def _read(
        self, cells: pa.Array, name: Numbers | int, read_as: str | None, without: Collection[FieldPath] = ()
    ) -> Tuples:
        """The tuples of cells; `name` is the number of their name, or those of each cell's name."""
        kind = cells.type
        if pa.types.is_null(kind):
            return _NOTHING
        if pa.types.is_struct(kind):
            fields = zip(kind, cells.flatten(), strict=True)
            parts = [
                self._read(part, self._under(name, field.name), read_as, below(without, field.name))
                for field, part in fields
                if (field.name,) not in without
            ]
            return _merged(parts)
        if pa.types.is_map(kind):
            owner, entries = _entries(cells)
            keys = self._keyed(entries.field(0), name if isinstance(name, int) else name[owner])
            found = self._read(entries.field(1), keys, read_as)
            for key, *rest in without:
                found = found if rest else found.where(found.name != self._under(name, key))
            return found._replace(row=owner[found.row])
        if _is_list(kind):
            owner, values = _entries(cells)
            found = self._read(values, name if isinstance(name, int) else name[owner], read_as)
            return found._replace(row=owner[found.row])
        return self._leaves(cells, name, read_as)

    def _under(self, name: Numbers | int, field: str) -> Numbers | int:
        """The numbers of the names of a field."""
        if isinstance(name, int):
            return self._number(f"{list(self._names)[name]}.{field}")
        return self._keyed(pa.repeat(field, len(name)), name)

    def _leaves(self, cells: pa.Array, name: Numbers | int, read_as: str | None) -> Tuples:
        encoded = cells.dictionary_encode()
        texts, kinds = texts_of(encoded.dictionary, read_as)
        there = pc.fill_null(pc.not_equal(texts, ""), False).to_numpy(zero_copy_only=False)
        numbers = np.append(np.where(there, np.arange(len(texts)) + self._count, NO_VALUE), NO_VALUE)
        self._values.append(texts)
        self._count += len(texts)
        places = _indices(encoded, len(texts))
        value = numbers[places]
        row = np.flatnonzero(value != NO_VALUE)
        names = np.full(len(row), name) if isinstance(name, int) else name[row]
        return Tuples(row, names, value[row], np.append(kinds, 0)[places[row]])


def infinite_rows(attributes: pa.ListArray) -> Numbers:
    """The rows with an infinite number: nothing can be compared with it."""
    entries = attributes.flatten()
    values, kinds = entries.field(1), entries.field(2)
    # Only few texts are distinct.
    wrong = pc.is_in(values.dictionary, pa.array(INFINITE)) if pa.types.is_dictionary(values.type) else None
    marked = pc.is_in(values, pa.array(INFINITE)) if wrong is None else wrong.take(values.indices)
    if not pc.any(marked).as_py():
        return np.zeros(0, np.int64)
    places = np.flatnonzero(pc.and_(marked, pc.equal(kinds.cast(pa.string()), "number")))
    ends = np.cumsum(attributes.value_lengths().fill_null(0).to_numpy(zero_copy_only=False))
    return np.unique(np.searchsorted(ends, places, side="right"))


def _own_kind(kind: pa.DataType) -> str | None:
    """Attributes have types, so a text is not parsed as a number."""
    inner = kind.value_type if _is_list(kind) else kind
    return "text" if pa.types.is_string(inner) or pa.types.is_large_string(inner) else None


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _entries(cells: pa.Array) -> tuple[Numbers, pa.Array]:
    """The elements of lists or maps, and the row of each."""
    if pa.types.is_map(cells.type):
        fields = [pa.field("key", cells.type.key_type), pa.field("value", cells.type.item_type)]
        cells = cells.cast(pa.list_(pa.struct(fields)))
    lengths = pc.fill_null(pc.list_value_length(cells), 0).to_numpy(zero_copy_only=False)
    return np.repeat(np.arange(len(cells)), lengths), cells.flatten()


def _indices(encoded: pa.DictionaryArray, missing: int) -> Numbers:
    """The place of each value in its dictionary; `missing` for null."""
    return np.asarray(pc.fill_null(encoded.indices, missing).to_numpy(zero_copy_only=False), np.int64)


def _merged(parts: Sequence[Tuples]) -> Tuples:
    """The tuples of several columns, row by row."""
    parts = [part for part in parts if len(part.row)]
    if len(parts) < 2:
        return parts[0] if parts else _NOTHING
    row, name, value, kind = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(row, kind="stable")
    return Tuples(row[order], name[order], value[order], kind[order])


def _narrow(numbers: NDArray[Any]) -> pa.Array:
    return pa.array(numbers.astype(np.int32))


def texts_of(values: pa.Array, read_as: str | None = None) -> tuple[pa.StringArray, Numbers]:
    """The texts of single values, null where there is no value, and the number of the kind of each.

    >>> texts, kinds = texts_of(pa.array(["7", " yes", "true", "1,5"]))
    >>> texts.to_pylist(), [KINDS[kind] for kind in kinds]
    (['7', 'yes', 'true', '1,5'], ['number', 'text', 'boolean', 'text'])
    >>> texts_of(pa.array([1.5, 1e-5, float("nan")]))[0].to_pylist()
    ['1.5', '1.0E-5', None]
    """
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _texts_of_texts(values.cast(pa.string()), read_as)
    if pa.types.is_timestamp(kind):
        texts, sort = pa.array(_moment_texts(values), pa.string()), "time"
    elif pa.types.is_date(kind):
        days = values.cast(pa.date32()).cast(pa.int32()).to_numpy(zero_copy_only=False).astype("datetime64[D]")
        texts, sort = pa.array(np.datetime_as_string(days).tolist(), pa.string()), "text"
    elif pa.types.is_boolean(kind):
        texts, sort = values.cast(pa.string()), "boolean"
    elif pa.types.is_floating(kind):
        texts, sort = pa.array(_float_texts(values), pa.string()), "number"
    elif pa.types.is_decimal(kind):
        texts, sort = pa.array([f"{number:f}" for number in values.to_pylist()], pa.string()), "number"
    else:
        texts, sort = values.cast(pa.string()), "number"
    return texts, np.full(len(texts), KINDS.index("text" if read_as == "text" else sort))


def _texts_of_texts(values: pa.StringArray, read_as: str | None) -> tuple[pa.StringArray, Numbers]:
    """The value and kind of texts, as `value_of_cell` reads them in one process; a text of another kind stays text."""
    kinds = np.full(len(values), KINDS.index("text"))
    if read_as == "text":
        return values, kinds
    texts = pc.utf8_trim(values, characters=BLANKS)
    if read_as == COMMA:
        plain = pc.replace_substring(pc.replace_substring(texts, ".", ""), ",", ".")
        texts = pc.if_else(pc.match_substring_regex(texts, COMMA_NUMBER), plain, texts)
    patterns = {
        "time": MOMENT,
        "boolean": r"^(?i:true|false)\z",
        "number": PADDED_NUMBER if read_as == "number" else NUMBER,
    }
    for kind, pattern in patterns.items():
        if read_as in (None, COMMA, kind):
            found = pc.match_substring_regex(texts, pattern)
            kinds[found.to_numpy(zero_copy_only=False)] = KINDS.index(kind)
    return texts, kinds


def _moment_texts(values: pa.Array) -> list[str]:
    """Timestamps as ISO 8601 texts in UTC."""
    micros = values.cast(pa.timestamp("us", tz=values.type.tz)).cast(pa.int64()).to_numpy(zero_copy_only=False)
    texts = np.datetime_as_string((micros // 1_000_000).astype("datetime64[s]")).tolist()
    rests = (micros % 1_000_000).tolist()
    return [
        f"{text}.{f'{rest:06}'.rstrip('0')}Z" if rest else f"{text}Z" for text, rest in zip(texts, rests, strict=True)
    ]


def _float_texts(values: pa.Array) -> list[str | None]:
    """Numbers as Java writes them, like Spark; None for NaN."""
    numbers = values.to_numpy(zero_copy_only=False)
    # Scalars of NumPy have the digits of their own precision.
    texts = map(str, numbers if numbers.dtype == np.float32 else numbers.tolist())
    sizes = np.abs(numbers)
    plain = ((sizes >= 1e-3) & (sizes < 1e7)) | (sizes == 0)
    return [text if short else _java_text(text) for text, short in zip(texts, plain.tolist(), strict=True)]


def _java_text(text: str) -> str | None:
    """A very large or small number as Java writes it.

    >>> _java_text("1e+16"), _java_text("-12345678.5"), _java_text("inf"), _java_text("nan")
    ('1.0E16', '-1.23456785E7', 'Infinity', None)
    """
    if text in ("inf", "-inf"):
        return text.replace("inf", "Infinity")
    if text == "nan":
        return None
    sign, digits, _ = Decimal(text).as_tuple()
    shown = "".join(map(str, digits)).rstrip("0")
    return f"{'-' * sign}{shown[0]}.{shown[1:] or '0'}E{Decimal(text).adjusted()}"
