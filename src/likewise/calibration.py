"""Every constant that was chosen on data or by judgement, with where it comes from.

Weights of evidence are not here: `likewise train` writes them to `evidence/weights.json`, with their provenance.
Numbers from papers, cache sizes and memory limits are defined where they are used.

"Thematic, seeds 1-3" is the data set of `likewise evaluate matching`; its seeds 4 and 5 had no part in any choice.
"Other domains" are events made from the EuroVoc domains that the thematic data set does not use. "By judgement" means
that nothing was fitted. Some constants are compiled into njit kernels, so this file is part of the
key under which kernels are cached.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# Default thresholds

DEFAULT_THRESHOLD: Final = 0.5
"""Evidence gives probabilities: a match is likelier right than wrong."""

PAPER_THRESHOLDS: Final[Mapping[str, Mapping[str, float]]] = {
    "approximate": {"esa": 0.3, "combined": 0.55, "embedding": 0.7},
    "approximate+contrast": {"esa": 0.01, "combined": 0.2, "embedding": 0.35},
    "clustered": {"esa": 0.25, "combined": 0.55, "embedding": 0.7},
    "hybrid": {"hybrid": 0.7},
    "thematic": {"thematic": 0.35, "combined": 0.55, "thematic-euclidean": 0.2},
    "thematic+contrast": {"thematic": 0.04, "combined": 0.15, "thematic-euclidean": 0.08},
}
"""By approach and measure, the one threshold that is best for all subscriptions. Thematic, seeds 1-3; of the thematic
approach the best without themes, since the best with them (0.5) misses the example of paper 000."""

# Joint probability of a subscription's predicates

MEANT: Final = 0.2
"""How likely an event is meant as a whole if the stream is not known. Other domains: maximum likelihood."""

CHANCE: Final = 0.5
"""How likely an event that is not meant answers a predicate, if the stream is not known. With MEANT."""

MEANT_IN_STREAM: Final = 0.02
"""How likely an event of a known stream is meant. Other domains: highest F1 of single subscriptions among 36
combinations with LEAST_CHANCE."""

LEAST_CHANCE: Final = 0.05
MOST_CHANCE: Final = 0.95
"""Limits of the share of a stream's events that answer a predicate: 256 events are no more exact."""

# Evidence

LIGHT_WEIGHT: Final = 0.25
"""How much a word that adds little (`reading`, `sensor`) counts where words are compared one by one. By judgement."""

SAME_HEAD: Final = 0.5
"""Heads of phrases that mean the same with this probability are taken for the same. By judgement."""

COMMON_SENSE: Final = 0.1
"""A sense of a word counts as common if it has this share of the uses of the most common one. By judgement, on words of
the thematic data set."""

NEAREST: Final = 2.25
NEARER_EVENT: Final = 0.75
NEARER_SUBSCRIPTION: Final = 1.0
"""Bits for a pair of values if no word of the stream is nearer to the event's, and bits against it for each doubling of
the number of words that are nearer to the event's, and to the subscription's. The first is between 2 and 2.5, which had
nearly the same mean F1 on the feeds looked at (0.811, 0.809); 2.5 lost on events made from EuroVoc and WordNet. The
second: of 45 combinations, the highest mean F1 of two feeds written for checking and events made from WordNet (its
relations hidden), IPTC Media Topics and the other domains. The last: of 0.25 to 1.5, the highest mean F1 of ten feeds
looked at."""

OTHER_WORDS: Final = 0.7
"""Words of the stream that are this near to a subscription's term are other words for it, and do not compete with it.
By judgement; on ten feeds looked at, 0.6 did equally well."""

GENERIC_BITS: Final = -2.0
"""The least sum of evidence for a term that says little, such as the attribute `type`. By judgement."""

SAME_ROLE_BITS: Final = 0.0
"""The least sum of evidence for two attributes of one role, such as `room` and `location`: even odds. By judgement."""

FIGURE_BITS: Final = 1.5
"""The least sum of evidence for two attributes that are figures, such as `value` and `percent`. By judgement."""

# Contrast, rank and differing words: adjustments of the papers' measures

CONTRAST_TEMPERATURES: Final[Mapping[str, float]] = {
    "combined": 0.01,
    "embedding": 0.05,
    "esa": 0.005,
    "thematic": 0.005,
}
"""How sharply each measure's scores are contrasted, on the scale of the measure. Thematic, seeds 1-3."""

CONTRAST_TEMPERATURE: Final = 0.02
"""The same for any other measure. By judgement."""

RANK_PATIENCE: Final = 10.0
"""So many nearer terms of the stream halve a score. Thematic, seeds 1-3."""

RANK_SUBSCRIPTION_SHARE: Final = 0.2
"""The subscription side's share of the exponent of a rank. Thematic, seeds 1-3."""

DIFFERING_POWERS: Final[Mapping[str, float]] = {"combined": 0.5, "embedding": 0.75, "esa": 0.25, "thematic": 0.25}
"""How much the words count in which two phrases differ, on the scale of the measure. Thematic, seeds 1-3."""

DIFFERING_POWER: Final = 0.5
"""The same for any other measure. By judgement."""

# Spaces, themes and topics

LENGTH_POWER: Final = 0.25
"""How strongly long concepts are damped. Human judgements of relatedness (docs/spaces.md)."""

STRONGEST_POSTINGS: Final = 1000
"""Postings of a word that ESA compares. Human judgements: as good as all of them, for a tenth of the work."""

THEME_WORDS: Final = 500
"""Words in which a theme is spelt out. Thematic, seeds 1-3; a thousand were no better."""

THEME_TOO_COMMON: Final = 0.25
"""Words of more than this share of all concepts say nothing of a theme. Thematic, seeds 1-3."""

THEME_FLOOR: Final = 0.02
"""What a concept counts that is far from the theme. Thematic, seeds 1-3."""

THEME_SHARPNESS: Final = 2.0
"""The power of a concept's nearness to the theme. Thematic, seeds 1-3."""

TOPICS_OF_SUBSCRIPTIONS: Final = 5
TOPICS_OF_EVENTS: Final = 12
"""Topics of a subscription term and of an event term. Thematic, seeds 1-3: the same F1 with a third of the pairs."""
