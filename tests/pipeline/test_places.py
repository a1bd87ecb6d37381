"""The same space wherever the job runs: over Spark Connect, on a cluster of processes, and with a worker killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from likewise.semantics import Space
from likewise.semantics.space.format import MANIFEST

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DUMP = "test/test_data/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"

# A text that kills the process that counts it, once.
KILLER = """
import os, signal, sys
from pathlib import Path
from likewise.pipeline import Corpus, build_space, spark_session
from likewise.semantics.space import inversion

marker = Path(sys.argv[3])
class Fatal(inversion.Inversion):
    def __call__(self, batches):
        if not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield from inversion.Inversion(self.min_words)(batches)

from likewise.pipeline.spaces import build
build.Inversion = Fatal
build_space(spark_session(master="local[1,4]"), Corpus.find(sys.argv[1]), sys.argv[2])
"""


def likewise(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from likewise.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != MANIFEST}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "a.jsonl"
    lines = [{"title": f"t{at}", "text": f"parking garage street {at} " * (at % 9 + 1)} for at in range(500)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture(scope="module")
def local(corpus: Path) -> dict[str, bytes]:
    out = corpus.parent / "local"
    assert likewise("space", "build", "--corpus", str(corpus), "--out", str(out)).returncode == 0
    return content(out)


@pytest.mark.parametrize(
    "place", [("--remote", "local[2]"), ("--master", "local-cluster[2,1,1024]"), ("--master", "local[1]")], ids=str
)
def test_the_same_bytes_in_every_place(
    corpus: Path, local: dict[str, bytes], tmp_path: Path, place: tuple[str, str]
) -> None:
    run = likewise("space", "build", "--corpus", str(corpus), "--out", str(tmp_path / "space"), *place, "--json")
    assert run.returncode == 0, run.stderr
    assert content(tmp_path / "space") == local
    assert json.loads(run.stdout)["concepts"] == 500


def test_a_killed_worker_costs_only_time(corpus: Path, local: dict[str, bytes], tmp_path: Path) -> None:
    script = [sys.executable, "-c", KILLER, str(corpus), str(tmp_path / "space"), str(tmp_path / "killed")]
    run = subprocess.run(script, capture_output=True, text=True, check=False, timeout=600)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "killed").exists()
    assert content(tmp_path / "space") == local


def test_a_killed_build_leaves_no_space(corpus: Path, tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from likewise.semantics import SpaceWriter\n"
        "SpaceWriter._move = lambda self: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from likewise.cli import main; main()"
    )
    arguments = ["space", "build", "--corpus", str(corpus), "--out", str(tmp_path / "space")]
    run = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, check=False, timeout=600)
    assert run.returncode < 0
    assert not (tmp_path / "space").exists()
    assert all(path.name.startswith(".") for path in tmp_path.iterdir()), "half a space is hidden from `space list`"


def test_an_article_of_50_mb(tmp_path: Path) -> None:
    with (tmp_path / "a.jsonl").open("w") as file:
        file.write(json.dumps({"title": "huge", "text": "parking garage " * (50_000_000 // 15)}) + "\n")
        file.write(json.dumps({"title": "small", "text": "parking"}) + "\n")
    run = likewise("space", "build", "--corpus", str(tmp_path / "a.jsonl"), "--out", str(tmp_path / "space"))
    assert run.returncode == 0, run.stderr
    space = Space.open(tmp_path / "space")
    assert [space.title(0), space.title(1)] == ["huge", "small"]
    assert space.length.tolist() == [2 * (50_000_000 // 15), 1]


def test_the_real_dump(tmp_path: Path) -> None:
    gensim = pytest.importorskip("gensim")
    dump = Path(os.path.dirname(gensim.__file__)) / DUMP
    run = likewise("space", "build", "--corpus", str(dump), "--out", str(tmp_path / "space"), "--json")
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    # gensim's own reader finds 106 articles in this file; 8 of them are disambiguation pages.
    assert report["concepts"] + report["corpus"]["dropped"]["disambiguation"] == 106
    assert report["corpus"]["dropped"]["redirect"] == 99
