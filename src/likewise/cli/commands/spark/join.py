"""`likewise join`: two tables joined by what their words mean."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli.guard import guard
from likewise.cli.meaning import settled, spark_options
from likewise.cli.options import DeadLetters, Json, MeaningOptions, OnSpark, grouped
from likewise.cli.output import counted, errors, output, print_json
from likewise.cli.reading.input import Rejects
from likewise.cli.reading.spaces import open_spaces
from likewise.errors import BuildError

if TYPE_CHECKING:
    import pyarrow as pa


def register(app: typer.Typer) -> None:
    """Add the `join` command."""
    app.command("join")(join)


@grouped
def join(
    left: Annotated[str, typer.Argument(help="A table: .csv, .jsonl or .parquet; `-` is JSON lines on stdin.")],
    right: Annotated[str, typer.Argument(help="The table to look things up in.")],
    *,
    on: Annotated[str, typer.Option(help="Column of both, or of each: `device=name`.")],
    best: Annotated[
        int | None,
        typer.Option(min=1, help="Keep only the N nearest terms of the right; any score above 0 counts then."),
    ] = None,
    how: Annotated[str, typer.Option(help="inner, left, right, full, semi or anti.")] = "inner",
    meaning: MeaningOptions,
    explain: Annotated[bool, typer.Option("--explain", help="Add `why`: the concepts that carry the score.")] = False,
    score: Annotated[str, typer.Option(help="What the column of scores is called.")] = "relatedness",
    dead_letters: DeadLetters = None,
    where: OnSpark,
    out: Annotated[str | None, typer.Option(help="Write here, by its suffix .csv, .jsonl or .parquet.")] = None,
    as_json: Json = False,
) -> None:
    """Join two tables by meaning: rows with similar words, with scores.

    The right table asks, in its words, and the left answers: a `fan` on the right takes a `ceiling fan`.

    Example: `likewise join sensors.csv catalogue.csv --on device=name --best 1`
    """
    on_spark, meaning = where.wanted, settled(meaning)
    guard(
        reads={"LEFT": left, "RIGHT": right, "--background": meaning.background, "--glossary": meaning.glossary},
        writes={"--dead-letters": dead_letters, "--out": None if on_spark else out},
        makes={"--out": out if on_spark else None},
    )
    measure = measure_of(meaning)
    extras = _measure_options(meaning, measure)
    mine, _, theirs = on.partition("=")
    names = (mine, theirs or mine)
    options: dict[str, Any] = {
        "threshold": meaning.threshold,
        "best": best,
        "how": how,
        "with_explanation": explain,
        "score": score,
    }
    rejects = Rejects(dead_letters)
    if on_spark:
        spaces = [str(space.path) for space in _spaces(measure, meaning.space)]
        words = {"background": extras.get("background"), "glossary": meaning.glossary}
        asked = {**options, "on": names, "measure": measure, "spaces": spaces, **words}
        places = {"master": where.master, "remote": where.remote}
        count = _on_spark(
            (left, right),
            places,
            out=out,
            as_json=as_json,
            rejects=rejects,
            options=asked,
        )
    else:
        from likewise.cli.reading.tables import read_table, write_table
        from likewise.pipeline import join_tables
        from likewise.semantics import measure as make

        made = make(measure, spaces=_spaces(measure, meaning.space), **extras)
        tables = [read_table(source, rejects) for source in (left, right)]
        found = join_tables(*tables, on=names, measure=made, **options)
        count = found.num_rows
        write_table(found, out) if out is not None else _show(_rows(found), found.schema.names, as_json=as_json)
    if not as_json:
        errors.print(counted(count, "row") + (f" in {out}" if out else ""), markup=False)
    rejects.conclude()


def measure_of(meaning: MeaningOptions) -> str:
    """The measure of a join: the one that was named, or that of the approach.

    >>> measure_of(MeaningOptions()), measure_of(MeaningOptions(approach="approximate", measure="embedding"))
    ('evidence', 'embedding')
    """
    from likewise.matching import Approach, measure_name

    if meaning.approach is None:
        return meaning.measure or "evidence"
    approach = Approach.parse(meaning.approach)
    if approach.base == "exact":
        raise BuildError("an exact join asks for no meaning", hint="--threshold 1 joins the same terms only")
    if approach.base == "clustered" or (approach.contrast and approach.base != "evidence"):
        raise BuildError(f"a join has no approach {meaning.approach}", hint="its rivals are weighed by evidence")
    named = measure_name(approach)
    if meaning.measure is not None and meaning.measure != named and approach.base != "approximate":
        raise BuildError(f"the approach {approach} has the measure {named}", hint="leave out --approach or --measure")
    return meaning.measure or named


def _measure_options(meaning: MeaningOptions, measure: str) -> dict[str, Any]:
    """The options of the measure besides its spaces."""
    from likewise.matching import Background
    from likewise.semantics import Competitors, Glossary

    options: dict[str, Any] = {}
    if meaning.glossary is not None:
        if measure != "evidence":
            raise BuildError(f"the measure {measure} takes no glossary", hint="choose --measure evidence")
        options["glossary"] = Glossary.from_file(meaning.glossary)
    stream = spark_options(meaning).get("background")
    if stream is not None:
        if measure.partition("+")[0] != "evidence" and "+rank" not in measure:
            raise BuildError(f"the measure {measure} takes no background", hint="choose --measure evidence")
        # Only words count here: a join has no predicates whose answers could be common.
        options["background"] = Competitors.from_events(stream.events) if isinstance(stream, Background) else stream
    return options


def _spaces(measure: str, names: list[str] | None) -> list[Any]:
    from likewise.semantics import list_spaces, needs_space

    helped = measure.partition("+")[0] == "evidence" and bool(names or list_spaces())
    return list(open_spaces(names)) if helped or needs_space(measure) else []


def _rows(table: pa.Table) -> Iterable[dict[str, Any]]:
    for batch in table.to_batches(max_chunksize=1000):
        yield from batch.to_pylist()


def _show(rows: Iterable[dict[str, Any]], names: list[str], *, as_json: bool) -> int:
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007 - the last is the number of them
        if as_json:
            print_json(row)
        else:
            output.print("  ".join(f"{name}: {_cell(row[name])}" for name in names), markup=False, soft_wrap=True)
    return count


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list) and value and isinstance(value[0], dict) and "concept" in value[0]:
        return " · ".join(f"{shared['concept']} {shared['weight']:.4f}" for shared in value)
    return "" if value is None else str(value)


def _on_spark(
    sources: tuple[str, str],
    places: dict[str, str | None],
    *,
    out: str | None,
    as_json: bool,
    rejects: Rejects,
    options: dict[str, Any],
) -> int:
    from likewise.cli.spark.session import progress_of, refuse_taken, session
    from likewise.cli.spark.tables import spark_table
    from likewise.pipeline import join_by_meaning

    if out is not None and Path(out).suffix not in ("", ".parquet"):
        raise BuildError(f"on Spark {out} would be a folder of Parquet files", hint="name it so: --out joined.parquet")
    refuse_taken(out)
    with session(**places) as spark, progress_of(spark):
        tables = [spark_table(spark, source) for source in sources]
        found = join_by_meaning(tables[0].rows, tables[1].rows, **options)
        if out is None:
            rows = (row.asDict(recursive=True) for row in found.toLocalIterator())
            count = _show(rows, found.columns, as_json=as_json)
        else:
            path = out if "://" in out else str(Path(out).absolute())
            found.write.mode("errorifexists").parquet(path)
            count = int(spark.read.parquet(path).count())
        for table in tables:
            table.reject(rejects)
    return count
