"""From text to stemmed words: the same cut for a corpus and for the terms that are looked up in it."""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import lru_cache

import Stemmer

from likewise.events import words as split_term

# Nouns in -ing that have a meaning of their own: a stemmer would make `parking` a kind of `park`.
#
# They are the nouns of one word in -ing that WordNet 3.0 has found in texts. With them kept whole, `parking` is nearer
# to `garage` than to `energy` [000 sec 3.1]; otherwise a wind park, which makes energy, speaks for parking.


_WORDS = """
    accenting accounting acting advertising alerting appalling assigning awakening awarding backing banging
    bargaining bathing batting batwing bearing beating bedding beginning belching bickering bidding binding
    blackening blaring blending blessing blooming blowing bluestocking boarding boating bodybuilding boiling bombing
    booking bootlegging borrowing bouncing bowstring bracing breaking breathing breeding bricklaying briefing
    bringing broadcasting broadening brooding brushing building burning buying calving camping caning carping
    carving catching ceiling centering chattering cheering christening clamoring clangoring clapping cleaning
    cleansing clearing clerking clocking closing clothing clowning coaching coating coming communicating commuting
    compiling composing compounding conditioning cooking cooling coping counseling counting coupling cowling
    cracking creaking croaking crossing cushioning cutting dancing daring darling dawning dealing debunking
    deepening defining desynchronizing detecting diagnosing diving dodging doweling drafting drawing drinking
    drugging ducking dwelling dyeing eating ebbing embracing ending engineering equipping evening exclaiming
    exercising facing faltering farming feeding feeling fencing fielding fighting figuring filing filling filming
    financing finding fingering fingerprinting finishing firing fishing fixing flashing fledgling flooring flowering
    flowing focusing following footing foraging foreboding forecasting forwarding fostering founding framing
    freezing gambling gardening gassing gathering gelding giving gleaming golfing grading graining grappling
    grasping grating greeting grinding grinning grouping growing growling grumbling guessing gulping hamming
    handling handshaking handwriting happening hatching heading healing hearing heating heaving hiding hissing
    holding hollering housebreaking housekeeping housing howling hugging humming hunting imaging impinging indexing
    inkling inning integrating interpreting investigating jabbing jerking journeying keeping killing kipling kissing
    knocking landing landscaping lashing launching laundering laying leaping learning leavening leaving lecturing
    lending lengthening lessening lettering licking lighting lightning liking living loading lodging logging longing
    looking making malingering manufacturing marbleizing marching marketing marking masking mating matting meaning
    measuring meddling meeting melting merchandising merging merrymaking microphoning mingling mining misgiving
    mistaking misunderstanding mixing molding moneymaking monitoring morning murmuring musing muttering narrowing
    nestling nothing numbering nursing offering offspring opening ordering outing overeating pacing packaging
    packing paging painting paneling panting parking parting passing pealing pelting petting philosophizing phrasing
    picturing pinning pitching planning planting playacting playing plodding plowing plumbing popping pounding
    preaching pressing pricing priming primping printing proceeding processing programming publishing pulling
    purging pushing quadrupling questioning quickening racing railing raising rallying rating rationing rattling
    reading rearing reasoning rebuilding reckoning reclining recording reducing refocusing refueling rehearing
    rejoicing reliving rendering replacing reporting retailing retraining ringing ripening roaring roleplaying
    rooting ruling running rushing rustling sailing sampling sapling sassing saving schooling scoffing scouring
    scouting scraping screaming screeching scrubbing sealing seedling selling sending sensing setting severing
    sewing shading shaking shaping shaving shielding shining shipbuilding shipping shirking shivering shoestring
    shooting shopping shouting showing shrieking shuffling siding sightseeing signaling singing sinking sinning
    sitting skimming skulking sleeping slinging sloganeering slowing smiling smoking sniveling snoring soaking
    softening soldiering somersaulting spacing speaking spelling spending splicing sprawling spraying spring
    sprinkling sputtering squatting staining standing starting stealing stewing stiffening stirring stocking
    straining stretching string striving stumping suffering supporting surveying swathing swearing sweeping swelling
    swimming switching talking tampering tapping teaching teasing tending tenting testing thanksgiving thawing
    thieving thinking threshing throbbing thumping tightening timing toweling tracing trading training trampling
    transmitting trapping trembling trimming trucking tubing tumbling tuning turning twinkling twisting typewriting
    typing underling understanding undertaking undoing unfolding unloading uplifting uprising urging vacationing
    vaccinating vending vomiting voting wailing waiting waning warehousing warmongering warning washing watching
    waterproofing waxing weakening weaning wedding weeping weighting wetting whipping whirring whistling willing
    winning wishing withholding woodgraining wording wrestling writing wrongdoing wyoming yearning yelling yelping
    zoning
"""

ING_NOUNS = frozenset(_WORDS.split())


LONGEST_WORD = 40
"""Longer runs of letters are markup, keys or encoded data, not words."""

STOP_WORDS = frozenset(
    """
    a about above after again against all also although am among an and another any anyone anything are around as
    at be became because become becomes been before being below between both but by can cannot could did do does
    doing done down during each either else etc even ever every few for from further get gets had has have having
    he hence her here hers herself him himself his how however i if in into is it its itself just least less many
    may me might mine more most much must my myself neither no nor not nothing now of off often on once one only
    onto or other others otherwise ought our ours ourselves out over own per perhaps quite rather same several
    shall she should since so some somebody someone something still such than that the their theirs them
    themselves then there thereby therefore these they this those though through throughout thus to together too
    toward towards under until up upon us used using usually various very via was we well were what whatever when
    where whereas whether which while who whoever whole whom whose why will with within without would yet you your
    yours yourself yourselves don didn doesn isn wasn weren aren couldn wouldn shouldn hasn haven hadn won ll ve
    re
    """.split()  # noqa: SIM905 - a list of three hundred quoted words is hard to read
)
"""English words that join others and name nothing."""

_WORD = re.compile(r"[a-z0-9]+")
_MARK = re.compile(r"[\u0300-\u036f]+")


def raw_words(text: str) -> list[str]:
    """All runs of Latin letters and digits in lower case, accents folded away.

    >>> raw_words("Two cafés, don't-go")
    ['two', 'cafes', 'don', 't', 'go']
    """
    return _WORD.findall(fold(text).lower())


def fold(text: str) -> str:
    """Text without accents and compatibility forms, so that `café` and `cafe` are one word."""
    if text.isascii():
        return text
    return _MARK.sub("", unicodedata.normalize("NFKD", text))


def is_word(word: str) -> bool:
    """Whether a raw word counts: not a stop word, not a lone letter, not a key of 64 hex digits."""
    return 1 < len(word) <= LONGEST_WORD and word not in STOP_WORDS


def stem(word: str) -> str:
    """The Porter2 stem of one lower-case word; nouns in -ing with a meaning of their own stay whole.

    >>> stem("parks"), stem("parked"), stem("parkings")
    ('park', 'park', 'parking')
    """
    noun = word[:-1] if word.endswith("ings") else word
    result: str = noun if noun in ING_NOUNS else _stemmer().stemWord(word)
    return result


@lru_cache(maxsize=65_536)
def tokens(phrase: str) -> tuple[str, ...]:
    """The stems of a term: identifiers split, stop words out.

    >>> tokens("parkingSpace_occupied")
    ('parking', 'space', 'occupi')
    """
    return tuple(stem(word) for part in split_term(phrase) for word in raw_words(part) if is_word(word))


_local = threading.local()


def _stemmer() -> Stemmer.Stemmer:
    # A stemmer keeps a cache that threads must not share.
    if not hasattr(_local, "stemmer"):
        _local.stemmer = Stemmer.Stemmer("english")
    return _local.stemmer
