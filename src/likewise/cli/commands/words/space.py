"""`likewise space`: build spaces from corpora, list them, and show one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli.guard import guard
from likewise.cli.options import Json, SparkAddress, grouped
from likewise.cli.output import errors, output, print_json

if TYPE_CHECKING:
    from rich.progress import Progress

    from likewise.pipeline import Corpus
    from likewise.semantics import BuildSummary, Manifest, SpaceOptions


def register(app: typer.Typer) -> None:
    """Add `space build`, `space list` and `space info`."""
    space = typer.Typer(no_args_is_help=True, help="Build, list and inspect spaces: what words mean, from a corpus.")
    space.command("build")(build)
    space.command("list")(list_)
    space.command("info")(info)
    app.add_typer(space, name="space")


@grouped
def build(
    *,
    corpus: Annotated[str, typer.Option(help="`wordnet`, or a file, folder or URL of articles.")],
    out: Annotated[str, typer.Option(help="Name of the space (see `space list`), or a path.")],
    format: Annotated[
        str | None, typer.Option(help="wordnet, jsonl, parquet, text or mediawiki. [default: by the file name]")
    ] = None,
    where: SparkAddress,
    memory: Annotated[str, typer.Option(help="Heap of a local Spark.")] = "1g",
    min_df: Annotated[int, typer.Option(help="Leave out terms that occur in fewer concepts.")] = 1,
    prune: Annotated[int | None, typer.Option(help="Keep only this many of the strongest postings of a term.")] = None,
    min_words: Annotated[
        int | None, typer.Option(help="Leave out articles with fewer words. [default: 50 for MediaWiki, else 1]")
    ] = None,
    sample: Annotated[float, typer.Option(help="Use only this share of the articles, chosen by title.")] = 1.0,
    weighting: Annotated[str, typer.Option(help="Default weighting: `log`, or the papers' `augmented`.")] = "log",
    title_field: Annotated[str, typer.Option(help="Field of the title, in JSON lines and Parquet.")] = "title",
    text_field: Annotated[str, typer.Option(help="Field of the text, in JSON lines and Parquet.")] = "text",
    overwrite: Annotated[bool, typer.Option(help="Replace an existing space.")] = False,
    as_json: Json = False,
) -> None:
    """Build a space from a corpus on Spark; it appears when it is complete.

    WordNet is small: without `--master`, `--remote` or `--sample` it is built in this process, without Spark.

    Example: `likewise space build --corpus wordnet --out wordnet`
    """
    from likewise.semantics import SpaceOptions, space_path

    guard(reads={"--corpus": None if corpus == "wordnet" else corpus}, makes={"--out": space_path(out)})
    options = SpaceOptions(
        weighting=weighting,  # type: ignore[arg-type]  # both are checked by name at run time
        min_df=min_df,
        prune=prune,
        min_words=min_words,
        sample=sample,
    )
    if corpus == "wordnet" and (format, sample, where.master, where.remote) == (None, 1.0, None, None):
        summary = _build_wordnet(space_path(out), options=options, overwrite=overwrite)
    else:
        from likewise.pipeline import Corpus

        articles = Corpus.find(corpus, format=format, title_field=title_field, text_field=text_field)  # type: ignore[arg-type]  # as above
        place = {"master": where.master, "remote": where.remote, "memory": memory}
        summary = _build(articles, space_path(out), options=options, overwrite=overwrite, place=place)
    if as_json:
        print_json(_summary(summary))
    else:
        _print_summary(summary)


def list_(
    folder: Annotated[
        Path | None, typer.Argument(help="Folder of spaces. [default: LIKEWISE_SPACES, or the user's cache]")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the spaces that are built.

    Example: `likewise space list`
    """
    from likewise.errors import InputError, LikewiseError
    from likewise.semantics import list_spaces, spaces_folder

    if folder is not None and not folder.is_dir():
        raise InputError("there is no such folder", source=str(folder), hint="leave it out for the default folder")
    spaces = list_spaces(folder)
    if as_json:
        print_json([_listed(path, state) for path, state in spaces])
        return
    if not spaces:
        errors.print(f"no spaces in {folder or spaces_folder()}")
        errors.print("build one: likewise space build --corpus wordnet --out wordnet")
    for path, state in spaces:
        if isinstance(state, LikewiseError):
            errors.print(f"{path.name}: {state.message}", style="yellow", markup=False, soft_wrap=True)
        else:
            output.print(f"{path.name:<20} {_line(state)}", markup=False, soft_wrap=True)


def info(
    space: Annotated[str, typer.Argument(metavar="SPACE", help="Name of the space, or a path.")],
    *,
    verify: Annotated[bool, typer.Option(help="Check the checksum of every file.")] = False,
    as_json: Json = False,
) -> None:
    """Show the size of a space and how it was built.

    Example: `likewise space info wordnet --verify`
    """
    from likewise.semantics import find_space

    started = time.perf_counter()
    opened = find_space(space, verify=verify)
    seconds = time.perf_counter() - started
    manifest = opened.manifest
    if as_json:
        print_json({**_listed(opened.path, manifest), "verified": verify, "seconds": seconds})
        return
    output.print(f"{opened.name}  {_line(manifest)}", markup=False, soft_wrap=True)
    output.print(f"path        {opened.path}", markup=False, soft_wrap=True)
    output.print(f"version     {manifest.id}{' (verified)' if verify else ''}", markup=False)
    for name, value in {**manifest.parameters, **manifest.extra}.items():
        output.print(f"{name:<11} {_shown(value)}", markup=False, soft_wrap=True)
    output.print(f"opened in   {seconds * 1000:.1f} ms")


def _build_wordnet(path: Path, *, options: SpaceOptions, overwrite: bool) -> BuildSummary:
    from likewise.semantics import build_wordnet

    with _progress() as progress:
        task = progress.add_task("reading", total=None)

        def report(what: str) -> None:
            progress.update(task, description=what)

        return build_wordnet(path, options=options, overwrite=overwrite, report=report)


def _build(
    corpus: Corpus, path: Path, *, options: SpaceOptions, overwrite: bool, place: dict[str, str | None]
) -> BuildSummary:
    from likewise.pipeline import build_space, spark_session, watch
    from likewise.semantics import SpaceWriter

    # Fails now if the space exists, not after Spark has started.
    SpaceWriter(path, overwrite=overwrite)
    with _progress() as progress:
        task = progress.add_task("starting Spark", total=None)
        spark = spark_session(
            master=place["master"],
            remote=place["remote"],
            settings={"spark.driver.memory": place["memory"] or "1g"},
        )
        try:
            with watch(spark, lambda done, total: progress.update(task, completed=done, total=total or None)):
                return build_space(
                    spark,
                    corpus,
                    path,
                    options=options,
                    overwrite=overwrite,
                    report=lambda what: progress.update(task, description=what, completed=0, total=None),
                )
        finally:
            spark.stop()


def _progress() -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description:<16}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn(), console=errors, transient=True)


def _summary(summary: BuildSummary) -> dict[str, Any]:
    return {
        **_listed(summary.path, summary.manifest),
        "seconds": round(summary.seconds, 3),
        "words_per_second": round(summary.words_per_second),
    }


def _listed(path: Path, state: Manifest | Exception) -> dict[str, Any]:
    if isinstance(state, Exception):
        return {"name": path.name, "path": str(path), "error": str(state)}
    return {
        "name": state.name,
        "path": str(path),
        "id": state.id,
        **state.counts,
        "bytes": state.size,
        "parameters": state.parameters,
        "corpus": state.extra,
    }


def _print_summary(summary: BuildSummary) -> None:
    output.print(f"built {summary.path}", markup=False, soft_wrap=True)
    output.print(_line(summary.manifest), markup=False, soft_wrap=True)
    output.print(
        f"{summary.words:,} words in {summary.seconds:.1f} s ({summary.words_per_second:,.0f} words/s)", markup=False
    )
    left_out = {**summary.dropped, "duplicate": summary.duplicates, "broken": summary.rejected}
    shown = _shown({why: count for why, count in left_out.items() if count})
    if shown:
        output.print(f"left out: {shown}", markup=False, soft_wrap=True)
    if summary.rejected:
        output.print(f"broken records: {summary.path / 'rejected.parquet'}", markup=False, soft_wrap=True)


def _line(manifest: Manifest) -> str:
    counts = manifest.counts
    ratio = manifest.size / (6 * counts["postings"]) if counts["postings"] else 0
    return (
        f"{counts['concepts']:,} concepts, {counts['terms']:,} terms, {counts['postings']:,} postings, "
        f"{manifest.size / 1e6:.1f} MB ({ratio:.2f} x postings)"
    )


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{count:,} {why}" for why, count in value.items())
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
