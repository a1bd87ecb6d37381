"""`likewise join`: two tables joined by what their words mean."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli.guard import guard
from likewise.cli.options import DeadLetters
from likewise.cli.output import counted, errors, output, print_json
from likewise.cli.reading.input import Rejects
from likewise.cli.reading.spaces import open_spaces
from likewise.errors import BuildError

if TYPE_CHECKING:
    import pyarrow as pa


def register(app: typer.Typer) -> None:
    """Add the `join` command."""
    app.command("join")(join)


def join(
    left: Annotated[str, typer.Argument(help="A table: .csv, .jsonl or .parquet; `-` is JSON lines on stdin.")],
    right: Annotated[str, typer.Argument(help="The table to look things up in.")],
    *,
    on: Annotated[str, typer.Option(help="Column of both, or of each: `device=name`.")],
    threshold: Annotated[
        float | None, typer.Option(help="At least so related, up to 1; 0.5, or anything above 0 with --best.")
    ] = None,
    best: Annotated[int | None, typer.Option(min=1, help="Only the so many nearest terms of the right.")] = None,
    how: Annotated[str, typer.Option(help="inner, left, right, full, semi or anti.")] = "inner",
    measure: Annotated[str, typer.Option(help="evidence, esa, esa+coded+opposed, embedding, …")] = "evidence",
    space: Annotated[list[str] | None, typer.Option(help="Space by name or path; may be repeated.")] = None,
    glossary: Annotated[Path | None, typer.Option(help="Your own abbreviations and synonyms.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Add `why`: the concepts that carry the score.")] = False,
    score: Annotated[str, typer.Option(help="What the column of scores is called.")] = "relatedness",
    dead_letters: DeadLetters = None,
    spark: Annotated[bool, typer.Option("--spark", help="Run on Spark: for more than one machine can hold.")] = False,
    master: Annotated[str | None, typer.Option(help="Spark master, e.g. `local[2,4]` or `spark://host:7077`.")] = None,
    remote: Annotated[str | None, typer.Option(help="Spark Connect address, e.g. `sc://host:15002`.")] = None,
    out: Annotated[str | None, typer.Option(help="Write here, by its suffix .csv, .jsonl or .parquet.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line for each row.")] = False,
) -> None:
    """Join two tables by meaning: rows whose words are near, with how near they are.

    The right table asks, in its words, and the left answers: a `fan` on the right takes a `ceiling fan`.

    Example: `likewise join sensors.csv catalogue.csv --on device=name --best 1`
    """
    on_spark = bool(spark or master or remote)
    guard(
        reads={"LEFT": left, "RIGHT": right, "--glossary": glossary},
        writes={"--dead-letters": dead_letters, "--out": None if on_spark else out},
        makes={"--out": out if on_spark else None},
    )
    if glossary is not None and measure != "evidence":
        raise BuildError(f"the measure {measure} takes no glossary", hint="choose --measure evidence")
    mine, _, theirs = on.partition("=")
    names = (mine, theirs or mine)
    options: dict[str, Any] = {
        "threshold": threshold,
        "best": best,
        "how": how,
        "with_explanation": explain,
        "score": score,
    }
    rejects = Rejects(dead_letters)
    if on_spark:
        spaces = [str(each.path) for each in _spaces(measure, space)]
        asked = {**options, "on": names, "measure": measure, "spaces": spaces, "glossary": glossary}
        places = {"master": master, "remote": remote}
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
        from likewise.semantics import Glossary
        from likewise.semantics import measure as make

        words: dict[str, Any] = {} if glossary is None else {"glossary": Glossary.from_file(glossary)}
        made = make(measure, spaces=_spaces(measure, space), **words)
        tables = [read_table(source, rejects) for source in (left, right)]
        found = join_tables(*tables, on=names, measure=made, **options)
        count = found.num_rows
        write_table(found, out) if out is not None else _show(_rows(found), found.schema.names, as_json=as_json)
    if not as_json:
        errors.print(counted(count, "row") + (f" in {out}" if out else ""), markup=False)
    rejects.conclude()


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
        return " · ".join(f"{each['concept']} {each['weight']:.4f}" for each in value)
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
