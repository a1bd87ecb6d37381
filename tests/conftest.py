"""What tests of several packages share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# Property tests say what must hold, not how fast: a busy machine must not fail them. Loaded here, before any test
# module, so that settings made from the default have it too.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# A shell lets what it starts in the background ignore Ctrl-C, and processes that tests end with it would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever takes the session is a test on Spark."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One Spark session for all tests: starting one takes longer than most of them."""
    pytest.importorskip("pyspark")
    from likewise.errors import MissingError
    from likewise.pipeline import spark_session

    try:
        session = spark_session(master="local[2,4]", settings={"spark.sql.shuffle.partitions": "2"})
    except MissingError as error:
        pytest.skip(str(error))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def wordnet() -> Any:
    """The installed WordNet."""
    from likewise.errors import MissingError
    from likewise.semantics import WordNet

    try:
        return WordNet.load()
    except MissingError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shelf with the WordNet space, whole, built without Spark; for `LIKEWISE_SPACES`."""
    from likewise.errors import LikewiseError
    from likewise.semantics import build_wordnet

    folder = tmp_path_factory.mktemp("shelf")
    try:
        build_wordnet(folder / "wordnet")
    except LikewiseError as error:
        pytest.skip(str(error))
    return folder
