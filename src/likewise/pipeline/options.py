"""What the functions of this package share in their arguments: durations, subscriptions in any form, misspelt names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from likewise.errors import BuildError, InputError
from likewise.language import parse_duration
from likewise.recipe import Interests
from likewise.semantics import Glossary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Span: TypeAlias = str | timedelta
"""A length of time: as patterns write it (`90 seconds`), or a `timedelta`."""

Subscriptions: TypeAlias = "Interests | DataFrame"
"""All forms of `Interests`, or a DataFrame with the columns `subscription` and, if they have names, `name`."""

P = ParamSpec("P")
R = TypeVar("R")


def named_options(function: Callable[P, R]) -> Callable[P, R]:
    """A function whose unknown options are a `TypeError` that names the nearest known one.

    >>> @named_options
    ... def match(*, threshold=0.5):
    ...     return threshold
    >>> match(treshold=1)
    Traceback (most recent call last):
    ...
    TypeError: match() got an unexpected keyword argument 'treshold'. Did you mean 'threshold'?
    """
    known = [name for name in signature(function).parameters if name != "self"]
    title = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def checked(*arguments: P.args, **options: P.kwargs) -> R:
        for name in options:
            if name not in known:
                near = get_close_matches(name, known, n=1)
                more = f" Did you mean {near[0]!r}?" if near else f" It takes {', '.join(known)}."
                raise TypeError(f"{title}() got an unexpected keyword argument {name!r}.{more}")
        return function(*arguments, **options)

    return checked


def glossary_text(path: str | Path | None, *, measure: str | None = None) -> str | None:
    """The text of a glossary, read and checked here, so that it goes to the workers with the recipe."""
    if path is None:
        return None
    if measure not in (None, "evidence"):
        raise BuildError(f"the measure {measure} takes no glossary", hint="choose the measure evidence")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=str(path), hint="check the path") from None
    except UnicodeDecodeError:
        raise InputError("not valid UTF-8", source=str(path), hint="write the file as UTF-8") from None
    Glossary.from_text(text, source=str(path))
    return text


def microseconds(duration: Span | None) -> int | None:
    """A length of time in microseconds.

    >>> microseconds("90 seconds"), microseconds(timedelta(days=1))
    (90000000, 86400000000)
    """
    if duration is None:
        return None
    if isinstance(duration, timedelta):
        length = duration // timedelta(microseconds=1)
        if length < 0:
            raise BuildError(f"{duration} is a negative length of time", hint="such as timedelta(seconds=90)")
        return length
    return parse_duration(str(duration))


def interests(subscriptions: Any) -> Any:
    """Subscriptions as a recipe takes them; those of a DataFrame are collected."""
    columns = getattr(subscriptions, "columns", None)
    if columns is None or not hasattr(subscriptions, "collect"):
        if not isinstance(subscriptions, str | Path | Iterable):
            kind = type(subscriptions).__name__
            raise BuildError(f"subscriptions cannot be {kind}", hint="a text, a path, a list, a mapping or a DataFrame")
        return subscriptions
    if "subscription" not in columns:
        names = ", ".join(columns)
        raise BuildError(f"the table of subscriptions has only {names}", hint="columns: name (optional), subscription")
    rows = subscriptions.collect()
    for row in rows:
        if row["subscription"] is None:
            raise BuildError("a row of the table has no subscription", hint="columns: name (optional), subscription")
    named = "name" in columns
    return [f"{row['name']}: {row['subscription']}" if named and row["name"] else row["subscription"] for row in rows]
