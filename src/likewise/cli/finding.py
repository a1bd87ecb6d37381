"""The options that `match` and `detect` share: input, comparison of words, and Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.cli.guard import guard
from likewise.cli.meaning import settled, spark_options
from likewise.cli.options import MeaningOptions, OnSpark, ReadingOptions
from likewise.cli.reading.input import spaces_for
from likewise.cli.reading.records import Records

if TYPE_CHECKING:
    from likewise.cli.reading.input import Rejects
    from likewise.cli.spark.finding import SparkJob
    from likewise.language import Subscription

EventsSource = Annotated[
    str, typer.Argument(help="File of events (JSON, CSV, Parquet, logs, CloudEvents or RDF), or - for stdin.")
]
Written = Mapping[str, Path | str | None]


@dataclass(frozen=True, slots=True)
class FindingOptions:
    """The options of `match` and `detect` about meaning, input and Spark."""

    meaning: MeaningOptions
    reading: ReadingOptions
    records: Records
    where: OnSpark

    def checked(self, reads: Written, *, writes: Written, makes: Written) -> FindingOptions:
        """Check that no file is both read and written, and return the options with the settings file applied."""
        complete = replace(self, meaning=settled(self.meaning))
        background, glossary = complete.meaning.background, complete.meaning.glossary
        letters, saved = self.reading.dead_letters, self.records.save_mapping
        guard(
            reads={**reads, "--background": background, "--glossary": glossary, "--mapping": self.records.mapping},
            writes={**writes, "--dead-letters": letters, "--save-mapping": saved},
            makes=makes,
        )
        return complete

    def spark_job(self, events: str, rejects: Rejects, *, out: str | None, as_json: bool) -> SparkJob:
        """The job that does the same on Spark."""
        from likewise.cli.spark.finding import SparkJob

        return SparkJob(
            events=events,
            rejects=rejects,
            records=self.records,
            master=self.where.master,
            remote=self.where.remote,
            out=out,
            as_json=as_json,
        )

    def spark_meaning(self, interests: Iterable[Subscription]) -> dict[str, Any]:
        """The options of Spark's `match` and `detect` about meaning."""
        spaces = self.meaning.space or spaces_for(interests, self.meaning.approach)
        return {"spaces": spaces, **spark_options(self.meaning)}
