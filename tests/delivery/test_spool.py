"""The spool keeps every message until `forget` drops it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from likewise.delivery import Spool


def message(number: int) -> tuple[str, bytes, int]:
    return f"t/{number}", bytes([number]), number


@pytest.fixture
def open_spool(tmp_path: Path) -> Iterator[Callable[[int], Spool]]:
    """A function that opens the same folder again and appends some messages; all spools are closed at the end."""
    opened: list[Spool] = []

    def open_and_fill(count: int = 0) -> Spool:
        spool = Spool(tmp_path, segment=4)
        opened.append(spool)
        for number in range(spool.next, spool.next + count):
            assert spool.append(message(number)) == number
        return spool

    yield open_and_fill
    for spool in opened:
        spool.close()


Open = Callable[..., Spool]


def test_any_range_can_be_read_again(open_spool: Open) -> None:
    spool = open_spool(10)
    assert list(spool.read(3, 9)) == [message(number) for number in range(3, 9)]
    assert list(spool.read(3, 9)) == [message(number) for number in range(3, 9)]


def test_a_new_process_continues_the_numbering(open_spool: Open) -> None:
    open_spool(6).close()
    assert list(open_spool(1).read(0, 9)) == [message(number) for number in range(7)]


def test_a_message_cut_off_by_a_crash_is_dropped(open_spool: Open, tmp_path: Path) -> None:
    """It was not acknowledged, so the broker sends it again."""
    open_spool(3).close()
    (segment,) = tmp_path.glob("*.spool")
    segment.write_bytes(segment.read_bytes()[:-1])
    spool = open_spool()
    assert spool.next == 2
    spool.append(message(9))
    assert list(spool.read(0, 9)) == [message(0), message(1), message(9)]


def test_forgetting_drops_whole_segments_only(open_spool: Open, tmp_path: Path) -> None:
    spool = open_spool(10)
    spool.forget(6)
    assert sorted(path.stem for path in tmp_path.iterdir()) == [f"{4:020}", f"{8:020}"]
    assert list(spool.read(6, 10)) == [message(number) for number in range(6, 10)]


def test_an_emptied_folder_continues_at_sparks_offset(open_spool: Open) -> None:
    spool = open_spool()
    spool.skip_to(100)
    assert spool.append(message(1)) == 100
    assert open_spool().next == 101


def test_a_message_counts_as_durable_only_when_the_disk_has_it(
    open_spool: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = open_spool(2)
    synced: list[int] = []
    wait = os.fsync

    def fsync(handle: int) -> None:
        wait(handle)
        synced.append(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    assert spool.durable == 0
    assert spool.sync() == 2
    assert len(synced) == 1, "one fsync for both"
    assert spool.sync() == 2
    assert len(synced) == 1, "none without a new message"


def test_a_full_segment_is_on_the_disk_before_the_next_begins(open_spool: Open) -> None:
    """`sync` covers the open segment only."""
    spool = open_spool(6)
    assert spool.durable == 4
    assert spool.sync() == 6
