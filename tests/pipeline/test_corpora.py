"""Which format a corpus has, and what is said about one that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from likewise.errors import BuildError, MissingError
from likewise.pipeline import Corpus


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.jsonl", "jsonl"),
        ("a.jsonl.bz2", "jsonl"),
        ("a.json.gz", "jsonl"),
        ("a.parquet", "parquet"),
        ("a.txt", "text"),
        ("a.xml", "mediawiki"),
        ("enwiki-pages-articles-multistream.xml.bz2", "mediawiki"),
        ("enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2", "mediawiki"),
    ],
)
def test_the_format_is_seen_from_the_name(tmp_path: Path, name: str, format: str) -> None:
    (tmp_path / name).touch()
    assert Corpus.find(str(tmp_path / name)).format == format


@pytest.mark.parametrize(
    ("files", "format"),
    [(["part-0.parquet", "_SUCCESS"], "parquet"), (["a.jsonl", "b.jsonl.gz"], "jsonl"), (["a.txt", "b.png"], "text")],
)
def test_a_folder_is_known_by_its_files(tmp_path: Path, files: list[str], format: str) -> None:
    for name in files:
        (tmp_path / name).touch()
    assert Corpus.find(str(tmp_path)).format == format


def test_an_unclear_name_asks_for_the_format(tmp_path: Path) -> None:
    (tmp_path / "corpus").touch()
    with pytest.raises(BuildError, match="cannot tell the format") as caught:
        Corpus.find(str(tmp_path / "corpus"))
    assert "--format" in str(caught.value)
    assert Corpus.find(str(tmp_path / "corpus"), format="jsonl").format == "jsonl"


def test_no_corpus_there(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="no corpus at"):
        Corpus.find(str(tmp_path / "nowhere.jsonl"))


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="no corpus format 'pdf'"):
        Corpus.find(str(tmp_path), format="pdf")  # type: ignore[arg-type]
