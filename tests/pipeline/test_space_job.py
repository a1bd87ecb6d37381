"""The job corpus -> space on Spark: the same space as by hand, for every format, and never a wrong one."""

from __future__ import annotations

import bz2
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.errors import BuildError, InputError, SpaceError
from likewise.pipeline import Corpus, build_space
from likewise.semantics import BuildSummary, Space, SpaceOptions, write_space
from likewise.semantics.space.format import MANIFEST, REJECTED

pytestmark = pytest.mark.spark

WORDS = "parking garage car street light energy meter room sensor city noise rain wind bus stop train"


def _text(seed: int) -> str:
    words = WORDS.split()
    # Fixed by the seed alone, so that every run writes the same articles.
    return " ".join(words[zlib.crc32(f"{seed} {at}".encode()) % len(words)] for at in range(30 + seed % 7))


ARTICLES = [(f"article {number:03}", _text(number)) for number in range(300)]


def write_jsonl(path: Path, articles: list[tuple[str, str]] = ARTICLES, *, extra: str = "") -> Path:
    lines = "".join(json.dumps({"title": title, "text": text}) + "\n" for title, text in articles) + extra
    path.write_bytes(bz2.compress(lines.encode()) if path.suffix == ".bz2" else lines.encode())
    return path


def build(spark: Any, source: Path | str, out: Path, **options: Any) -> BuildSummary:
    return build_space(spark, Corpus.find(str(source)), out, options=SpaceOptions(**options))


def assert_same(left: Path, right: Path) -> None:
    for path in left.iterdir():
        if path.name != MANIFEST:
            assert path.read_bytes() == (right / path.name).read_bytes(), path.name


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hand") / "space"
    write_space(path, ARTICLES)
    return path


@pytest.mark.parametrize("format", ["jsonl", "jsonl.bz2", "parquet", "folder"])
def test_every_format_gives_the_space_made_by_hand(spark: Any, tmp_path: Path, by_hand: Path, format: str) -> None:
    source = tmp_path / f"corpus.{format}"
    if format == "parquet":
        titles, texts = zip(*ARTICLES, strict=True)
        pq.write_table(pa.table({"title": titles, "text": texts}), source, row_group_size=50)
    elif format == "folder":
        source.mkdir()
        for title, text in ARTICLES:
            (source / f"{title}.txt").write_text(text)
    else:
        write_jsonl(source)
    summary = build(spark, source, tmp_path / "space")
    assert_same(by_hand, tmp_path / "space")
    assert summary.words == sum(len(text.split()) for _, text in ARTICLES)
    assert Space.open(tmp_path / "space", verify=True).manifest == summary.manifest


def test_other_fields(spark: Any, tmp_path: Path, by_hand: Path) -> None:
    lines = "".join(json.dumps({"name": title, "the body": text, "text": 7}) + "\n" for title, text in ARTICLES)
    (tmp_path / "a.jsonl").write_text(lines)
    corpus = Corpus.find(str(tmp_path / "a.jsonl"), title_field="name", text_field="the body")
    build_space(spark, corpus, tmp_path / "space")
    assert_same(by_hand, tmp_path / "space")


def test_the_order_of_articles_and_their_doubles_do_not_matter(spark: Any, tmp_path: Path, by_hand: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", [*reversed(ARTICLES), *ARTICLES[:9]])
    summary = build(spark, source, tmp_path / "space")
    assert summary.duplicates == 9
    for name in ("terms.bin", "concepts.npy", "freq.npy", "titles.parquet", "df.npy"):
        assert (by_hand / name).read_bytes() == (tmp_path / "space" / name).read_bytes()


def test_pruning_keeps_the_strongest_and_the_true_df(spark: Any, tmp_path: Path, by_hand: Path) -> None:
    build(spark, write_jsonl(tmp_path / "a.jsonl"), tmp_path / "space", prune=5)
    pruned, whole = Space.open(tmp_path / "space"), Space.open(by_hand)
    np.testing.assert_array_equal(pruned.df, whole.df)
    assert np.diff(pruned.indptr).max() == 5
    row = whole.index(["park"])
    kept = set(pruned.rows(row)[1].tolist())
    expected = whole.term_matrix(row, pruning=5).indices
    assert kept == set(expected.tolist())


def test_rare_terms_can_be_left_out(spark: Any, tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", [("a", "zebra parking"), ("b", "parking")])
    build(spark, source, tmp_path / "space", min_df=2)
    assert [Space.open(tmp_path / "space").term(0)] == ["parking"]
    assert Space.open(tmp_path / "space").terms == 1


def test_a_sample_is_the_same_each_time(spark: Any, tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl")
    first = build(spark, source, tmp_path / "one", sample=0.3)
    again = build(spark, write_jsonl(tmp_path / "b.jsonl.bz2"), tmp_path / "two", sample=0.3)
    assert 40 < first.manifest.counts["concepts"] < 150
    assert_same(tmp_path / "one", tmp_path / "two")
    assert first.manifest.counts == again.manifest.counts


def dump(*pages: str) -> str:
    return "<mediawiki>\n" + "".join(f"<page>{page}</page>\n" for page in pages) + "</mediawiki>\n"


def wiki_page(title: str, text: str, more: str = "") -> str:
    return f"<title>{title}</title><ns>0</ns>{more}<revision><text>{text}</text></revision>"


def test_a_dump_of_many_streams(spark: Any, tmp_path: Path) -> None:
    pages = [wiki_page(title, f"'''{title}''' {text} {_text(at + 1000)}") for at, (title, text) in enumerate(ARTICLES)]
    streams = [dump(*pages[at : at + 100]).encode() for at in range(0, 300, 100)]
    (tmp_path / "multistream.xml.bz2").write_bytes(b"".join(map(bz2.compress, streams)))
    (tmp_path / "plain.xml").write_bytes(b"".join(streams))
    many = build(spark, tmp_path / "multistream.xml.bz2", tmp_path / "many")
    build(spark, tmp_path / "plain.xml", tmp_path / "plain")
    assert many.manifest.counts["concepts"] == 300
    assert_same(tmp_path / "many", tmp_path / "plain")


def test_a_broken_page_goes_to_the_dead_letters(spark: Any, tmp_path: Path) -> None:
    good = [wiki_page(title, text + " " + text) for title, text in ARTICLES[:9]]
    pages = [
        *good[:5],
        "<title>Torn</title><ns>0</ns><revision><text>never closed",
        *good[5:],
        wiki_page("Moved", "x", '<redirect title="y"/>'),
        wiki_page("Short", "parking"),
    ]
    (tmp_path / "dump.xml").write_text(dump(*pages))
    summary = build(spark, tmp_path / "dump.xml", tmp_path / "space")
    assert summary.manifest.counts["concepts"] == 9
    assert summary.dropped == {"redirect": 1, "short": 1}
    table = pq.read_table(tmp_path / "space" / REJECTED).to_pylist()
    assert [row["title"] for row in table] == ["Torn"]
    Space.open(tmp_path / "space", verify=True)


def test_binary_files_among_texts_are_told(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "picture.txt").write_bytes(b"\x89PNG\x00\x01")
    (folder / "latin.txt").write_bytes("café".encode("latin-1"))
    for title, text in ARTICLES[:5]:
        (folder / f"{title}.txt").write_text(text)
    summary = build(spark, folder, tmp_path / "space")
    assert (summary.manifest.counts["concepts"], summary.rejected) == (5, 2)


def test_broken_lines_among_json_are_told(spark: Any, tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", extra='{"title": "torn", "te\nnot json\n{"title": "no text"}\n')
    summary = build(spark, source, tmp_path / "space")
    assert (summary.manifest.counts["concepts"], summary.rejected) == (300, 3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the corpus is empty"),
        ('{"title": "猫", "text": "猫は動物である"}\n'.encode(), "1 short"),
        (b"\x00\x01\x02\n\x03\x04\n", "broken"),
        (b'{"headline": "a", "body": "parking"}\n', "1 broken"),
    ],
)
def test_a_corpus_without_articles_is_refused(spark: Any, tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.jsonl").write_bytes(content)
    with pytest.raises(InputError, match="no article with English words") as caught:
        build(spark, tmp_path / "a.jsonl", tmp_path / "space")
    assert message in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_mostly_broken_records_are_refused(spark: Any, tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", ARTICLES[:2], extra="nonsense\n" * 3)
    with pytest.raises(InputError, match="3 records are broken and only 2 are good"):
        build(spark, source, tmp_path / "space")


@pytest.mark.parametrize("harm", ["cut", "flipped"])
def test_a_broken_bzip2_file_is_refused(spark: Any, tmp_path: Path, harm: str) -> None:
    source = write_jsonl(tmp_path / "a.jsonl.bz2")
    content = bytearray(source.read_bytes())
    if harm == "cut":
        content = content[: len(content) // 2]
    else:
        for at in range(len(content) // 2, len(content) // 2 + 40):
            content[at] ^= 0x55
    source.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.jsonl\.bz2: the .* is (broken|cut off); nothing was written"):
        build(spark, source, tmp_path / "space")
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl.bz2"]


def test_a_full_disk_is_told(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from likewise.semantics import SpaceWriter

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(SpaceWriter, "add_terms", full)
    with pytest.raises(SpaceError, match="the disk is full"):
        build(spark, write_jsonl(tmp_path / "a.jsonl"), tmp_path / "space")
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_settings_of_the_session_are_put_back(spark: Any, tmp_path: Path) -> None:
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    build(spark, write_jsonl(tmp_path / "a.jsonl"), tmp_path / "space")
    assert spark.conf.get("spark.sql.files.maxPartitionBytes") == before


@pytest.mark.parametrize(
    "options", [{"sample": 0}, {"sample": 2}, {"min_df": 0}, {"prune": 0}, {"weighting": "bm25"}], ids=str
)
def test_senseless_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(BuildError):
        SpaceOptions(**options)


def test_parquet_without_the_fields_is_refused(spark: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"headline": ["a"]}), tmp_path / "a.parquet")
    with pytest.raises(BuildError, match="no column title, text; it has headline"):
        build(spark, tmp_path / "a.parquet", tmp_path / "space")
