"""Arguments that the functions of this package share: durations, subscriptions in any form, checks of option names."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from likewise.errors import BuildError, InputError
from likewise.language import parse_duration, write_header
from likewise.recipe import Interests
from likewise.semantics import Glossary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Span: TypeAlias = str | timedelta
"""A length of time: as patterns write it (`90 seconds`), or a `timedelta`."""

Subscriptions: TypeAlias = "Interests | DataFrame"
"""All forms of `Interests`, or a DataFrame with the columns `subscription` and, if they have names, `name`."""


class LikewiseWarning(UserWarning):
    """Something was left out, or is slow, that may not be meant so."""


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


def seconds(duration: float | Span) -> float:
    """A length of time in seconds, given as a number of them or in any form of `microseconds`.

    >>> seconds(1.5), seconds("2 minutes"), seconds(timedelta(seconds=3))
    (1.5, 120.0, 3.0)
    """
    if isinstance(duration, int | float):
        return float(duration)
    return (microseconds(duration) or 0) / 1_000_000


def check_frame(frame: object) -> None:
    """Refuse what is not a DataFrame of Spark, such as a path or a DataFrame of pandas."""
    if not hasattr(frame, "isStreaming"):
        kind = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__name__}".removeprefix("builtins.")
        hint = "read_events(spark, path) reads files, spark.createDataFrame(…) takes tables in memory"
        raise BuildError(f"this needs a DataFrame of Spark, not {kind}", hint=hint)
    workers_run_this_python(frame.sparkSession)  # type: ignore[attr-defined]  # any DataFrame has it


def workers_run_this_python(spark: SparkSession) -> None:
    """Make the workers of a local session run the Python of this process, unless another one was chosen.

    Spark would run the first `python3` on the path, which may lack Likewise.
    """
    context = getattr(spark, "sparkContext", None)  # a session of Spark Connect has none
    if context is None or "PYSPARK_PYTHON" in os.environ:
        return
    if (context.master or "").startswith("local") and not spark.conf.get("spark.pyspark.python", None):
        context.pythonExec = sys.executable


def interests(subscriptions: Any) -> Any:
    """Subscriptions as a recipe takes them; those of a DataFrame are collected."""
    columns = getattr(subscriptions, "columns", None)
    if columns is None or not hasattr(subscriptions, "collect"):
        if columns is not None or not isinstance(subscriptions, str | Path | Iterable):
            kind = type(subscriptions).__name__
            raise BuildError(f"subscriptions cannot be {kind}", hint="a text, a path, a list, a mapping or a DataFrame")
        if isinstance(subscriptions, Mapping):
            _check_texts(subscriptions.items())
        return subscriptions
    places = {name.lower(): place for place, name in enumerate(columns)}
    if "subscription" not in places:
        known = ", ".join(columns)
        raise BuildError(f"the table of subscriptions has only {known}", hint="columns: name (optional), subscription")
    rows = subscriptions.collect()
    texts = [row[places["subscription"]] for row in rows]
    if None in texts:
        raise BuildError("a row of the table has no subscription", hint="columns: name (optional), subscription")
    names = [row[places["name"]] if "name" in places else None for row in rows]
    _check_texts(zip(names, texts, strict=True))
    return [f"{write_header(str(name))}: {text}" if name else text for name, text in zip(names, texts, strict=True)]


def _check_texts(named: Iterable[tuple[Any, Any]]) -> None:
    for name, text in named:
        if not isinstance(text, str):
            title = f"the subscription {name!r}" if name else "a subscription"
            raise BuildError(f"{title} is {type(text).__name__}, not text", hint="such as '{temp > 30}'")
