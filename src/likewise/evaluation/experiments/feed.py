"""A building's feed: three makers name its points in their own ways, and a facility manager has eight wishes.

The words were written before any score was seen. `Matcher` has its default settings: nothing was tuned on this feed.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from io import BytesIO
from typing import Final

from likewise.errors import LikewiseError
from likewise.evaluation.experiment import Experiment, ExperimentReport, ExperimentSettings, Row
from likewise.events import Event, Value, read_events
from likewise.language import Profile, parse
from likewise.matching import Background, Matcher
from likewise.semantics import Manifest, Measure, list_spaces, measure

WISHES: Final = """\
hot-rooms: {measurement~ = room temperature~, value~ > 26}
stuffy: {measurement~ = carbon dioxide concentration~, value~ > 1000}
supply-air: {measurement~ = supply air temperature~}
electricity: {measurement~ = electricity consumption~}
in-use: {measurement~ = occupancy~}
dirty-filter: {alarm~ = filter dirty~}
leak: {alarm~ = water leak~}
stuck-lift: {alarm~ = lift fault~}
"""


@dataclass(frozen=True, slots=True)
class FeedPoint:
    """A measured point or an alarm: its name, its name by each maker, and the range of its values."""

    name: str
    names: tuple[str, str, str]
    low: float = 0.0
    high: float = 0.0


MEASURED: Final = (
    FeedPoint("room temperature", ("zone temperature", "RmTmp", "spaceTemperature"), 18, 32),
    FeedPoint("room temperature setpoint", ("zone temperature setpoint", "RmTmpSp", "spaceTempSetpoint"), 18, 32),
    FeedPoint("supply air temperature", ("supply air temperature", "SAT", "dischargeAirTemp"), 12, 30),
    FeedPoint("return air temperature", ("return air temperature", "RAT", "returnAirTemp"), 18, 30),
    FeedPoint("outside air temperature", ("outside air temperature", "OAT", "outdoorTemperature"), -5, 35),
    FeedPoint("hot water temperature", ("hot water supply temperature", "HWST", "hotWaterTemp"), 40, 80),
    FeedPoint("humidity", ("relative humidity", "RmRH", "spaceHumidity"), 20, 80),
    FeedPoint("carbon dioxide", ("carbon dioxide level", "CO2", "co2Concentration"), 400, 1600),
    FeedPoint("particles", ("fine dust", "PM2.5", "particulateMatter"), 0, 80),
    FeedPoint("electricity", ("electric energy used", "kWh", "powerConsumption"), 0, 90),
    FeedPoint("gas", ("gas consumption", "GasVol", "gasUsage"), 0, 90),
    FeedPoint("water", ("cold water consumption", "WtrVol", "waterUsage"), 0, 90),
    FeedPoint("heat", ("heat energy used", "HtgEnergy", "heatingEnergy"), 0, 90),
    FeedPoint("occupancy", ("presence", "Occ", "roomOccupied"), 0, 1),
    FeedPoint("people", ("visitor count", "PplCnt", "footfall"), 0, 40),
    FeedPoint("light", ("light level", "Lux", "illuminance"), 0, 900),
    FeedPoint("fan speed", ("supply fan speed", "SFSpd", "fanSpeed"), 0, 100),
    FeedPoint("valve", ("cooling valve position", "ClgVlv", "coolingValve"), 0, 100),
)
RAISED: Final = (
    FeedPoint("filter dirty", ("filter clogged", "FiltDirty", "dirtyFilter")),
    FeedPoint("filter replaced", ("filter replaced", "FiltChgd", "filterChanged")),
    FeedPoint("water leak", ("water leakage detected", "WtrLeak", "leakDetected")),
    FeedPoint("water pressure low", ("low water pressure", "WtrPresLo", "waterPressureLow")),
    FeedPoint("lift fault", ("elevator malfunction", "LiftFlt", "elevatorFault")),
    FeedPoint("lift maintenance", ("elevator inspection due", "LiftMaint", "elevatorService")),
    FeedPoint("fire alarm", ("fire alarm", "FireAlm", "smokeDetected")),
    FeedPoint("fan fault", ("fan failure", "FanFlt", "fanFault")),
    FeedPoint("door forced", ("door forced open", "DrForced", "forcedEntry")),
    FeedPoint("freezer warm", ("freezer too warm", "FrzHiTmp", "freezerHighTemperature")),
)
_MEASURED_AS: Final = (("measured quantity", "value"), ("point", "val"), ("metric", "reading"))
_RAISED_AS: Final = (("alarm", "status"), ("alm", "sts"), ("alertType", "state"))
MAKERS: Final = ("descriptions", "raw labels", "identifiers")
"""The styles of the three makers: words, abbreviations, and names in code."""
_PLACES: Final = ("place", "loc", "location")

RELEVANT: Final = {
    "hot-rooms": ("room temperature", 26.0),
    "stuffy": ("carbon dioxide", 1000.0),
    "supply-air": ("supply air temperature", None),
    "electricity": ("electricity", None),
    "in-use": ("occupancy", None),
    "dirty-filter": ("filter dirty", None),
    "leak": ("water leak", None),
    "stuck-lift": ("lift fault", None),
}
"""The point of each subscription, and its lower limit."""


@dataclass(frozen=True, slots=True)
class PointReport:
    """An event and its true point."""

    event: Event
    point: str
    number: float


def feed(count: int = 2000, *, seed: int = 1) -> list[PointReport]:
    """`count` events, every point of every maker in turn."""
    chance = random.Random(seed)
    ways = [(point, maker) for point in (*MEASURED, *RAISED) for maker in range(3)]
    return [_report(chance, number, *ways[number % len(ways)]) for number in range(count)]


def _report(chance: random.Random, number: int, point: FeedPoint, maker: int) -> PointReport:
    measured = point in MEASURED
    name, other = (_MEASURED_AS if measured else _RAISED_AS)[maker]
    reading = round(chance.uniform(point.low, point.high), 1)
    value: Value = reading if measured else chance.choice(("active", "new"))
    tuples = ((name, point.names[maker]), (other, value), (_PLACES[maker], f"room {chance.randrange(100, 140)}"))
    return PointReport(Event(f"f{number}", tuples), point.name, reading)


def wishes() -> dict[str, Profile]:
    """The eight wishes by their names."""
    return {
        subscription.name: subscription.body for subscription in parse(WISHES) if isinstance(subscription.body, Profile)
    }


def wanted(name: str, report: PointReport) -> bool:
    """Whether an event is relevant to a wish."""
    point, above = RELEVANT[name]
    return report.point == point and (above is None or report.number > above)


def judge(
    reports: Sequence[PointReport], meaning: Measure | None, *, together: bool, background: Background | None = None
) -> list[Row]:
    """Precision, recall and F1 of every wish at its default threshold."""
    events = [report.event for report in reports]
    given = delivered(events, wishes(), meaning, together=together, background=background)
    truth = {name: {report.event.id for report in reports if wanted(name, report)} for name in given}
    rows: list[Row] = [{"wish": name, **figures([ids], [truth[name]])} for name, ids in given.items()]
    mean = {part: sum(float(row[part] or 0) for row in rows) / len(rows) for part in _PARTS}
    return [*rows, {"wish": "mean", **mean}]


def delivered(
    events: Sequence[Event],
    profiles: Mapping[str, Profile],
    meaning: Measure | None,
    *,
    together: bool,
    background: Background | None,
) -> dict[str, set[str]]:
    """The ids of the events that each profile gets, with all profiles in one matcher or one matcher per profile."""
    given: dict[str, set[str]] = {name: set() for name in profiles}
    for group in [profiles] if together else [{name: profile} for name, profile in profiles.items()]:
        matcher = Matcher(meaning, background=background)
        for name, profile in group.items():
            matcher.add(profile, key=name)
        for event, matches in zip(events, matcher.match_batch(events), strict=True):
            for match in matches:
                given[str(match.subscription)].add(event.id)
    return given


def figures(given: Sequence[set[str]], truth: Sequence[set[str]]) -> Row:
    """Precision, recall and F1 over all deliveries."""
    right = sum(len(ids & wanted) for ids, wanted in zip(given, truth, strict=True))
    sent, due = sum(map(len, given)), sum(map(len, truth))
    return {"precision": right / max(1, sent), "recall": right / due, "F1": 2 * right / max(1, sent + due)}


_PARTS: Final = ("precision", "recall", "F1")

HELD_OUT: Final = ("datacentre", "supermarket", "airport", "cityrail", "apartments")
"""Feeds of which nobody has looked at single events, subscriptions or misses; totals of versions were compared."""

LOOKED_AT: Final = (
    "campus",
    "port",
    "ward",
    "coldchain",
    "busdepot",
    "office",
    "factory",
    "home",
    "hotel",
    "smartcity",
    "water",
    "brewery",
    "hospital",
)
"""Feeds of which single misses were read while Likewise was built."""

WRITTEN: Final = (*LOOKED_AT, *HELD_OUT)
"""Feeds that were written to check the default by people who did not know its lists of words, most of them in the words
of three makers. Some constants of the stream's words were chosen on the first two."""


def written(name: str) -> tuple[list[Event], dict[str, Profile], dict[str, set[str]]]:
    """The events, subscriptions and truth of a written feed."""
    folder = files("likewise.evaluation").joinpath("data")
    events = list(read_events(BytesIO(folder.joinpath(f"{name}.jsonl").read_bytes()), format="jsonl"))
    subscriptions = parse(folder.joinpath(f"{name}.lw").read_text(encoding="utf-8"), source=f"{name}.lw")
    profiles = {
        subscription.name: subscription.body for subscription in subscriptions if isinstance(subscription.body, Profile)
    }
    truth: dict[str, set[str]] = {name: set() for name in profiles}
    for line in folder.joinpath(f"{name}.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        event, subscription = line.split("\t")
        truth[subscription].add(event)
    return events, profiles, truth


def judge_written(meaning: Measure) -> ExperimentReport:
    """Precision, recall and F1 on the written feeds, with the background of their first events."""
    rows: list[Row] = []
    for name in WRITTEN:
        events, profiles, truth = written(name)
        for how, together in (("together", True), ("alone", False)):
            sample = Background.of(events)
            given = delivered(events, profiles, meaning, together=together, background=sample)
            found = figures(list(given.values()), [truth[wish] for wish in given])
            seen = "held out" if name in HELD_OUT else "looked at"
            rows.append({"feed": name, "": seen, "subscriptions": how, "events": len(events), **found})
    for seen, how in itertools.product(("looked at", "held out"), ("together", "alone")):
        alike = [row for row in rows if (row[""], row["subscriptions"]) == (seen, how)]
        means = {part: sum(float(row[part] or 0) for row in alike) / len(alike) for part in _PARTS}
        rows.append({"feed": "mean", "": seen, "subscriptions": how, "events": None, **means})
    return ExperimentReport("Feeds written to check the default", rows, ["over all deliveries, with a background"])


def reciprocal_ranks(points: Sequence[FeedPoint], meaning: Measure) -> list[float]:
    """The mean reciprocal rank of a point's own name among all names, for each maker's words."""
    names = [point.name for point in points]
    return [reciprocal_rank(names, [point.names[maker] for point in points], meaning) for maker in range(3)]


def reciprocal_rank(names: Sequence[str], labels: Sequence[str], meaning: Measure) -> float:
    """The mean reciprocal rank of each label's own name among all names; ties share their mean."""
    scores = meaning.matrix(names, labels)
    own = scores.diagonal()
    rank = (scores > own).sum(axis=0) + (1 + (scores == own).sum(axis=0)) / 2
    return float((1 / rank).mean())


def written_points(name: str = "points") -> list[tuple[str, str, str]]:
    """Points of plants with a description and a raw label, written by someone who did not know the lists of words."""
    lines = files("likewise.evaluation").joinpath(f"data/{name}.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return [(name, description, label) for name, description, label in (line.split("\t") for line in lines)]


def ranking(spaces: Sequence[str], settings: ExperimentSettings) -> ExperimentReport:
    """How well points find their names, by the default and by its parts."""
    rows: list[Row] = []
    for name in ("evidence", "sentence", "embedding", "esa"):
        try:
            meaning = measure(name, spaces=spaces)
        except LikewiseError as error:
            settings.say(f"{name} skipped: {error.message}")
            continue
        ranks = dict(zip(MAKERS, reciprocal_ranks((*MEASURED, *RAISED), meaning), strict=True))
        written_ranks = {}
        for points, prefix in (("points", "written"), ("points_of_tags", "tag set")):
            names, descriptions, labels = zip(*written_points(points), strict=True)
            written_ranks[f"{prefix} descriptions"] = reciprocal_rank(names, descriptions, meaning)
            written_ranks[f"{prefix} labels"] = reciprocal_rank(names, labels, meaning)
        rows.append({"measure": name, **ranks, **written_ranks})
    note = "of 28, 64 and 80 names; sentence is the multilingual encoder of the default, embedding is MiniLM"
    return ExperimentReport("Points to names, mean reciprocal rank", rows, [note])


def run(settings: ExperimentSettings) -> list[ExperimentReport]:
    """Every wish at the default threshold, together and alone, without and with a background; points against names."""
    experiment.check(settings)
    spaces = settings.spaces or tuple(str(path) for path, state in list_spaces() if isinstance(state, Manifest))
    meaning = measure("evidence", spaces=spaces)
    reports = feed(600 if settings.quick else 2000)
    notes = [f"{len(reports):,} events, {len(MEASURED) + len(RAISED)} points of three makers"]
    sample = Background.of(report.event for report in reports)
    return [
        *(
            ExperimentReport(
                f"A building's feed, eight wishes, {how}{known}",
                judge(reports, meaning, together=together, background=background),
                notes,
            )
            for known, background in (("", None), (", with a background", sample))
            for how, together in (("together", True), ("alone", False))
        ),
        judge_written(meaning),
        ranking(spaces, settings),
    ]


experiment = Experiment("feed", "A building's feed in the words of three makers, and eight wishes", run)
