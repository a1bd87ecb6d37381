"""Plural to singular, one English word at a time [002 sec 6.1].

Rules decide by the ending; the tables hold only what the rules get wrong. A word that is not a noun
or is already singular must come out unchanged, so every table errs on the side of leaving words alone.
"""

from __future__ import annotations

__all__ = ["singular"]


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split(":") for pair in text.split())


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_IRREGULAR = _pairs(
    """
    people:person children:child grandchildren:grandchild men:man women:woman feet:foot teeth:tooth geese:goose
    mice:mouse lice:louse oxen:ox policemen:policeman policewomen:policewoman firemen:fireman chairmen:chairman
    sportsmen:sportsman sportswomen:sportswoman fishermen:fisherman businessmen:businessman gentlemen:gentleman
    salesmen:salesman craftsmen:craftsman congressmen:congressman spokesmen:spokesman workmen:workman
    knives:knife wives:wife midwives:midwife housewives:housewife lives:life leaves:leaf shelves:shelf wolves:wolf
    halves:half calves:calf elves:elf loaves:loaf thieves:thief scarves:scarf selves:self hooves:hoof wharves:wharf
    sheaves:sheaf bookshelves:bookshelf
    criteria:criterion phenomena:phenomenon automata:automaton bacteria:bacterium strata:stratum errata:erratum
    curricula:curriculum memoranda:memorandum symposia:symposium stadia:stadium aquaria:aquarium spectra:spectrum
    alumni:alumnus cacti:cactus fungi:fungus nuclei:nucleus radii:radius stimuli:stimulus foci:focus
    larvae:larva algae:alga antennae:antenna formulae:formula vertebrae:vertebra bureaux:bureau plateaux:plateau
    indices:index matrices:matrix vertices:vertex vortices:vortex appendices:appendix axes:axis oases:oasis
    crises:crisis emphases:emphasis ellipses:ellipsis diagnoses:diagnosis prognoses:prognosis neuroses:neurosis
    psychoses:psychosis testes:testis
    gases:gas biases:bias atlases:atlas canvases:canvas aliases:alias pancreases:pancreas christmases:christmas
    lenses:lens irises:iris trellises:trellis metropolises:metropolis quizzes:quiz whizzes:whiz waltzes:waltz
    blitzes:blitz quartzes:quartz topazes:topaz
    movies:movie cookies:cookie zombies:zombie calories:calorie rookies:rookie prairies:prairie selfies:selfie
    genies:genie pixies:pixie brownies:brownie smoothies:smoothie hoodies:hoodie eyries:eyrie collies:collie
    caches:cache headaches:headache toothaches:toothache aches:ache niches:niche avalanches:avalanche
    moustaches:moustache mustaches:mustache cliches:cliche quiches:quiche creches:creche brioches:brioche
    menus:menu gurus:guru emus:emu tofus:tofu bayous:bayou caribous:caribou thous:thou haikus:haiku
    taxis:taxi skis:ski kiwis:kiwi safaris:safari bikinis:bikini rabbis:rabbi alibis:alibi khakis:khaki wifis:wifi
    ids:id tvs:tv cds:cd pcs:pc evs:ev ads:ad
    """
)

# Singular, both numbers alike, or no noun at all, though the ending says plural.
_INVARIANT = _words(
    """
    series species news gas bus lens means headquarters crossroads barracks gallows chassis corps debris rendezvous
    alas atlas canvas christmas whereas bias alias pancreas texas kansas arkansas dallas vegas honduras bahamas lucas
    thomas nicholas douglas jonas judas overseas pajamas pyjamas perhaps always besides sometimes afterwards towards
    upwards downwards forwards backwards nowadays indoors outdoors upstairs downstairs
    chaos cosmos laos kudos ethos pathos asbestos barbados carlos marcos mars
    athens brussels wales netherlands philippines maldives seychelles angeles mercedes james charles hughes jones
    naples cannes nantes reims rennes
    this thus plus does goes hers ours yours theirs themselves ourselves yourselves
    physics mathematics economics politics electronics logistics gymnastics robotics ethics genetics linguistics
    acoustics optics thermodynamics dynamics aerobics hydraulics informatics analytics semantics
    athletics astrophysics acrobatics phonetics olympics
    diabetes herpes rabies scabies mumps measles billiards clothes odds remains whereabouts binoculars biceps triceps
    quadriceps rhinoceros fracas massachusetts moses holmes pisces
    """
)

# "-uses" is "-us" + "es" (viruses) except where the singular ends in "-use".
_USE = _words("uses reuses misuses fuses excuses abuses refuses muses recluses ruses accuses hypotenuses")
# "-oes" is "-o" + "es" (tomatoes) except where the singular ends in "-oe".
_OE = _words("shoes horseshoes snowshoes toes tiptoes canoes oboes hoes foes floes aloes throes roes")
_SIBILANT = ("ches", "shes", "sses", "xes", "zzes")
_KEPT = ("ss", "us", "is")


def singular(word: str) -> str:
    """The singular of a lower-case noun; any other word as it is.

    >>> [singular(word) for word in ("buses", "batteries", "gas", "status", "people", "houses")]
    ['bus', 'battery', 'gas', 'status', 'person', 'house']
    """
    known = _IRREGULAR.get(word)
    if known is not None:
        return known
    if len(word) < 4 or not word.endswith("s") or word in _INVARIANT or word.endswith(_KEPT):
        return word
    return _without_es(word) if word.endswith("es") else word[:-1]


def _without_es(word: str) -> str:
    """Words in "-es": which of "s" and "es" is the ending, or is it "-is" that became "-es"."""
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-3] + "y"
    if word.endswith("ses") and not word.endswith("sses"):
        return _without_ses(word)
    if word.endswith("oes"):
        return word[:-1] if word in _OE else word[:-2]
    return word[:-2] if word.endswith(_SIBILANT) else word[:-1]


def _without_ses(word: str) -> str:
    if word.endswith(("yses", "heses")):
        return word[:-2] + "is"
    if word.endswith("uses") and not (word.endswith(("ouses", "auses")) or word in _USE):
        return word[:-2]
    return word[:-1]
