"""Joins by meaning: quality on EuroVoc's own synonyms, and speed, compared with MiniLM (`likewise bench join`).

Rows are printed as they are measured. Each part on Spark is its own process; seconds are processor seconds of driver,
JVM and workers together. If a part fails, its row has the error, and the others continue.
`LIKEWISE_BENCH_ONLY=terms` runs one part only: devices, quality, terms, rows, pairs or peers. All parts take about
eight minutes on two cores, with `--quick` two; `LIKEWISE_BENCH_ROWS` and `LIKEWISE_BENCH_TERMS` set other sizes.
"""

from __future__ import annotations

import bz2
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

Row = dict[str, object]
DATA = Path(os.environ.get("LIKEWISE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
NEAREST = 5
WORDS = 10_000
"""Distinct terms in the rows that are joined or compared."""


def run(*, quick: bool = False) -> list[Row]:
    """Rows for the table."""
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from _spark_run import say
    from likewise.errors import LikewiseError

    parts = {"devices": _devices, "quality": _quality, "terms": _terms, "rows": _rows, "pairs": _pairs, "peers": _peers}
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="likewise-bench-") as folder:
        for name, part in parts.items():
            if os.environ.get("LIKEWISE_BENCH_ONLY", name) != name:
                continue
            try:
                for row in part(Path(folder), quick):
                    rows.append(row)
                    say(" | ".join(str(value) for value in row.values()))
            except (LikewiseError, OSError, ImportError, RuntimeError) as error:
                # Missing parts are skipped; failed tasks are reported.
                how = "failed" if isinstance(error, RuntimeError) else "skipped"
                lines = str(error).strip().splitlines() or [type(error).__name__]
                rows.append({"what": name, "value": None, "unit": "", "note": f"{how}: {lines[-1]}"})
                say(f"{name} {how}: {error}")
    return rows


def labels() -> tuple[list[str], dict[str, set[str]]]:
    """EuroVoc's preferred labels, and those that each alternative label with another spelling stands for."""
    import yaml

    from likewise.events import normalise

    with (DATA / "eurovoc" / "eurovoc.yaml").open("rb") as file:
        concepts = yaml.load(file, Loader=yaml.CSafeLoader)["concepts"].values()
    right = sorted({concept["prefLabel"]["en"] for concept in concepts if "en" in concept["prefLabel"]})
    known = {normalise(label) for label in right}
    truth: dict[str, set[str]] = {}
    for concept in concepts:
        alternatives = concept.get("altLabel", {}).get("en", [])
        for label in [alternatives] if isinstance(alternatives, str) else alternatives:
            if normalise(label) not in known and "en" in concept["prefLabel"]:
                truth.setdefault(label, set()).add(concept["prefLabel"]["en"])
    return right, truth


def _quality(_: Path, quick: bool) -> Iterator[Row]:
    """Whether the preferred label nearest to an alternative label is the right one."""
    import numpy as np

    from likewise.errors import LikewiseError
    from likewise.semantics import find_space, measure
    from likewise.semantics.nearest import Bar, near_pairs

    right, truth = labels()
    chance = random.Random(3)
    left = sorted(chance.sample(sorted(truth), 500 if quick else len(truth)))
    if quick:
        # Fewer labels make it easier; MiniLM would take half a minute to embed all.
        right = sorted({*chance.sample(right, 1_500), *(label for term in left for label in truth[term])})
    for name, spaces in (
        ("esa", ["wordnet"]),
        ("esa", ["wikipedia"]),
        ("esa", ["wordnet", "wikipedia"]),
        ("embedding", []),
    ):
        what = f"{name} {'+'.join(spaces)}".strip()
        try:
            made = measure(name, spaces=[find_space(space) for space in spaces])
        except LikewiseError as error:
            yield {"what": f"EuroVoc synonyms, {what}", "value": None, "unit": "", "note": f"skipped: {error.message}"}
            continue
        made.matrix(left[:1], right[:1])
        begun = time.process_time()
        found = near_pairs(made, left, right, Bar(0.0, NEAREST))
        spent = time.process_time() - begun
        hits = [(a, right[b] in truth[left[a]]) for a, b in zip(found.left.tolist(), found.right.tolist(), strict=True)]
        first = np.flatnonzero(np.diff(found.left, prepend=-1))
        rightly = np.array([hits[at][1] for at in first])
        surest = np.argsort(-found.relatedness[first], kind="stable")[: len(left) // 3]
        yield {
            "what": f"EuroVoc synonyms, nearest label, {what}",
            "value": rightly.sum() / len(left),
            "unit": "recall",
            f"recall in {NEAREST}": len({at for at, good in hits if good}) / len(left),
            "precision of the surest third": rightly[surest].mean(),
            "note": f"{len(left):,} x {len(right):,} terms, {spent:.1f} s of a processor, with all words new",
        }


def _devices(_: Path, quick: bool) -> Iterator[Row]:
    """Names of devices joined with their kinds, by evidence without a space and over WordNet."""
    import pyarrow as pa

    from _join_devices import NameList, judged, name_lists
    from likewise.errors import LikewiseError
    from likewise.pipeline import join_tables
    from likewise.semantics import measure

    lists = list(name_lists(DATA))
    for spaces in ([],) if quick else ([], ["wordnet"]):
        beside = f"over {', '.join(spaces)}" if spaces else "without a space"
        try:
            made = measure("evidence", spaces=spaces)
        except LikewiseError as error:
            yield {"what": f"devices, {beside}", "value": None, "unit": "", "note": f"skipped: {error.message}"}
            continue

        def join(devices: NameList, how: dict[str, Any], made: Any = made) -> list[tuple[str, str]]:
            names = pa.table({"name": devices.names, "truth": devices.truth})
            joined = join_tables(names, pa.table({"kind": devices.kinds}), on=("name", "kind"), measure=made, **how)
            return [(row["kind"], row["truth"]) for row in joined.to_pylist()]

        for source in dict.fromkeys(devices.what for devices in lists):
            same = [devices for devices in lists if devices.what == source]
            names = sum(len(devices.names) for devices in same)
            note = f"{names:,} names; other figures at threshold 0.5"
            yield {"what": f"devices, {source}, {beside}", "unit": "of 1", "note": note, **judged(same, join)}


def _terms(folder: Path, quick: bool) -> Iterator[Row]:
    """Distinct terms of both sides: WordNet's lemmas and the titles of Wikipedia."""
    from _spark_run import task

    size = _asked("TERMS", 5_000 if quick else 40_000)
    _write_terms(folder, size)
    spaces = ["wordnet", "wikipedia"]
    results = task(__file__, "terms", cores=None, folder=str(folder), spaces=spaces, size=size)["results"]
    for space, result in zip(spaces, results, strict=True):
        yield {
            "what": f"{size:,} x {size:,} distinct terms, esa on {space}, threshold 0.4",
            "value": size * size / result["cpu"] / 1e6,
            "unit": "M pairs/s of a processor",
            "note": f"{result['cpu']:.0f} s of processors, {result['rows']:,} pairs, {result['memory']:,} MB at most",
        }


def _rows(folder: Path, quick: bool) -> Iterator[Row]:
    """Many rows with few distinct terms, joined with a catalogue."""
    from _spark_run import task

    count = _asked("ROWS", 200_000 if quick else 5_000_000)
    _write_terms(folder, WORDS)
    ways: list[dict[str, float]] = [{"threshold": 0.4}, {"best": 1}]
    results = task(__file__, "rows", cores=None, folder=str(folder), count=count, ways=ways)["results"]
    for way, result in zip(ways, results, strict=True):
        ((option, value),) = way.items()
        yield {
            "what": f"{count:,} rows of {WORDS:,} terms with a catalogue of 5,000, {option} {value}",
            "value": count / result["cpu"],
            "unit": "rows/s of a processor",
            "note": f"{result['cpu']:.0f} s of processors, {result['rows']:,} rows, {result['memory']:,} MB at most",
        }


def _pairs(folder: Path, quick: bool) -> Iterator[Row]:
    """`related(a, b)` over many rows with few distinct pairs."""
    from _spark_run import task

    count = _asked("ROWS", 200_000 if quick else 5_000_000)
    _write_terms(folder, WORDS)
    sizes = [1_000, 20_000 if quick else 100_000]
    results = task(__file__, "pairs", cores=None, folder=str(folder), count=count, sizes=sizes)["results"]
    for distinct, result in zip(sizes, results, strict=True):
        yield {
            "what": f"related(a, b) over {count:,} rows, {distinct:,} distinct pairs",
            "value": count / result["cpu"],
            "unit": "rows/s of a processor",
            "note": f"{result['cpu']:.0f} s of processors, with all pairs new to both workers",
        }


def _asked(name: str, usual: int) -> int:
    return int(os.environ.get(f"LIKEWISE_BENCH_{name}") or usual)


def _peers(folder: Path, quick: bool) -> Iterator[Row]:
    """Alternatives without Likewise: a cross join with a Pandas UDF over embeddings, and FAISS."""
    import faiss
    import numpy as np

    from _spark_run import task
    from likewise.semantics import Embedding

    size = 100 if quick else 500
    _write_terms(folder, WORDS)
    (result,) = task(__file__, "cross", cores=None, folder=str(folder), size=size)["results"]
    yield {
        "what": f"peer: cross join with a Pandas UDF over MiniLM, a sample of {size:,} x {size:,} terms",
        "value": size * size / result["cpu"] / 1e6,
        "unit": "M pairs/s of a processor",
        "note": f"{result['cpu']:.0f} s of processors, each term embedded once per worker",
    }
    faiss.omp_set_num_threads(1)
    terms = _file(folder, "left", WORDS).read_text(encoding="utf-8").splitlines()[: 4 * size]
    measure = Embedding()
    measure.vectors(terms[:16])
    begun = time.process_time()
    vectors = measure.vectors(terms)
    embedding = (time.process_time() - begun) / len(terms)
    yield {
        "what": "peer: MiniLM, terms embedded",
        "value": 1 / embedding,
        "unit": "terms/s of a processor",
        "note": f"a sample of {len(terms):,}",
    }
    many = np.tile(vectors, (20_000 // len(vectors), 1))
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(many)
    begun = time.process_time()
    index.range_search(many[:1000], 0.6)
    yield {
        "what": "peer: FAISS, range search over the embeddings",
        "value": 1000 * len(many) / (time.process_time() - begun) / 1e6,
        "unit": "M pairs/s of a processor",
        "note": "embedding not counted",
    }


def _file(folder: str | Path, name: str, size: int) -> Path:
    return Path(folder) / f"{name}-{size}.txt"


def _write_terms(folder: Path, size: int) -> None:
    """Write `size` lemmas of WordNet to left.txt and titles of Wikipedia to right.txt, one per line."""
    from likewise.semantics import WordNet

    if _file(folder, "right", size).exists():
        return
    chance = random.Random(1)
    lemmas = sorted({lemma.replace("_", " ") for lemma in WordNet.load().lemmas()})
    with bz2.open(DATA / "wikipedia" / "articles-400w.jsonl.bz2", "rt", encoding="utf-8") as file:
        lines = islice(file, int(size * 1.3) + 1_000)
        titles = sorted({json.loads(line)["title"] for line in lines})
    for name, terms in (("left", lemmas), ("right", titles)):
        chosen = chance.sample(terms, min(size, len(terms)))
        _file(folder, name, size).write_text("".join(f"{term}\n" for term in chosen), encoding="utf-8")


def _measured(spark: Any, work: Any) -> dict[str, Any]:
    """Processor time and memory of some work, after workers have started."""
    from _spark_run import memory, processor_time

    # Excludes the start of workers, but not the first use of a space.
    spark.range(2).mapInArrow(lambda batches: batches, "id long").count()
    begun = processor_time()
    with memory() as result:
        rows = work()
    return {"rows": rows, "cpu": processor_time() - begun, "memory": max(result, default=0) >> 20}


def terms_task(*, folder: str, spaces: list[str], size: int, cores: int | None) -> dict[str, Any]:
    from _spark_run import session
    from likewise.pipeline import join_by_meaning

    with session(cores) as spark:
        left, right = (spark.read.text(str(_file(folder, name, size))).toDF(name) for name in ("left", "right"))
        joins = [join_by_meaning(left, right, on=("left", "right"), threshold=0.4, spaces=space) for space in spaces]
        return {"results": [_measured(spark, joined.count) for joined in joins]}


def rows_task(*, folder: str, count: int, ways: list[dict[str, Any]], cores: int | None) -> dict[str, Any]:
    from _spark_run import session
    from likewise.pipeline import join_by_meaning

    with session(cores) as spark:
        left = _many(spark, folder, count, WORDS)
        right = spark.read.text(str(_file(folder, "right", WORDS))).toDF("name").limit(5_000)
        joins = [join_by_meaning(left, right, on=("term", "name"), spaces="wordnet", **way) for way in ways]
        return {"results": [_measured(spark, joined.count) for joined in joins]}


def pairs_task(*, folder: str, count: int, sizes: list[int], cores: int | None) -> dict[str, Any]:
    from _spark_run import session
    from likewise.pipeline import register_related

    with session(cores) as spark:
        register_related(spark, spaces="wordnet")
        frames = [_many(spark, folder, count, distinct).selectExpr("related(term, other) as r") for distinct in sizes]
        return {"results": [_measured(spark, frame.write.format("noop").mode("overwrite").save) for frame in frames]}


def _many(spark: Any, folder: str, count: int, distinct: int) -> Any:
    """Rows (id, term, other) as Parquet, with this number of distinct terms, or of pairs if there are fewer terms."""
    path = Path(folder) / f"many-{count}-{distinct}"
    if not path.exists():
        words = _file(folder, "left", WORDS).read_text(encoding="utf-8").splitlines()
        spark.createDataFrame(list(enumerate(words)), "at int, word string").createOrReplaceTempView("words")
        spark.sql(
            f"select id, a.word as term, b.word as other from (select id, pmod(xxhash64(id), {distinct}) as k "
            f"from range(0, {count}, 1, 8)) join words a on a.at = k % {len(words)} "
            f"join words b on b.at = (k * 7 + k div {len(words)}) % {len(words)}"
        ).write.parquet(str(path))
    return spark.read.parquet(str(path))


def cross_task(*, folder: str, size: int, cores: int | None) -> dict[str, Any]:
    import pandas as pd
    from pyspark.sql.functions import col, pandas_udf

    from _spark_run import session

    with session(cores) as spark:
        models: dict[str, Any] = {}

        def cosine(a: Any, b: Any) -> Any:
            import numpy as np

            from likewise.semantics import Embedding

            if "model" not in models:
                models["model"] = Embedding()
            left_vectors, right_vectors = (models["model"].vectors(list(side)) for side in (a, b))
            return pd.Series(np.einsum("ij,ij->i", left_vectors, right_vectors))

        left, right = (
            spark.read.text(str(_file(folder, name, WORDS))).toDF(name).limit(size) for name in ("left", "right")
        )
        # Spark needs types, but annotations are only strings here.
        cosine.__annotations__ = {"a": pd.Series, "b": pd.Series, "return": pd.Series}
        near = pandas_udf(cosine, "double")
        joined = left.crossJoin(right).repartition(2).withColumn("r", near("left", "right")).where(col("r") >= 0.6)
        return {"results": [_measured(spark, joined.count)]}


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from _spark_run import main

    main(terms=terms_task, rows=rows_task, pairs=pairs_task, cross=cross_task)
