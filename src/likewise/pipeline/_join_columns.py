"""Which columns a join by meaning goes by, and what its result is called: checked before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from likewise.errors import BuildError
from likewise.pipeline._join_near import TAG

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Names: TypeAlias = str | tuple[str, str] | Mapping[str, str] | Sequence[str | tuple[str, str]]
"""A column of both sides, or one of each (left, right); a mapping or a list where there are several."""

HOW = {
    "inner": "inner",
    "left": "left",
    "leftouter": "left",
    "right": "right",
    "rightouter": "right",
    "outer": "full",
    "full": "full",
    "fullouter": "full",
    "semi": "left_semi",
    "leftsemi": "left_semi",
    "anti": "left_anti",
    "leftanti": "left_anti",
}


def pairs_of(names: Names) -> tuple[tuple[str, str], ...]:
    """Columns by pairs, left and right.

    >>> pairs_of("device"), pairs_of(("device", "name"))
    ((('device', 'device'),), (('device', 'name'),))
    >>> pairs_of(["device", ("room", "place")]) == pairs_of({"device": "device", "room": "place"})
    True
    """
    if isinstance(names, str):
        return ((names, names),)
    if isinstance(names, Mapping):
        return tuple(names.items())
    if isinstance(names, tuple) and len(names) == 2 and all(isinstance(name, str) for name in names):
        return ((str(names[0]), str(names[1])),)
    return tuple((each, each) if isinstance(each, str) else (each[0], each[1]) for each in names)


def how_of(how: str) -> str:
    """Spark's name of a kind of join.

    >>> how_of("left_outer"), how_of("FULL"), how_of("anti")
    ('left', 'full', 'left_anti')
    """
    found = HOW.get(how.lower().replace("_", ""))
    if found is None:
        raise BuildError(
            f"a join by meaning cannot be {how!r}", hint="one of inner, left, right, full, left_semi, left_anti"
        )
    return found


@dataclass(frozen=True, slots=True)
class Side:
    """One table, with columns added for the keys that it is joined by."""

    frame: DataFrame
    on: tuple[str, ...]
    equal: tuple[str, ...]
    theme: str | None
    letter: str

    @property
    def keys(self) -> list[str]:
        """The names of the added keys by meaning."""
        return [f"_likewise_{self.letter}{at}" for at in range(len(self.on))]

    @property
    def same(self) -> list[str]:
        """The names of the added keys that must be equal; alike on both sides."""
        return [f"_likewise_same{at}" for at in range(len(self.equal))]

    def check(self) -> None:
        """Every column is there once, and holds text where it must."""
        types = dict(self.frame.dtypes)
        known = ", ".join(self.frame.columns)
        if len(types) < len(self.frame.columns):
            raise BuildError("a table has two columns of the same name", hint=f"rename one: there are {known}")
        for name in (*self.on, *self.equal, *([self.theme] if self.theme else ())):
            if name not in types:
                raise BuildError(f"there is no column {name!r} to join on", hint=f"there are {known}")
        for name in self.on:
            if types[name].partition("(")[0] not in ("string", "char", "varchar"):
                raise BuildError(
                    f"the column {name!r} is {types[name]}, not text", hint=f"cast it: F.col('{name}').cast('string')"
                )
        if self.theme and types[self.theme] not in ("string", "array<string>"):
            raise BuildError(f"the column {self.theme!r} is no theme", hint="a theme is a tag or an array of tags")

    def keyed(self, rename: Mapping[str, str] | None = None) -> DataFrame:
        """The table with its keys, and with other names for its own columns where they are given."""
        rename = rename or {}
        own = [column(name).alias(rename.get(name, name)) for name in self.frame.columns]
        keys = [self._key(name).alias(key) for name, key in zip(self.on, self.keys, strict=True)]
        same = [column(name).alias(key) for name, key in zip(self.equal, self.same, strict=True)]
        return self.frame.select(*own, *keys, *same)

    def _key(self, name: str) -> Column:
        from pyspark.sql import functions as F  # noqa: N812

        if self.theme is None:
            return column(name)
        theme = column(self.theme)
        tags = F.array(theme) if dict(self.frame.dtypes)[self.theme] == "string" else theme
        ordered = F.array_sort(F.array_distinct(F.array_compact(F.coalesce(tags, F.array()))))
        term = F.translate(column(name), TAG, " ")
        return F.when(column(name).isNotNull(), F.concat_ws(TAG, term, ordered))


def column(name: str) -> Column:
    """A column by its very name, dots and blanks included."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.col("`" + name.replace("`", "``") + "`")


def new_names(
    left: Sequence[str],
    right: Sequence[str],
    *,
    suffix: str,
    added: Iterable[str],
    fold: Callable[[str], str] = str.lower,
) -> dict[str, str]:
    """What the columns of the right side are called beside those of the left; no name comes twice.

    >>> new_names(["id", "word"], ["ID", "term"], suffix="_right", added=["relatedness"])
    {'ID': 'ID_right', 'term': 'term'}
    """
    taken = {fold(name) for name in left}
    renamed = {name: f"{name}{suffix}" if fold(name) in taken else name for name in right}
    for name in (*renamed.values(), *added):
        if fold(name) in taken:
            raise BuildError(
                f"the result would have two columns {name!r}",
                hint="choose another suffix or score, or rename a column",
            )
        taken.add(fold(name))
    return renamed


def folding(frame: DataFrame) -> Callable[[str], str]:
    """How names of columns are compared: without their capitals, unless Spark is told otherwise."""
    sensitive = frame.sparkSession.conf.get("spark.sql.caseSensitive", "false") == "true"
    return str if sensitive else str.lower
