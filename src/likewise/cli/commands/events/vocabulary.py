"""`likewise vocabulary`: collect the words of a stream, so that all users of the file get the same scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from likewise.cli.guard import guard
from likewise.cli.options import DeadLetters, Json, grouped
from likewise.cli.output import errors, output, print_json
from likewise.cli.reading.input import Rejects, event_batches, read_text
from likewise.cli.reading.records import Records
from likewise.files import write_whole

if TYPE_CHECKING:
    from likewise.matching import Background
    from likewise.semantics import Competitors


def register(app: typer.Typer) -> None:
    """Add the `vocabulary` command."""
    app.command("vocabulary")(vocabulary)


@grouped
def vocabulary(
    events: Annotated[str, typer.Argument(help="File with a sample of events, or - for stdin.")],
    *,
    records: Records,
    out: Annotated[Path | None, typer.Option(help="File to write, for `likewise match --background`.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Keep this many of the most frequent terms.")] = 2000,
    dead_letters: DeadLetters = None,
    as_json: Json = False,
) -> None:
    """Collect the words of a stream, as background knowledge for matching.

    These are attributes and text values. With `likewise match --background` they make scores more reliable; the same
    file gives the same scores everywhere. A few hundred events are enough.

    Example: `likewise vocabulary events.jsonl --out words.txt`
    """
    from likewise.semantics import Competitors

    guard(
        reads={"EVENTS": events, "--mapping": records.mapping},
        writes={"--out": out, "--dead-letters": dead_letters, "--save-mapping": records.save_mapping},
    )
    rejects = Rejects(dead_letters)
    sample = (event for batch in event_batches(events, rejects, records=records) for event in batch)
    words = Competitors.from_events(sample, limit=limit)
    if out is not None:
        write_whole(out, words.to_text())
    if as_json:
        terms = {} if out is not None else {"terms": list(words.terms)}
        print_json({"version": words.version, "count": len(words.terms), **terms})
    elif out is None:
        output.print(words.to_text(), end="", markup=False, highlight=False, soft_wrap=True)
    else:
        errors.print(f"{len(words.terms):,} terms, version {words.version}, in {out}", markup=False, highlight=False)
    rejects.conclude()


def read_background(path: Path) -> Competitors | Background:
    """Read a vocabulary and check its version; or the first events, if it is a file of events."""
    from likewise.events import read_events
    from likewise.matching import Background
    from likewise.semantics import Competitors

    text = read_text(path)
    if text.lstrip().startswith("{"):
        return Background.of(read_events(path, unique_ids=False))
    return Competitors.from_text(text, source=str(path))
