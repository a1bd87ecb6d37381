"""Football matches and historic events as RDF, in the vocabularies of two sources [002 sec 6].

The paper used events of DBpedia and Freebase, which are not available. These are real events too: 49,520 international
football matches and 9,125 historic events of Wikidata. Two sources describe them, each with several editors who name
types, properties and values in their own way: one as Wikipedia's info boxes do, the other as Freebase does.

Every statement is labelled with its meanings, so the truth is known by construction: an event is relevant if its
statements have the meanings of all statements of the subscription.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final, TypeAlias

from likewise.errors import MissingError

Meanings: TypeAlias = frozenset[str]
NOTHING: Final[Meanings] = frozenset()

BASE: Final = "http://example.org/"
TYPE: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
FIRST_SOURCE: Final = 20_000
"""The number of events of the first source, as of the paper's Wikipedia source; the second source has the rest."""

KINGDOM: Final = frozenset({"England", "Scotland", "Wales", "Northern Ireland"})
SOUTH_AMERICA: Final = frozenset((
    "Argentina", "Bolivia", "Brazil", "Chile", "Colombia", "Ecuador", "Guyana", "Paraguay", "Peru", "Suriname",
    "Uruguay", "Venezuela",
))  # fmt: skip
EUROPE: Final = KINGDOM | frozenset(
    """Albania,Alderney,Andorra,Armenia,Austria,Azerbaijan,Belarus,Belgium,Bohemia,Bohemia and Moravia,
    Bosnia and Herzegovina,Bulgaria,Croatia,Cyprus,Czech Republic,Czechoslovakia,Denmark,Estonia,FR Yugoslavia,
    Faroe Islands,Finland,France,Georgia,German DR,Germany,Gibraltar,Greece,Guernsey,Hungary,Iceland,Ireland,
    Irish Free State,Isle of Man,Italy,Jersey,Kosovo,Latvia,Liechtenstein,Lithuania,Luxembourg,Malta,Moldova,Monaco,
    Montenegro,Netherlands,North Macedonia,Northern Cyprus,Norway,Poland,Portugal,Republic of Ireland,Romania,Russia,
    Saarland,San Marino,Serbia,Serbia and Montenegro,Slovakia,Slovenia,Soviet Union,Spain,Sweden,Switzerland,Turkey,
    Ukraine,Yugoslavia,Éire""".replace("\n    ", "").split(",")
)
"""As in EuroVoc's `7206 Europe`, with former names."""


@dataclass(frozen=True, slots=True)
class WorldStatement:
    """Property and object in the words of a source, and their meanings."""

    property: str
    object: str
    means: Meanings = NOTHING
    language: str = ""
    """Set for literals; an object without one is a resource."""


@dataclass(frozen=True, slots=True)
class WorldEvent:
    """An event in the words of one editor."""

    id: str
    statements: tuple[WorldStatement, ...]

    def answers(self, wanted: Sequence[str]) -> bool:
        """Whether each of the meanings is in some statement."""
        meant = frozenset().union(*(statement.means for statement in self.statements))
        return meant.issuperset(wanted)


@dataclass(frozen=True, slots=True)
class MatchEditor:
    """How one editor describes a football match: names of properties, and forms of values."""

    types: tuple[str, ...]
    friendly: str
    teams: tuple[str, str]
    city: str
    country: str
    """Empty if this editor omits the country."""
    competition: str
    team_form: str = "{}"
    city_form: str = "{city}"
    more: tuple[str, ...] = ()
    """More properties of this editor, which no subscription uses."""


@dataclass(frozen=True, slots=True)
class HistoryEditor:
    """How one editor describes a historic event."""

    types: tuple[str, ...]
    place: str
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EventSource:
    """A source of events and its editors."""

    name: str
    matches: tuple[MatchEditor, ...]
    history: tuple[HistoryEditor, ...]


ENCYCLOPAEDIA: Final = EventSource(
    "encyclopaedia",
    (
        MatchEditor(("Event", "SportsEvent", "FootballMatch"), "Friendly", ("team", "team"), "stadiumCity", "",
                    "competition", "{} national football team", "{city}",
                    ("name", "label", "date", "year", "goals", "subject", "winner")),
        MatchEditor(("Event", "FootballMatch"), "InternationalFriendly", ("homeTeam", "awayTeam"), "location",
                    "location", "tournament", "{} national football team", "{city}, {country}",
                    ("title", "label", "matchDate", "homeGoals", "awayGoals", "subject")),
        MatchEditor(("Event", "SocietalEvent", "FootballMatch"), "FriendlyMatch", ("team", "team"), "city", "country",
                    "event", "{}", "{city}", ("name", "label", "dateOfMatch", "yearOfMatch", "score", "host")),
        MatchEditor(("Event", "FootballMatch", "InternationalFootballMatch"), "ExhibitionMatch",
                    ("nationalTeam", "nationalTeam"), "venue", "country", "cup", "{}", "{city}",
                    ("title", "label", "date", "finalScore", "winner", "subject")),
    ),
    (
        HistoryEditor(("Event", "SocietalEvent", "{kind}"), "place", ("name", "label", "date", "year", "subject")),
        HistoryEditor(("Event", "MilitaryConflict", "{kind}"), "location", ("conflict", "label", "date", "subject")),
        HistoryEditor(("Event", "HistoricEvent", "{kind}"), "site", ("title", "label", "dateOfEvent", "century")),
    ),
)  # fmt: skip
"""Names as in Wikipedia's info boxes."""

DATABASE: Final = EventSource(
    "database",
    (
        MatchEditor(("SoccerMatch", "SportingEvent", "Event"), "FriendlyGame", ("contestant", "contestant"),
                    "venueCity", "venueCountry", "championship", "{}", "{city}",
                    ("topicName", "startDate", "endDate", "homeTeamGoals", "awayTeamGoals", "champion")),
        MatchEditor(("SoccerGame", "Event"), "ExhibitionGame", ("club", "club"), "eventLocation", "eventLocation",
                    "league", "{} national soccer team", "{city}",
                    ("topicName", "startDate", "season", "result", "victor")),
        MatchEditor(("FootballGame", "CompetitiveEvent", "Event"), "FriendlyCompetition",
                    ("competitor", "competitor"), "area", "", "includedInEvent", "{} national team",
                    "{city}, {country}", ("alias", "startDate", "points", "previousInSeries")),
    ),
    (
        HistoryEditor(("Event", "{kind}"), "eventLocation", ("topicName", "startDate", "endDate")),
        HistoryEditor(("Event", "Conflict", "{kind}"), "area", ("alias", "startDate", "includedInEvent")),
    ),
)  # fmt: skip
"""Names as in Freebase, without the paper's `Football Match`."""

SOURCES: Final = (ENCYCLOPAEDIA, DATABASE)

_KIND = re.compile(
    r"\b(battle|siege|capture|raid|skirmish|bombardment|bombing|invasion|conquest|revolt|rebellion|uprising|mutiny|"
    r"coronation|massacre|blockade|landing|offensive|campaign|operation|conference|assassination|attack|fall|sack|"
    r"action|incident|expedition|defense|liberation|war)s?\b",
    re.IGNORECASE,
)
_PLACE = re.compile(r"\b(?:of|at|on|in) (?:the )?([A-ZÀ-Þ].*)")
_BRACKET = re.compile(r"\s*\([^)]*\)|,.*$")
_UNNAMED = re.compile(r"[\s/#<>\"{}|^`\\]+")
"""Characters that are not allowed in the last part of an IRI."""


def read_matches(data: Path) -> Iterator[Mapping[str, str]]:
    """The football matches of the data folder."""
    path = data / "events" / "football-results.csv"
    if not path.is_file():
        raise MissingError(f"no football results at {path}", hint="set LIKEWISE_DATA to the folder of the data sets")
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def read_history(data: Path) -> list[Mapping[str, str]]:
    """The historic events of the data folder."""
    path = data / "events" / "wikidata_historicEvents.json"
    if not path.is_file():
        raise MissingError(f"no historic events at {path}", hint="set LIKEWISE_DATA to the folder of the data sets")
    records: list[Mapping[str, str]] = json.loads(path.read_text(encoding="utf-8"))
    return records


def world_events(data: Path, *, seed: int = 1, share: float = 1.0) -> dict[str, list[WorldEvent]]:
    """Both event sets by the names of their sources; no event is in both."""
    chance = Random(seed)
    facts: list[Mapping[str, str]] = [*read_matches(data), *read_history(data)]
    chance.shuffle(facts)
    first = int(FIRST_SOURCE * share)
    parts = (facts[:first], facts[first : int(len(facts) * share)])
    return {
        source.name: [
            write_down(fact, f"{source.name}/{number}", source, chance=chance) for number, fact in enumerate(part)
        ]
        for source, part in zip(SOURCES, parts, strict=True)
    }


def write_down(facts: Mapping[str, str], name: str, source: EventSource, *, chance: Random) -> WorldEvent:
    """One event in the words of a random editor of the source."""
    if "label" in facts:
        statements = _history(facts, chance.choice(source.history))
    else:
        statements = _match(facts, chance.choice(source.matches))
    return WorldEvent(BASE + name, tuple(statements))


def _match(facts: Mapping[str, str], editor: MatchEditor) -> Iterator[WorldStatement]:
    for kind in editor.types:
        means = {"an event"} | ({"a football match"} if re.search("Football|Soccer", kind) else set())
        yield WorldStatement("type", kind, frozenset(means))
    if facts["tournament"] == "Friendly":
        yield WorldStatement("type", editor.friendly, frozenset({"a friendly", "an event"}))
    else:
        yield WorldStatement(editor.competition, facts["tournament"])
    for team, prop in zip((facts["home_team"], facts["away_team"]), editor.teams, strict=True):
        yield WorldStatement(prop, editor.team_form.format(team), _team(team))
    city, country = facts["city"], _country(facts)
    yield WorldStatement(editor.city, editor.city_form.format(city=city, country=country), _where(city, country))
    if editor.country:
        yield WorldStatement(editor.country, country, _where("", country))
    values = _match_values(facts)
    yield from _more(editor.more, values)


def _history(facts: Mapping[str, str], editor: HistoryEditor) -> Iterator[WorldStatement]:
    kind = _KIND.search(facts["label"])
    for form in editor.types:
        yield WorldStatement(
            "type", form.format(kind=kind[1].capitalize() if kind else "Incident"), frozenset({"an event"})
        )
    where = _PLACE.search(facts["label"])
    if where:
        place = _BRACKET.sub("", where[1])
        yield WorldStatement(editor.place, place, frozenset({f"in {place}"}))
    year = facts["date"].lstrip("-")[:4]
    values = {
        "name": facts["label"],
        "date": facts["date"][:10],
        "year": year,
        "century": f"{int(year) // 100 + 1}th century",
    }
    yield from _more(editor.more, values | {"subject": f"{year} in history", "event": f"wars of {year}"})


def _country(facts: Mapping[str, str]) -> str:
    """The country, with Belfast where it is today; the data have it in Ireland before 1921."""
    return "Northern Ireland" if facts["city"] == "Belfast" else facts["country"]


def _team(team: str) -> Meanings:
    return frozenset({f"{team} plays"} | ({"South America plays"} if team in SOUTH_AMERICA else set()))


def _where(city: str, country: str) -> Meanings:
    wider = {
        "in United Kingdom": country in KINGDOM,
        "in Europe": country in EUROPE,
        f"in {city}": bool(city),
        f"in {country}": True,
    }
    return frozenset(name for name, holds in wider.items() if holds)


def _match_values(facts: Mapping[str, str]) -> dict[str, str]:
    home, away = facts["home_score"], facts["away_score"]
    winner = "draw" if home == away else facts["home_team" if _number(home) > _number(away) else "away_team"]
    year = facts["date"][:4]
    return {
        "name": f"{facts['home_team']} v {facts['away_team']}",
        "date": facts["date"],
        "year": year,
        "home": home,
        "away": away,
        "score": f"{home}-{away}",
        "winner": winner,
        "host": facts["country"],
        "subject": f"{year} in association football",
        "event": facts["tournament"],
    }


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0


_VALUE_OF: Final = {
    "name": "name label title conflict topicName alias previousInSeries",
    "date": "date matchDate dateOfMatch dateOfEvent startDate endDate",
    "year": "year yearOfMatch season",
    "home": "homeGoals homeTeamGoals",
    "away": "awayGoals awayTeamGoals",
    "score": "score finalScore goals result points",
    "winner": "winner champion victor",
    "host": "host",
    "subject": "subject",
    "event": "includedInEvent",
    "century": "century",
}
"""The fact of each property of an editor."""
_FACT: Final = {prop: fact for fact, props in _VALUE_OF.items() for prop in props.split()}


def _more(properties: Sequence[str], values: Mapping[str, str]) -> Iterator[WorldStatement]:
    for prop in properties:
        yield WorldStatement(prop, values[_FACT[prop]], language="en")
        if prop == "label":
            yield WorldStatement(prop, values["name"], language="fr")


def write_ntriples(events: Sequence[WorldEvent], path: Path) -> Path:
    """The events as N-Triples, one subject each."""
    with path.open("w", encoding="utf-8") as file:
        for event in events:
            file.writelines(_triple(event.id, statement) for statement in event.statements)
    return path


def _triple(subject: str, statement: WorldStatement) -> str:
    prop = TYPE if statement.property == "type" else f"{BASE}ontology/{statement.property}"
    if statement.language:
        text = statement.object.replace("\\", "\\\\").replace('"', '\\"')
        return f'<{subject}> <{prop}> "{text}"@{statement.language} .\n'
    return f"<{subject}> <{prop}> <{BASE}resource/{_UNNAMED.sub('_', statement.object)}> .\n"
