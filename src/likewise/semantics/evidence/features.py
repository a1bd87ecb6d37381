"""The evidence of pairs of terms: one event term beside many subscription terms, in vectorised steps."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from likewise.calibration import SAME_HEAD
from likewise.semantics.evidence.encoder import cosines
from likewise.semantics.evidence.lexical import WordRelation
from likewise.semantics.evidence.side import TermSide
from likewise.semantics.evidence.terms import Reading, Spelling, extra_kind, spelling_of, turned
from likewise.semantics.measures.base import Prepared

Floats = NDArray[np.float32]
Codes = NDArray[np.int8]


class PairShape(IntEnum):
    """How the words of two terms overlap; each shape has its own weights."""

    WORD = 0
    APART = 1
    REPLACED = 2
    CONTAINED = 3
    FOREIGN = 4
    SAME = 5
    UNLISTED_WORD = 6
    """Two single words, at least one of which WordNet does not list."""
    SKIPPED = 7
    """Other names that do not make the terms more alike: only the terms as they are written count."""
    DESCRIBED = 8
    """No word in common, and at least one side is a description: `how full the tank is`."""
    DESCRIBED_IN_PART = 9
    """Some words in common, and at least one side is a description."""


class CodesSay(IntEnum):
    """How the codes and numbers of two terms compare."""

    NOTHING = 0
    SAME = 1
    DIFFERENT = 2
    ONE_SIDE = 3


class Exclusion(IntEnum):
    """Whether words of two terms exclude each other; descriptions have more words, so that this says less of them."""

    NO = 0
    YES = 1
    IN_A_DESCRIPTION = 2


class Listed(IntEnum):
    """What the list of other names says of two terms."""

    NOTHING = 0
    APART = 1
    """Both are names of things in the list, and of different things."""


EXTRAS = ("none", *(f"{side} {kind}" for side in ("event", "subscription") for kind in
                    ("light", "turning", "modifier", "head", "name")))  # fmt: skip
"""Which side has extra words, and how they change its meaning."""

HEADS = ("none", "shared", "different")
"""Whether phrases have the same head or, where they share no word, heads that mean the same."""


@dataclass(slots=True)
class Features:
    """The evidence of one event reading against every subscription reading; NaN or code 0 means no evidence."""

    shape: Codes
    embedding: Floats
    esa: Floats
    relation: Codes
    aligned: Floats
    worst_subscription: Floats
    worst_event: Floats
    opposed: Codes
    codes: Codes
    extra: Codes
    head: Codes
    spelling: Codes
    listed: Codes

    @classmethod
    def empty(cls, size: int) -> Features:
        """Features of `size` pairs, without any evidence."""
        codes = [np.zeros(size, np.int8) for _ in range(8)]
        sizes = [np.full(size, np.nan, np.float32) for _ in range(5)]
        return cls(
            shape=codes[0],
            embedding=sizes[0],
            esa=sizes[1],
            relation=codes[1],
            aligned=sizes[2],
            worst_subscription=sizes[3],
            worst_event=sizes[4],
            opposed=codes[2],
            codes=codes[3],
            extra=codes[4],
            head=codes[5],
            spelling=codes[6],
            listed=codes[7],
        )

    def take(self, places: NDArray[np.integer]) -> Features:
        """The features of some of the pairs."""
        return Features(**{one.name: getattr(self, one.name)[places] for one in fields(self)})

    @classmethod
    def concatenate(cls, parts: Sequence[Features]) -> Features:
        """The features of all pairs of several parts."""
        return cls(**{one.name: np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(cls)})


WordScores = Callable[[Floats, Floats, Codes], Floats]
"""From embedding, ESA and relation of two words to the probability that they mean the same."""


def features(side: TermSide, events: TermSide, word_scores: WordScores) -> list[Features]:
    """For each reading of the events' side, its evidence beside every reading of the subscriptions' side."""
    if not side.readings:
        return [Features.empty(0) for _ in events.readings]
    rows = _Rows(side, events, word_scores)
    found = [_row(side, events, at, reading, rows=rows) for at, reading in enumerate(events.readings)]
    for first, last in itertools.pairwise([*events.first.tolist(), len(found)]):
        _exclude_in_all_readings(side, found[first:last], events.sole[first:last])
    return found


def _exclude_in_all_readings(side: TermSide, rows: Sequence[Features], sole: NDArray[np.bool_]) -> None:
    """Let what excludes two terms in one reading count in the others: no way to write them makes opposites agree.

    `rows` has the readings of one event term, and `sole` says which are the only way to spell it out: a short form with
    two meanings may be opposite in the wrong one. Readings with the same words agree whatever the others say.
    """
    for row in rows:
        row.opposed[(row.opposed == 1) & np.isin(row.shape, _IN_SENTENCES)] = Exclusion.IN_A_DESCRIPTION
    certain = [row for row, alone in zip(rows, sole.tolist(), strict=True) if alone]
    apart = _in_any_reading(side, [(row.opposed == 1) & side.sole for row in certain])
    turned_apart = _in_any_reading(side, [np.isin(row.extra, _TURNING) & side.sole for row in certain])
    for row in rows:
        row.opposed[apart & (row.shape != PairShape.SAME)] = 1
        row.shape[turned_apart & np.isin(row.shape, _COMPARED)] = PairShape.SKIPPED


def _in_any_reading(side: TermSide, found: Sequence[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """For each reading, whether something was found for any reading of its term."""
    anywhere = np.logical_or.reduce(found) if found else np.zeros(len(side.readings), np.bool_)
    return np.asarray(np.logical_or.reduceat(anywhere, side.first)[side.owner], np.bool_)


class _Rows:
    """Evidence that is computed for all event readings at once."""

    def __init__(self, side: TermSide, events: TermSide, word_scores: WordScores) -> None:
        self.words = _words(side, events, word_scores)
        self.embedding = _embedding(side, events)
        self.esa = _roots(side.concepts, events.texts)
        # Terms that are opposites as they are written are opposites by any other name.
        self.opposed = np.zeros((len(events.readings), len(side.readings)), np.bool_)
        for terms in side.opposite_terms:
            for texts in events.versions:
                self.opposed |= terms.opposed(texts)


def _embedding(side: TermSide, events: TermSide) -> Floats | None:
    """The cosine of each pair of readings; single words have their plain vectors."""
    if side.vectors is None:
        return None
    out = _cosines(events.vectors, side.vectors)
    (rows, left), (columns, right) = events.single, side.single
    if len(rows) and len(columns):
        out[np.ix_(rows, columns)] = _cosines(left, right)
    return out


def _row(side: TermSide, events: TermSide, at: int, reading: Reading, *, rows: _Rows) -> Features:
    out = Features.empty(len(side.readings))
    if rows.embedding is not None:
        out.embedding = rows.embedding[at].copy()
    if rows.esa is not None:
        out.esa = np.where(side.known & events.known[at], rows.esa[at], np.float32(np.nan))
    out.relation = side.related_terms.relations(reading.text)
    _forget_phrases(side, reading, out.relation)
    out.opposed = rows.opposed[at].astype(np.int8)
    if street := events.streets.get(at):
        # Oak Avenue is not Maple Street, however near their words are.
        out.opposed[[other for other, name in side.streets.items() if name.isdisjoint(street)]] = 1
    out.codes = _codes(side, reading)
    out.spelling[:] = spelling_of(reading)
    np.maximum(out.spelling, side.spelling, out=out.spelling)
    _compare_words(side, events, at, reading, out=out, rows=rows)
    out.opposed[out.shape == PairShape.SAME] = 0
    out.shape[(side.shorthand | reading.shorthand) & ~np.isin(out.shape, _WITH_ALL_WORDS)] = PairShape.SKIPPED
    _mark_things_apart(side, events, at, reading, out=out)
    _mark_short_forms(side, reading, out)
    _skip_idle_names(side, reading, out)
    return out


_WITH_ALL_WORDS = (PairShape.SAME, PairShape.CONTAINED)
"""Shapes in which short forms count as they are written: the other term has them, too."""

_NEAR = (
    WordRelation.SYNONYMS,
    WordRelation.RARE_SYNONYMS,
    WordRelation.DERIVED,
    WordRelation.NARROWER,
    WordRelation.FAR_NARROWER,
)
"""Relations by which a term may well be meant by another although the list has a line for each."""

_IN_SENTENCES = (PairShape.DESCRIBED, PairShape.DESCRIBED_IN_PART)
"""Shapes of descriptions."""

_COMPARED = (PairShape.WORD, PairShape.UNLISTED_WORD, PairShape.APART, PairShape.REPLACED, PairShape.DESCRIBED,
             PairShape.DESCRIBED_IN_PART)  # fmt: skip
"""Shapes in which different names mean different things; a printer and a laser printer are both in the list."""


_TURNING = (EXTRAS.index("event turning"), EXTRAS.index("subscription turning"))
"""Extra words that turn a term into something else: a cleared alarm is no alarm."""

_OTHER_THING = (EXTRAS.index("event head"), EXTRAS.index("subscription head"))
"""Extra words that make a term another thing: a blood pressure cuff is no blood pressure."""


def _mark_things_apart(side: TermSide, events: TermSide, at: int, reading: Reading, *, out: Features) -> None:
    """Mark the pairs that the list of other names has as different things, whole or in the words that differ."""
    if events.things[at]:
        other_thing = np.isin(out.extra, _OTHER_THING)
        apart = side.has_thing & (np.isin(out.shape, _COMPARED) | other_thing) & ~np.isin(out.relation, _NEAR)
        apart[[other for thing in events.things[at] for other in side.of_thing.get(thing, ())]] = False
        out.listed[apart] = Listed.APART
    things = side.sources.names.things
    partly = np.isin(out.shape, (PairShape.REPLACED, PairShape.DESCRIBED_IN_PART)) & (out.listed == 0)
    for other in np.flatnonzero(partly).tolist():
        beside = side.readings[other]
        mine = things(reading.words_beside(beside))
        theirs = things(beside.words_beside(reading)) if mine else mine
        if mine and theirs and mine.isdisjoint(theirs):
            out.listed[other] = Listed.APART


_IDLE = (PairShape.WORD, PairShape.UNLISTED_WORD, PairShape.FOREIGN)
"""Shapes in which another name cannot make words equal; how near two single words are is seen as they are written."""


def _skip_idle_names(side: TermSide, reading: Reading, out: Features) -> None:
    """Let the terms count as they are written where other names cannot say more.

    That is between single words, and where a further word turns one term into something else: a set temperature is a
    temperature setpoint, but does not make it a temperature.
    """
    renamed = side.renamed | (reading.renames is not None)
    out.shape[renamed & np.isin(out.shape, _IDLE)] = PairShape.SKIPPED
    for at in {at for name in reading.original.stems for at in side.written.get(name, ())}:
        if renamed[at] and out.shape[at] != PairShape.SAME and turned(reading.original, side.readings[at].original):
            out.shape[at] = PairShape.SKIPPED


def _forget_phrases(side: TermSide, reading: Reading, relation: Codes) -> None:
    """A phrase that WordNet does not list gives no evidence if WordNet lists a word of it."""
    unlisted = side.unlisted.astype(np.int8) + reading.unlisted
    relation[(relation == WordRelation.ONE_UNLISTED) & (unlisted != 1)] = WordRelation.NO_EVIDENCE
    relation[(relation == WordRelation.BOTH_UNLISTED) & (unlisted != 2)] = WordRelation.NO_EVIDENCE


def _compare_words(side: TermSide, events: TermSide, at: int, reading: Reading, *, out: Features, rows: _Rows) -> None:
    """Fill in the shape, and how well the words agree in which two terms differ."""
    mine = events.flat[events.start[at] : events.start[at] + events.length[at]]
    names = reading.stems
    same = np.zeros(len(side.words), np.bool_)
    same[[at for name in names for at in side.of_stem.get(name, ())]] = True
    scores = rows.words[mine]
    common = side.sums(same.astype(np.float32)).astype(np.int64)
    out.shape = _shapes(side, reading, common)
    if len(names) > 1 and side.words:
        heads = scores[names.index(reading.head), side.head] >= SAME_HEAD
        phrases = (out.shape == PairShape.APART) & (side.length > 1)
        out.head[phrases] = np.where(heads, HEADS.index("shared"), HEADS.index("different"))[phrases]
    _align(side, events, mine, scores=scores, same=same, out=out)
    _parts(side, reading, out)


def _words(side: TermSide, events: TermSide, word_scores: WordScores) -> Floats:
    """The probability that each word of the events (rows) means the same as each word of the other side (columns)."""
    if not (side.words and events.words):
        return np.zeros((len(events.words), max(1, len(side.words))), np.float32)
    missing = np.full((len(events.words), len(side.words)), np.nan, np.float32)
    embedding, roots = missing, missing
    if side.word_vectors is not None:
        embedding = _cosines(events.word_vectors, side.word_vectors)
    elif (found := _roots(side.word_concepts, events.words)) is not None:
        roots = found
    related = np.stack([side.related_words.relations(word) for word in events.words])
    scores = word_scores(embedding.ravel(), roots.ravel(), related.ravel()).reshape(missing.shape)
    if side.opposite_words is not None:
        scores[side.opposite_words.opposed(events.words)] = 0
    # Codes are equal or not; nothing lies between.
    scores[:, side.is_code] = 0
    scores[events.is_code] = 0
    for name in events.of_stem.keys() & side.of_stem.keys():
        scores[np.ix_(events.of_stem[name], side.of_stem[name])] = 1
    return scores


def _shapes(side: TermSide, reading: Reading, common: NDArray[np.int64]) -> Codes:
    length = len(reading.stems)
    out = np.where((side.length == 1) & (length == 1), np.int8(PairShape.WORD), np.int8(PairShape.APART))
    out[common > 0] = PairShape.REPLACED
    out[(common > 0) & ((common == side.length) | (common == length))] = PairShape.CONTAINED
    out[(common == side.length) & (common == length) & (length > 0)] = PairShape.SAME
    described = side.described | reading.described
    out[described & (out == PairShape.APART)] = PairShape.DESCRIBED
    out[described & (out == PairShape.REPLACED)] = PairShape.DESCRIBED_IN_PART
    single = (side.length == 1) & (length == 1)
    marked = side.foreign | reading.foreign
    foreign = marked | ((side.english != reading.english) & (common == 0))
    out[foreign & ~single & (out != PairShape.SAME)] = PairShape.FOREIGN
    out[single & (common == 0) & (side.unlisted | reading.unlisted)] = PairShape.UNLISTED_WORD
    return out.astype(np.int8)


def _align(
    side: TermSide, events: TermSide, mine: NDArray[np.int64], *, scores: Floats, same: NDArray[np.bool_], out: Features
) -> None:
    """Fill in the mean and the minimum of how well each differing word is matched on the other side."""
    if not len(mine) or not side.words:
        return
    best = scores.max(axis=0)
    differ = np.where(same, np.float32(0), side.weight)
    forth, amount = side.sums(best * differ), side.sums(differ)
    least = side.least(np.where(same, np.float32(1), np.maximum(best, 1 - side.weight)))
    back = side.best(scores)
    weight = events.weight[mine][:, None] * (back < 1)
    total = amount + weight.sum(axis=0)
    met = np.divide(forth + (back * weight).sum(axis=0), total, out=np.ones_like(total), where=total > 0)
    out.aligned = met.astype(np.float32)
    out.worst_subscription = least
    out.worst_event = np.maximum(back, 1 - events.weight[mine][:, None]).min(axis=0)


def _parts(side: TermSide, reading: Reading, out: Features) -> None:
    """Fill in what extra words do, and whether phrases that differ in part have the same head.

    Extra words do nothing where WordNet lists both terms as synonyms (laptop, laptop computer), unless the first
    sense of the shorter one is another (alarm, alarm clock).
    """
    entry = side.sources.lexicon.entry
    for at in np.flatnonzero(out.shape == PairShape.CONTAINED).tolist():
        other = side.readings[at]
        longer, shorter, name = (reading, other, "event") if len(reading.stems) > len(other.stems) else (
            other, reading, "subscription")  # fmt: skip
        if out.relation[at] == WordRelation.SYNONYMS:
            if not entry(shorter.text).first.isdisjoint(entry(longer.text).rare):
                continue
            out.relation[at] = WordRelation.RARE_SYNONYMS
        extra = longer.words_beside(shorter)
        after_head = longer.head_beside(shorter.stems) not in shorter.stems
        kind = extra_kind(extra, after_head=after_head, known=side.sources.reader.known)
        if name == "subscription" and longer.codes.issuperset(extra):
            # Pump 3 is a pump, but a subscription to pump 3 is not met by any pump.
            kind = "name"
        out.extra[at] = EXTRAS.index(f"{name} {kind}")
    for at in np.flatnonzero(out.shape == PairShape.REPLACED).tolist():
        out.head[at] = HEADS.index("shared" if side.readings[at].head == reading.head else "different")


def _codes(side: TermSide, reading: Reading) -> Codes:
    out = np.zeros(len(side.readings), np.int8)
    if not reading.codes:
        out[side.has_codes] = CodesSay.ONE_SIDE
        return out
    out[:] = CodesSay.ONE_SIDE
    for at in np.flatnonzero(side.has_codes).tolist():
        out[at] = CodesSay.SAME if side.readings[at].codes == reading.codes else CodesSay.DIFFERENT
    return out


def _mark_short_forms(side: TermSide, reading: Reading, out: Features) -> None:
    if not reading.words:
        return
    for at in side.spelled_out(reading):
        out.shape[at], out.spelling[at] = PairShape.SAME, Spelling.INITIALS
    for at in side.shortened(reading):
        out.shape[at], out.spelling[at] = PairShape.SAME, Spelling.AMBIGUOUS


def _cosines(one: Floats | None, other: Floats | None) -> Floats:
    assert one is not None
    assert other is not None
    return cosines(one, other)


def _roots(prepared: Sequence[Prepared], texts: Sequence[str]) -> Floats | None:
    """The mean of the square roots of the cosines in all spaces: cosines of sparse rows crowd near 0."""
    if not prepared:
        return None
    return np.asarray(np.mean([np.sqrt(one.rows(texts)) for one in prepared], axis=0), np.float32)


__all__ = [
    "EXTRAS",
    "HEADS",
    "CodesSay",
    "Exclusion",
    "Features",
    "Listed",
    "PairShape",
    "features",
]
