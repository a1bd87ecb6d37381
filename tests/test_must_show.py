"""What the papers show, on a real WordNet space built on Spark, from the command line as a user would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark

EVENT = {
    "id": "e1",
    "theme": ["energy", "appliances", "building"],
    "attributes": {
        "type": "increased energy consumption event",
        "measurement unit": "kilowatt hour",
        "device": "computer",
        "office": "room 112",
    },
}


@pytest.fixture
def likewise(shelf: Path, tmp_path: Path) -> Any:
    def run(*arguments: str) -> list[dict[str, Any]]:
        command = [sys.executable, "-m", "likewise", *arguments, "--json"]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env=os.environ | {"LIKEWISE_SPACES": str(shelf)},
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def written(folder: Path, events: list[dict[str, Any]], subscriptions: str) -> tuple[str, str]:
    (folder / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    (folder / "subscriptions.lw").write_text(subscriptions)
    return "events.jsonl", "subscriptions.lw"


def test_parking_is_nearer_to_garage_than_to_energy(likewise: Any) -> None:
    """000 section 3.1."""
    [near] = likewise("relate", "parking", "garage")
    [far] = likewise("relate", "parking", "energy")
    assert near["score"] > far["score"]
    assert near["reasons"]


def test_the_example_of_thematic_event_processing_gets_its_mapping(likewise: Any, tmp_path: Path) -> None:
    """000 sections 3.3 to 3.5: the type, the device and the office answer each other."""
    files = written(
        tmp_path,
        [EVENT],
        "{power, computers}, {type= increased energy usage event~, device~= laptop~, office= room 112}}",
    )
    [match] = likewise("match", *files, "--approach", "thematic")
    pairs = match["mappings"][0]["correspondences"]
    assert [pair["attribute"] for pair in pairs] == ["type", "device", "office"]


def test_a_vacancy_answers_a_wish_for_an_empty_slot(likewise: Any, tmp_path: Path) -> None:
    """004 section 3: {parking vacancy = 3} and {empty parking slot > 0}."""
    events = [
        {"id": "full", "attributes": {"parking vacancy": 0}},
        {"id": "free", "attributes": {"parking vacancy": 3}},
        {"id": "other", "attributes": {"temperature": 3}},
    ]
    [match] = likewise("match", *written(tmp_path, events, "sarah: {empty parking slot~ > 0}"))
    assert match["event"] == "free"


def test_the_match_of_spain_ranks_first(likewise: Any, tmp_path: Path) -> None:
    """002 examples 2 and 3."""
    final = {
        "type": "Football Match",
        "name": "2010 FIFA World Cup Final",
        "referee": "Howard Webb",
        "location": ["FNB Stadium", "Johannesburg"],
        "team": ["Spain national football team", "Netherlands national football team"],
    }
    others = [
        {"type": "Football Match", "location": "London", "team": ["England", "Germany"]},
        {"type": "Music Festival", "location": "Madrid", "name": "Spain in concert"},
        {"type": "Election", "location": "South Africa"},
    ]
    events = [{"id": f"e{n}", "attributes": one} for n, one in enumerate([*others, final])]
    wish = 'event type "Soccer Match"\nevent place "South Africa"\nevent team "Spain"\n'
    matches = likewise("match", *written(tmp_path, events, wish), "--threshold", "0", "--approach", "hybrid")
    best = max(matches, key=lambda match: float(match["score"]))
    assert best["event"] == "e3"
