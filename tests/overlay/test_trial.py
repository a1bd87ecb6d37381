"""Trials of whole federations: no acknowledged event is lost, and nothing is reported twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from likewise.cli.app import run
from likewise.overlay.simulation import OverlayTrial, play_trial

SMALL = OverlayTrial(nodes=30, composites=20, members=3, topics=30, events=200, seconds=20, compare=True)


def test_a_quiet_federation_is_complete() -> None:
    figures = play_trial(SMALL).figures
    assert (figures["acknowledged"], figures["complete"], figures["reported twice"]) == (200, 1.0, 0)
    assert figures["reports"] > 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_a_federation_under_churn_is_complete(seed: int) -> None:
    """With seed 1, two roots of one key are merged after both received events."""
    figures = play_trial(OverlayTrial(nodes=100, events=1000, churn=0.1, compare=True, seed=seed)).figures
    assert (figures["complete"], figures["reported twice"]) == (1.0, 0)
    assert figures["expected"] > 20


def test_a_simulation_draws_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("vl_convert")
    size = ["--nodes", "20", "--composites", "5", "--topics", "10", "--events", "50"]
    assert run(["overlay", "simulate", *size, "--out", str(tmp_path / "charts")]) == 0
    output = capsys.readouterr()
    assert "80 of 80 simulated seconds" in output.err
    assert "reported twice                 0\n" in output.out
    drawn = sorted(path.name for path in (tmp_path / "charts").iterdir())
    assert drawn == ["delays.png", "load.png", "messages.png"]
    assert all((tmp_path / "charts" / name).read_bytes().startswith(b"\x89PNG") for name in drawn)
