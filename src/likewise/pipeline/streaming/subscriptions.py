"""Subscriptions as a table that may change while a stream runs: read again for every micro-batch.

The subscriptions of a batch are pinned under its number before they are used, so that a batch repeated after a crash,
or processed by several workers, has the same subscriptions.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import msgspec

from likewise.errors import BuildError, LikewiseError
from likewise.language import Subscription, parse, write_header
from likewise.matching import Background
from likewise.recipe import Recipe, once


class RecipeSource(Protocol):
    """The source of the subscriptions for a batch."""

    def recipe(self, batch: int | None) -> Recipe:
        """The recipe of this batch."""
        ...

    def versions(self, batch: int | None) -> Versions:
        """The patterns of this batch, with their versions in state."""
        ...


class Versions(msgspec.Struct, frozen=True):
    """The version of each pattern, and the recently removed or changed patterns.

    The state of patterns that are `gone` (name, version, batch) is cleared.
    """

    live: dict[str, str]
    gone: list[tuple[str, str, int]] = []

    def after(self, digests: Mapping[str, str], batch: int) -> Versions:
        """The versions of the next batch: a pattern that is new, changed or restored gets a new version.

        >>> first = Versions({}).after({"p": "x"}, 1)
        >>> second = first.after({}, 2)
        >>> first.live, second.gone, second.after({"p": "x"}, 3).live
        ({'p': 'x-1'}, [('p', 'x-1', 2)], {'p': 'x-3'})
        """
        live = {
            name: old if (old := self.live.get(name, "")).partition("-")[0] == digest else f"{digest}-{batch}"
            for name, digest in digests.items()
        }
        left = [(name, old, batch) for name, old in self.live.items() if live.get(name) != old]
        return Versions(live, [removed for removed in self.gone if removed[2] > batch - _SWEPT] + left)


_SWEPT = 10
"""The number of batches in which the state of a removed pattern is cleared; a single batch may have no events."""


@dataclass(frozen=True, slots=True)
class FixedRecipe:
    """Subscriptions that do not change."""

    value: Recipe

    def recipe(self, batch: int | None) -> Recipe:  # noqa: ARG002 - the same for all
        """The recipe."""
        return self.value

    def current(self) -> Recipe:
        """The recipe."""
        return self.value

    def informed(self, background: Background | None) -> FixedRecipe:
        """The same with what was learned of the stream."""
        return FixedRecipe(replace(self.value, learned=background))

    def versions(self, batch: int | None) -> Versions:  # noqa: ARG002 - the same for all
        """A digest of each pattern."""
        return once((self.value.key, "versions"), lambda: Versions(pattern_versions(self.value)))


@dataclass(frozen=True, slots=True)
class SubscriptionTable:
    """A file of subscriptions (text, or JSON lines with `name` and `subscription`), or a folder with such or Parquet.

    `pins` is a folder of the stream's own; it and the table must be seen by driver and workers alike. A table that
    cannot be read or parsed, or is empty, does not stop the stream: the last good one stays in force, and `error.txt`
    in `pins` says why. `arguments` are those of `Recipe.of`, `learned` is what was learned of the stream.
    """

    path: str
    pins: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    learned: Background | None = None

    def recipe(self, batch: int | None) -> Recipe:
        """The subscriptions pinned to a batch, by the first call; outside a stream, the current ones."""
        text = read_table(self.path) if batch is None else self._pinned(batch)
        key = (self.path, text, repr(sorted(self.arguments.items())), repr(self.learned))
        return once(key, lambda: self._recipe(text))

    def versions(self, batch: int | None) -> Versions:
        """The versions pinned to a batch."""
        digests = pattern_versions(self.recipe(batch))
        if batch is None:
            return Versions(digests)
        folder = Path(self.pins)
        pin = folder / f"{batch}.versions"
        if not pin.exists():
            before = max((number for number in _numbers(folder, "versions") if number < batch), default=None)
            last = Versions({}) if before is None else _versions((folder / f"{before}.versions").read_bytes())
            _pin(pin, msgspec.json.encode(last.after(digests, batch)))
        return _versions(pin.read_bytes())

    def current(self) -> Recipe:
        """The subscriptions in force: those of the table, or the last good ones."""
        return self._recipe(self._read_good(Path(self.pins)))

    def informed(self, background: Background | None) -> SubscriptionTable:
        """The same with what was learned of the stream."""
        return replace(self, learned=background)

    def _recipe(self, text: str) -> Recipe:
        recipe = Recipe.of(parse(text, source=self.path), **self.arguments)
        return replace(recipe, learned=self.learned) if recipe.may_learn else recipe

    def _pinned(self, batch: int) -> str:
        folder = Path(self.pins)
        pin = folder / f"{batch}.lw"
        if not pin.exists():
            folder.mkdir(parents=True, exist_ok=True)
            _pin(pin, self._read_good(folder).encode())
            _forget(folder, before=batch - 100)
        return pin.read_text(encoding="utf-8")

    def _read_good(self, folder: Path) -> str:
        note = folder / "error.txt"
        last = max(folder.glob("*.lw"), key=lambda path: int(path.stem), default=None)
        try:
            text = read_table(self.path)
            if last is not None and not text.strip():
                # Removed patterns lose their state, and the file may only be empty while it is being saved.
                raise BuildError(f"{self.path} is empty", hint="a table without subscriptions has at least a comment")
            self._recipe(text).check()
        except LikewiseError as error:
            if last is None:
                raise
            note.write_text(str(error), encoding="utf-8")
            return last.read_text(encoding="utf-8")
        note.unlink(missing_ok=True)
        return text


_versions = msgspec.json.Decoder(Versions).decode


def _pin(path: Path, content: bytes) -> None:
    """Write a file that several processes may write: the first one wins."""
    part = path.with_name(f".{uuid.uuid4().hex}.part")
    part.write_bytes(content)
    try:
        os.link(part, path)
    except FileExistsError:
        pass
    finally:
        part.unlink()


def _numbers(folder: Path, suffix: str) -> Iterator[int]:
    return (int(path.stem) for path in folder.glob(f"*.{suffix}"))


def _forget(folder: Path, *, before: int) -> None:
    for suffix in ("lw", "versions"):
        for number in _numbers(folder, suffix):
            if number < before:
                (folder / f"{number}.{suffix}").unlink(missing_ok=True)


def read_table(path: str | Path) -> str:
    """All subscriptions of a table, as text."""
    place = Path(path)
    files = sorted(p for p in place.rglob("*") if _counts(p)) if place.is_dir() else [place]
    try:
        return "\n".join(_text(file) for file in files)
    except (OSError, UnicodeDecodeError) as error:
        raise BuildError(f"the subscriptions {path} cannot be read: {error}") from None


def _counts(path: Path) -> bool:
    hidden = any(part.startswith((".", "_")) for part in path.parts[-2:])
    return path.is_file() and not hidden and path.suffix in (".lw", ".txt", ".jsonl", ".parquet")


def _text(file: Path) -> str:
    if file.suffix == ".parquet":
        import pyarrow.parquet as pq

        return "\n".join(_lines(pq.read_table(file).to_pylist(), file))
    if file.suffix == ".jsonl":
        return "\n".join(_lines(_json_rows(file), file))
    return file.read_text(encoding="utf-8")


def _json_rows(file: Path) -> Iterator[Any]:
    for line in file.read_bytes().splitlines():
        if line.strip():
            try:
                yield msgspec.json.decode(line)
            except msgspec.DecodeError as error:
                raise BuildError(f"{file}: not JSON: {error}") from None


def _lines(rows: Any, file: Path) -> Iterator[str]:
    for row in rows:
        text = row.get("subscription") if isinstance(row, dict) else None
        if not isinstance(text, str):
            raise BuildError(f"{file} has a row without a subscription", hint="columns: name (optional), subscription")
        yield f"{write_header(str(row['name']))}: {text}" if row.get("name") else text


def pattern_versions(recipe: Recipe) -> dict[str, str]:
    """Each pattern with a digest of itself and of all that it may refer to by name."""
    from hashlib import blake2b

    known = {subscription.name: subscription for subscription in recipe.subscriptions}
    out = {}
    for pattern in recipe.patterns:
        content = "\n".join(sorted(repr(subscription) for subscription in _reachable(pattern, known)))
        out[pattern.name] = blake2b(content.encode(), digest_size=8).hexdigest()
    return out


def _reachable(pattern: Subscription, known: Mapping[str, Subscription]) -> list[Subscription]:
    found: dict[str, Subscription] = {}
    waiting = [pattern]
    while waiting:
        subscription = waiting.pop()
        if subscription.name not in found:
            found[subscription.name] = subscription
            waiting += [known[name] for name in _references(subscription.body) if name in known]
    return list(found.values())


def _references(part: Any) -> Iterator[str]:
    from likewise.language import Reference

    if isinstance(part, Reference):
        yield part.name
    for name in getattr(type(part), "__dataclass_fields__", ()):
        value = getattr(part, name)
        for child in value if isinstance(value, tuple) else (value,):
            yield from _references(child)
