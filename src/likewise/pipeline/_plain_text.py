"""Plain text files as articles: the file's name is the title, bytes that are no text are a flaw."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from urllib.parse import unquote

import pyarrow as pa

from likewise.pipeline._mediawiki import SCHEMA


def read_files(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of title, text, skip and flaw from batches with the columns path and content."""
    for batch in batches:
        rows = [_article(*cells) for cells in zip(*(column.to_pylist() for column in batch.columns), strict=True)]
        yield pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def _article(path: str, content: bytes) -> dict[str, str | None]:
    name = PurePosixPath(unquote(path)).name
    text, flaw = decode(content)
    return {"title": name if flaw else PurePosixPath(name).stem, "text": text, "skip": None, "flaw": flaw}


def decode(content: bytes) -> tuple[str | None, str | None]:
    """The text of a file, or why it has none.

    >>> decode("café".encode()), decode(b"\\x89PNG\\x00")
    (('café', None), (None, 'not a text file'))
    """
    if b"\0" in content:
        return None, "not a text file"
    try:
        return content.decode("utf-8-sig"), None
    except UnicodeDecodeError as error:
        return None, f"not UTF-8 at byte {error.start}"
