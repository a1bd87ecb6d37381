"""Evidence as a measure: the probability that two terms mean the same to whoever wrote the subscription."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.calibration import FIGURE_BITS, GENERIC_BITS, NEARER_EVENT, NEARER_SUBSCRIPTION, NEAREST, SAME_ROLE_BITS
from likewise.errors import MissingError
from likewise.semantics.adjust.beside import Competitors
from likewise.semantics.evidence.background import MOST, SurroundedTerms, Surroundings
from likewise.semantics.evidence.encoder import SentenceEncoder
from likewise.semantics.evidence.features import EXTRAS, Features, PairShape, features
from likewise.semantics.evidence.glossary import Glossary
from likewise.semantics.evidence.lexical import DESCRIPTIONS, WordRelation
from likewise.semantics.evidence.model import MOST_BITS, WORDS_COMPARED, Model, probability
from likewise.semantics.evidence.other_names import OtherNames
from likewise.semantics.evidence.side import Sources, TermSide
from likewise.semantics.evidence.terms import MOST_READINGS, Reading, Spelling, figures, roles_apart, shared_roles
from likewise.semantics.measures.base import Matrix, Measure, Shared, Themes
from likewise.semantics.space.space import Space, find_space
from likewise.semantics.wordnet.wordnet import WordNet

BLOCK = 1 << 17
"""Pairs of readings weighed at a time: enough for speed, without much memory."""


@dataclass(frozen=True, slots=True)
class Weight:
    """One piece of evidence: its bits and a description."""

    bits: float
    text: str
    kind: str = ""

    def __str__(self) -> str:
        return f"{self.bits:+.1f} {self.text}"


class Evidence(Measure):
    """1 / (1 + 2^-b), where b is the sum of the weights of all evidence for and against two terms.

    Evidence comes from spaces, the sentence encoder, WordNet, a glossary and the words of the stream, as far as they
    are available. A missing source weighs nothing: scores move towards the prior and keep their scale. Themes are not
    used.
    """

    name = "evidence"
    symmetric = False
    of_attributes = False
    """Whether terms are names of attributes, so that their roles count."""

    def __init__(
        self,
        spaces: Sequence[Space | str | Path] = (),
        *,
        encoder: SentenceEncoder | bool | None = None,
        wordnet: WordNet | bool | None = None,
        glossary: Glossary | None = None,
        model: Model | None = None,
        background: Competitors | None = None,
    ) -> None:
        """`encoder` and `wordnet` are used if installed; False leaves them out, True requires them.

        `glossary` extends the shipped one, and replaces other names of its short forms; `background` has the words of
        the stream.
        """
        opened = tuple(space if isinstance(space, Space) else find_space(space) for space in spaces)
        shipped, names = Glossary.shipped(), OtherNames.shipped()
        self.sources = Sources(
            opened,
            _encoder(encoder),
            _wordnet(wordnet),
            shipped if glossary is None else shipped.extended(glossary),
            names if glossary is None else names.without(glossary.shorts),
        )
        self.model = Model.shipped() if model is None else model
        self.background = background

    @classmethod
    def of(cls, sources: Sources, model: Model, *, background: Competitors | None = None) -> Evidence:
        """Evidence from prepared sources."""
        made = object.__new__(cls)
        made.sources, made.model, made.background = sources, model, background
        return made

    def for_attributes(self) -> Evidence:
        """The same evidence for names of attributes.

        Attributes of one role may be meant by each other (place, room), those of two roles are not (place, type).
        """
        return self._for_attributes

    @cached_property
    def _for_attributes(self) -> Evidence:
        made = Evidence.of(self.sources, self.model)
        made.of_attributes = True
        return made

    def with_background(self, background: Competitors | None) -> Evidence:
        """The same evidence with other words of the stream."""
        return Evidence.of(self.sources, self.model, background=background)

    def beside(self, surroundings: Surroundings) -> Evidence:
        """The same evidence with prepared words of the stream."""
        made = Evidence.of(self.sources, self.model)
        made.surroundings = surroundings
        return made

    def surrounded_by(self, terms: Sequence[str]) -> Surroundings | None:
        """Prepared words of the stream; None without an encoder or space, or if this measure has its own."""
        return self._around(terms) if self.surroundings is None else None

    @cached_property
    def surroundings(self) -> Surroundings | None:
        """The prepared words of the stream."""
        return None if self.background is None else self._around(self.background.terms)

    def _around(self, terms: Sequence[str]) -> Surroundings | None:
        known = self.sources.encoder is not None or self.sources.spaces
        return Surroundings(terms, self.sources) if terms and known else None

    def prepare(
        self,
        subscription_terms: Sequence[str],
        *,
        subscription_theme: Sequence[str] = (),
    ) -> PreparedEvidence:
        """Prepare the subscription side: readings, words and vectors."""
        return PreparedEvidence(self, subscription_terms)

    def bits(self, subscription_term: str, event_term: str) -> float:
        """The sum of all evidence of one pair."""
        return float(sum(weight.bits for weight in self.weights(subscription_term, event_term)))

    def weights(self, subscription_term: str, event_term: str) -> list[Weight]:
        """All evidence with a weight: the prior, then the others, strongest first."""
        if identity(subscription_term, self.sources) == identity(event_term, self.sources):
            return [Weight(MOST_BITS, "the same term")]
        prepared = self.prepare([subscription_term])
        events, rows = prepared.evidence([event_term])
        least = prepared.least(events, np.array([row.opposed for row in rows]))
        bits = [np.maximum(self.model.bits(row), floor) for row, floor in zip(rows, least, strict=True)]
        places = [(which, at) for which, row in enumerate(bits) for at in range(len(row))]
        # A skipped pair of readings has the least bits; another with as few has evidence to show.
        counted = [(which, at) for which, at in places if rows[which].shape[at] != PairShape.SKIPPED]
        which, at = max(counted, key=lambda place: float(bits[place[0]][place[1]]))
        reading, row = events.readings[which], rows[which]
        one = row.take(np.array([at]))
        found = [(name, float(part[0])) for name, part in self.model.parts(one)]
        said = [
            Weight(value, describe(name, one, prepared.side.readings[at], reading), name)
            for name, value in found
            if abs(value) >= 0.05 or name == "prior"
        ]
        missing = float(least[which, at]) - sum(value for _, value in found)
        if missing > 0 and least[which, at] > -MOST_BITS:
            same_role = least[which, at] in (SAME_ROLE_BITS, FIGURE_BITS)
            said.append(Weight(missing, _TEXTS["role" if same_role else "generic"], "generic"))
        said += self._ranked(subscription_term, event_term)
        return [said[0], *sorted(said[1:], key=lambda weight: -abs(weight.bits))]

    def _ranked(self, subscription_term: str, event_term: str) -> Iterator[Weight]:
        """The weights of the stream's words for one pair."""
        if self.surroundings is None:
            return
        ranks = self.surroundings.prepare([subscription_term]).ranks([event_term])
        weights = {"nearer_event": (NEAREST, NEARER_EVENT), "nearer_subscription": (0.0, NEARER_SUBSCRIPTION)}
        for (name, (first, weight)), rank in zip(weights.items(), ranks, strict=True):
            bits, count = first - weight * float(rank[0, 0]), round(2 ** float(rank[0, 0]) - 1)
            if abs(bits) >= 0.05:
                yield Weight(bits, _TEXTS[name].format(count=_counted(count)), name)

    def _reasons(self, mine: str, theirs: str, themes: Themes, limit: int) -> list[Shared]:
        """The evidence of one pair, in bits."""
        weights = self.weights(mine, theirs)[:limit]
        return [Shared(weight.text, weight.bits, weight.kind) for weight in weights]


class PreparedEvidence:
    """Prepared subscription terms; `rows` gives a row of scores per event term."""

    def __init__(self, measure: Evidence, terms: Sequence[str]) -> None:
        self.terms = tuple(terms)
        self._measure = measure
        self._same: dict[tuple[str, ...], list[int]] = {}
        for at, term in enumerate(terms):
            self._same.setdefault(identity(term, measure.sources), []).append(at)
        self.side = TermSide(list(map(measure.sources.reader.readings, terms)), measure.sources)

    def rows(self, event_terms: Sequence[str], *, event_theme: Sequence[str] = ()) -> Matrix:
        """The probability of every event term (row) with every prepared term (column)."""
        out = np.zeros((len(event_terms), len(self.terms)), np.float32)
        if not self.terms or not event_terms:
            return out
        size = max(1, BLOCK // (len(self.side.readings) * MOST_READINGS))
        best = np.concatenate(
            [self._bits(event_terms[start : start + size]) for start in range(0, len(event_terms), size)]
        )
        if self._surrounded is not None:
            best += self._surrounded.bits(event_terms)
        scores = probability(best)
        for row, term in enumerate(event_terms):
            scores[row, self._same.get(identity(term, self._measure.sources), [])] = 1
        return scores

    def _bits(self, event_terms: Sequence[str]) -> NDArray[np.float32]:
        """For each event term (row) and prepared term (column), the bits of their best readings."""
        events, found = self.evidence(event_terms)
        whole = Features.concatenate(found)
        bits = self._measure.model.bits(whole).reshape(len(events.readings), len(self.side.readings))
        np.maximum(bits, self.least(events, whole.opposed.reshape(bits.shape)), out=bits)
        by_term = np.maximum.reduceat(bits, self.side.first, axis=1)
        return np.asarray(np.maximum.reduceat(by_term, events.first, axis=0), np.float32)

    def least(self, events: TermSide, opposed: NDArray[np.int8]) -> NDArray[np.float32]:
        """The least bits of event readings (rows) with prepared ones: little speaks against names that say little."""
        generic = self.side.generic | events.generic[:, None]
        least = np.where(generic, np.float32(GENERIC_BITS), np.float32(-MOST_BITS))
        if self._measure.of_attributes:
            roles = events.roles[:, None]
            least[shared_roles(self.side.roles, roles)] = SAME_ROLE_BITS
            least[figures(self.side.roles, roles)] = FIGURE_BITS
        return np.where(opposed == 0, least, np.float32(-MOST_BITS))

    def evidence(self, event_terms: Sequence[str]) -> tuple[TermSide, list[Features]]:
        """The event terms, and for each of their readings its evidence against every reading of the prepared terms."""
        sources = self._measure.sources
        events = TermSide(list(map(sources.reader.readings, event_terms)), sources)
        found = features(self.side, events, self._measure.model.word_scores)
        if self._measure.of_attributes:
            for row, roles in zip(found, events.roles[:, None], strict=True):
                apart = roles_apart(self.side.roles, roles)
                row.opposed[apart] = 1
                # A unit of measurement is not a measurement with an extra word.
                row.shape[apart & (row.shape == PairShape.CONTAINED)] = PairShape.REPLACED
        return events, found

    @cached_property
    def _surrounded(self) -> SurroundedTerms | None:
        """The prepared terms, ranked among the words of the stream."""
        surroundings = self._measure.surroundings
        return None if surroundings is None else surroundings.prepare(self.terms)


def describe(name: str, one: Features, mine: Reading, theirs: Reading) -> str:
    """Describe one piece of evidence."""
    if name == "prior":
        return f"prior: {_SHAPES[PairShape(int(one.shape[0]))]}"
    if name == "relation":
        return f"{DESCRIPTIONS[WordRelation(int(one.relation[0]))]} ({mine.text}, {theirs.text})"
    if name in WORDS_COMPARED:
        mine_only, theirs_only = mine.words_beside(theirs), theirs.words_beside(mine)
        what = _AGREEING[name]
        value = float(getattr(one, name)[0])
        return f"{what} {value:.2f} ({' '.join(mine_only) or mine.text} / {' '.join(theirs_only) or theirs.text})"
    if name == "extra":
        side, kind = EXTRAS[int(one.extra[0])].split()
        longer, shorter = (theirs, mine) if side == "event" else (mine, theirs)
        return f'only the {side} says "{" ".join(longer.words_beside(shorter))}", {_EXTRAS[kind]}'
    if name == "spelling":
        meant = theirs if mine.literal and len(theirs.text) > len(mine.text) else mine
        return f"{_SPELLINGS[Spelling(int(one.spelling[0]))]} {meant.text}"
    return _TEXTS[name].format(getattr(one, name)[0])


def _counted(count: int) -> str:
    """The number of words as text; large counts are only given as a bound.

    >>> _counted(0), _counted(1), _counted(64)
    ('no word of the stream is', '1 word of the stream is', '64 words of the stream or more are')
    """
    if count < 2:
        return f"{count or 'no'} word of the stream is"
    return f"{count} words of the stream {'or more ' if count >= MOST else ''}are"


_TEXTS = {
    "embedding": "sentence embedding {:.2f}",
    "esa": "shared concepts {:.2f}",
    "opposed": "words that exclude each other",
    "codes": "codes or numbers",
    "head": "kind of thing",
    "listed": "names of different things",
    "generic": "a name that says little",
    "role": "attributes of one role",
    "nearer_event": "{count} nearer to the event's term",
    "nearer_subscription": "{count} nearer to the subscription's term",
}
_AGREEING = {
    "aligned": "words agree",
    "worst_subscription": "the subscription's least agreeing word",
    "worst_event": "the event's least agreeing word",
}
_SHAPES = {
    PairShape.WORD: "single words",
    PairShape.APART: "no word in common",
    PairShape.REPLACED: "some words in common",
    PairShape.CONTAINED: "one has all words of the other",
    PairShape.FOREIGN: "not both English",
    PairShape.SAME: "the same words",
    PairShape.UNLISTED_WORD: "single words, not both in WordNet",
    PairShape.DESCRIBED: "a description, no word in common",
    PairShape.DESCRIBED_IN_PART: "a description, some words in common",
}
_EXTRAS = {
    "light": "which adds little",
    "turning": "which turns it into something else",
    "modifier": "which says what kind",
    "head": "which makes it another thing",
    "name": "a name",
}
_SPELLINGS = {
    Spelling.PLAIN: "as written",
    Spelling.OTHER_NAME: "another name of",
    Spelling.GLOSSARY: "short for",
    Spelling.UNSURE_NAME: "may be another name of",
    Spelling.AMBIGUOUS: "may be short for",
    Spelling.INITIALS: "initials of",
}


def identity(term: str, sources: Sources) -> tuple[str, ...]:
    """The key under which two terms are equal: their stems in order, with negations and states."""
    literal = sources.reader.readings(term)[0]
    return literal.stems or (literal.text,)


def _encoder(given: SentenceEncoder | bool | None) -> SentenceEncoder | None:
    if isinstance(given, SentenceEncoder):
        return given
    wanted = SentenceEncoder.installed() if given is None else given
    return SentenceEncoder.adapted() if wanted else None


def _wordnet(given: WordNet | bool | None) -> WordNet | None:
    if isinstance(given, WordNet):
        return given
    if given is False:
        return None
    try:
        return WordNet.load()
    except MissingError:
        if given:
            raise
        return None


__all__ = ["Evidence", "PreparedEvidence", "Weight"]
