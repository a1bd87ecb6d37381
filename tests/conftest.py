"""What tests of several packages share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


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
