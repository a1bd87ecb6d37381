"""A tiny space whose words are few enough to count by hand."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from likewise.semantics import Space, WordNet, write_space
from likewise.semantics.wordnet import files

DOCUMENTS = [
    ("Car park", "parking garage car vehicle parking space street"),
    ("Garage", "garage car repair vehicle parking door"),
    ("Traffic", "car vehicle street road traffic speed"),
    ("Power station", "energy power electricity coal station"),
    ("Energy use", "energy consumption usage electricity meter appliance"),
    ("Laptop", "laptop computer notebook battery power screen"),
    ("Computer", "computer laptop processor memory office electricity"),
    ("Office", "office room building desk computer"),
    ("Building", "building room garage energy appliance"),
    ("Weather", "temperature humidity wind rain sensor"),
    ("Sensor", "sensor temperature measurement device energy"),
]


@pytest.fixture(scope="session")
def tiny_space(tmp_path_factory: pytest.TempPathFactory) -> Space:
    folder = tmp_path_factory.mktemp("spaces") / "tiny"
    write_space(folder, DOCUMENTS)
    return Space.open(folder)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of shared data; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("LIKEWISE_DATA", "no-data"))
    if not folder.is_dir():
        pytest.skip(f"no data at {folder}: set LIKEWISE_DATA")
    return folder


LICENCE = "  1 This is a licence line and no data.  \n"
NOUNS = [
    '00000010 03 n 01 entity 0 001 ~ 00000020 n 0000 | that which is; "an entity"  ',
    "00000020 03 n 02 motor_car 0 automobile 0 002 @ 00000010 n 0000 + 00000010 v 0101 | a thing with four wheels  ",
    "00000030 03 n 01 ox 0 001 @ 00000010 n 0000 | an animal  ",
]


def _write(folder: Path) -> Path:
    """A WordNet of three nouns, a verb and an adjective."""
    (folder / "data.noun").write_text(LICENCE + "\n".join(NOUNS) + "\n")
    (folder / "data.verb").write_text("00000010 29 v 01 drive 0 000 01 + 02 00 | operate a car  \n")
    (folder / "data.adj").write_text("00000010 00 s 01 galore(ip) 0 000 | in plenty  \n")
    (folder / "data.adv").write_text("")
    (folder / "index.noun").write_text(
        LICENCE
        + "entity n 1 1 ~ 1 0 00000010  \nmotor_car n 2 1 @ 2 1 00000020 00000010  \nox n 1 1 @ 1 1 00000030  \n"
    )
    (folder / "index.verb").write_text("drive v 1 0 1 1 00000010  \n")
    (folder / "index.adj").write_text("galore a 1 0 1 0 00000010  \n")
    (folder / "index.adv").write_text("")
    (folder / "index.sense").write_text(
        "drive%2:29:00:: 00000010 1 4\ngalore%5:00:00:plenty:00 00000010 1 2\n"
        "motor_car%1:03:00:: 00000020 1 7\nox%1:03:00:: 00000030 1 0\n"
    )
    (folder / "noun.exc").write_text("oxen ox\n")
    return folder


@pytest.fixture(scope="session")
def write_wordnet() -> Callable[[Path], Path]:
    """Writes the files of a small WordNet into a folder."""
    return _write


@pytest.fixture
def small(tmp_path: Path) -> WordNet:
    return WordNet(files.parse(_write(tmp_path)))
