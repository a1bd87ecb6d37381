"""Every subscription and event printed in the papers is read as printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from likewise.language import Composite, Operator, Predicate, Profile, parse, parse_event, parse_subscription

FILE = Path(__file__).parents[2] / "examples" / "subscriptions" / "papers.lw"


def same(attribute: str, value: str) -> Predicate:
    return Predicate(attribute, Operator.EQ, value)


def like(attribute: str, value: str) -> Predicate:
    return Predicate(attribute, Operator.EQ, value, True, True)


def test_the_file_of_examples_is_read() -> None:
    found = parse(FILE.read_text(encoding="utf-8"), source=FILE.name)
    assert len(found) == 41
    assert {"energy-usage-thematic", "table-3-7", "parking", "p_temp", "E_T", "CE"} <= {
        subscription.name for subscription in found
    }


def test_000_section_3_4_with_a_brace_too_many() -> None:
    text = "{power, computers},\n{type= increased energy usage event~,\ndevice~= laptop~, office= room 112}}"
    expected = (
        Predicate("type", Operator.EQ, "increased energy usage event", False, True),
        like("device", "laptop"),
        same("office", "room 112"),
    )
    assert parse_subscription(text).body == Profile(expected, ("power", "computers"))


def test_000_section_5_2_3_with_colons() -> None:
    text = "{type~: increased energy consumption event~,\ndevice~: laptop~, floor~: ground floor~}"
    expected = (
        like("type", "increased energy consumption event"),
        like("device", "laptop"),
        like("floor", "ground floor"),
    )
    assert parse_subscription(text).body == Profile(expected)


def test_000_theme_tags_in_typographic_quotes() -> None:
    assert parse_subscription("{‘girl’, ‘football’, ‘outdoor’} {type= x}").body.theme == ("girl", "football", "outdoor")


def test_002_statements_are_approximate_on_both_sides() -> None:
    text = 'event type "Football Match"\nevent team "Barcelona”'
    assert parse_subscription(text).body == Profile((like("type", "Football Match"), like("team", "Barcelona")))


def test_002_a_blank_line_parts_two_subscriptions() -> None:
    text = 'event type "Event"\nevent place "Wembley\nStadium"\n\nevent type “Charity” threshold 0.4'
    first, second = parse(text)
    assert first.body == Profile((like("type", "Event"), like("place", "Wembley Stadium")))
    assert (second.body, second.options.threshold) == (Profile((like("type", "Charity"),)), 0.4)


def test_004_section_8_3_with_blanks_around_the_tilde() -> None:
    text = "{type ~ = parking occupied event ~, country ~ = ireland ~}"
    assert parse_subscription(text).body == Profile(
        (like("type", "parking occupied event"), like("country", "ireland"))
    )


@pytest.mark.parametrize(
    ("text", "approximate"), [("{empty parking slot > 0}", False), ("{empty parking slot~ > 0}", True)]
)
def test_004_section_3(text: str, approximate: bool) -> None:
    expected = Predicate("empty parking slot", Operator.GT, 0, approximate)
    assert parse_subscription(text).body == Profile((expected,))


def test_003_a_profile_names_itself() -> None:
    found = parse_subscription("p_temp = profile(temperature < 10°C)")
    assert (found.name, found.body) == ("p_temp", Profile((Predicate("temperature", Operator.LT, 10),)))


def test_003_a_composite_names_itself() -> None:
    found = parse_subscription("E_T = (E1; E2)30min")
    assert found.name == "E_T"
    assert isinstance(found.body, Composite)


EVENTS = {
    # 000 section 3.3, with the brace too many
    "{energy, appliances, building},\n{type: increased energy consumption event,\nmeasurement unit: kilowatt hour,\n"
    "device: computer, office: room 112}}": 4,
    # 000 section 3
    "{type: increased energy consumption event,\nmeasurement unit: kilowatt hour,\n"
    "device: computer, office: room 112}": 4,
    # 000 section 5.2.1 and 5.2.2
    "{type: increased energy consumption event,\nmeasurement unit: kilowatt hour, device: laptop,\ndesk: desk 112c, "
    "room: room 112, zone: building,\ncity: Galway, country: Ireland, continent: Europe}": 9,
    "{type: increased energy consumption event,\nmeasurement unit: kilowatt hour, device: laptop,\ndesk: desk 112c, "
    "room: room 112, zone: building,\nurban area: Galway, country: Eire,\ncontinent: European countries}": 9,
    # 004 sections 3, 8.1 and 8.2
    "{parking vacancy = 3}": 1,
    "{type = parking occupied event, Country = Ireland}": 2,
    "{scale = none, suburb = galway, continent = europe,\ntype = vehicle park occupied event, country = eire}": 5,
    # 003 section 2.2
    "e_laboratory = event(room_number = 273, temperature = 35°C, timestamp = 14:22:03.456)": 3,
}


@pytest.mark.parametrize(("text", "size"), EVENTS.items())
def test_events_as_printed(text: str, size: int) -> None:
    assert len(parse_event(text).tuples) == size


def test_the_thematic_event_keeps_theme_and_order() -> None:
    event = parse_event(next(iter(EVENTS)))
    assert event.theme == ("energy", "appliances", "building")
    assert event.tuples[-1] == ("office", "room 112")


def test_a_number_with_a_unit_stays_text_in_an_event() -> None:
    event = parse_event(list(EVENTS)[-1])
    assert event.id == "e_laboratory"
    assert event.tuples == (("room_number", 273), ("temperature", "35°C"), ("timestamp", "14:22:03.456"))
