"""RDF: one subject is one event, names are normalised, literals keep their type."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import InputError
from likewise.events import BadRecord, Event, read_events, write_events
from likewise.events.formats.ntriples import parse_statement

XSD = "http://www.w3.org/2001/XMLSchema#"
FINAL = """\
<http://dbpedia.org/resource/2010_FIFA_World_Cup_Final> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> \
<http://dbpedia.org/ontology/FootballMatch> .
<http://dbpedia.org/resource/2010_FIFA_World_Cup_Final> <http://dbpedia.org/property/name> \
"2010 FIFA World Cup Final"@en .
<http://dbpedia.org/resource/2010_FIFA_World_Cup_Final> <http://dbpedia.org/property/name> \
"Finale de la Coupe du monde"@fr .
<http://dbpedia.org/resource/2010_FIFA_World_Cup_Final> <http://dbpedia.org/ontology/location> \
<http://dbpedia.org/resource/Johannesburg> .
<http://dbpedia.org/resource/2010_FIFA_World_Cup_Final> <http://dbpedia.org/ontology/location> \
<http://dbpedia.org/resource/FNB_Stadium> .
"""


def read(text: str, format: str) -> list[Event]:
    return list(read_events(io.BytesIO(text.encode()), format=format))


@pytest.mark.parametrize("format", ["ntriples", "turtle"])
def test_example_event_of_the_paper(format: str) -> None:
    """Figure 3 of 002, as in DBpedia; French is dropped, URIs are normalised."""
    (event,) = read(FINAL, format)
    assert event.id == "http://dbpedia.org/resource/2010_FIFA_World_Cup_Final"
    assert event.attributes == {
        "type": ["football match"],
        "name": ["2010 FIFA World Cup Final"],
        "location": ["johannesburg", "fnb stadium"],
    }


@pytest.mark.parametrize("format", ["ntriples", "turtle"])
@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ('"5"^^<{}integer>', 5),
        ('"5"^^<{}unsignedByte>', 5),
        ('"5"^^<{}decimal>', 5.0),
        ('"1.5e3"^^<{}double>', 1500.0),
        ('"true"^^<{}boolean>', True),
        ('"2010-07-11T20:30:00Z"^^<{}dateTime>', datetime(2010, 7, 11, 20, 30, tzinfo=UTC)),
        ('"2010-07-11T20:30:00"^^<{}dateTime>', datetime(2010, 7, 11, 20, 30, tzinfo=UTC)),
        ('"2010-07-11"^^<{}date>', "2010-07-11"),
        ('"2010-07-11T20:30:00Z"', "2010-07-11T20:30:00Z"),
        ('"a\\u00e9\\n"', "aé\n"),
        ('"colour"@en-GB', "colour"),
    ],
)
def test_literal_keeps_its_type(format: str, literal: str, expected: object) -> None:
    (event,) = read(f"<urn:e> <urn:v#a> {literal.format(XSD)} .", format)
    ((_, value),) = event.tuples
    assert (type(value), value) == (type(expected), expected)


@pytest.mark.parametrize("format", ["ntriples", "turtle"])
@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ('<urn:v#a> "x"^^<{}integer>', "'x' is not a valid integer"),
        ('<urn:v#a> "99999999999999999999"^^<{}integer>', "beyond 64 bits"),
        ('<urn:v#a> "yes"^^<{}boolean>', "is not a valid boolean"),
        ('<urn:v#a> "NaN"^^<{}double>', "is not a valid double"),
        ('<urn:v#a> "soon"^^<{}dateTime>', "is not a valid dateTime"),
        ("<urn:v#a> _:b", "blank node"),
        ('<urn:v#a> "' + "x" * 70_000 + '"', "a text of 70,000 characters"),
        ('<urn:v#a> "' + "1" * 70_000 + 'x"^^<{}double>', "is not a valid double"),
        ("<urn:v#" + "x" * 70_000 + '> "1"', "a text of 70,000 characters"),
        ('<urn:likewise:theme> "' + "x" * 70_000 + '"', "theme has a text of 70,000 characters"),
        ('<urn:likewise:time> "soon"', "time 'soon'"),
    ],
)
def test_bad_statement_is_refused_and_the_others_count(format: str, statement: str, reason: str) -> None:
    bad: list[BadRecord] = []
    text = f'<urn:e> <urn:v#ok> "1" .\n<urn:e> {statement.format(XSD)} .\n'
    (event,) = read_events(io.BytesIO(text.encode()), format=format, on_error=bad.append)
    assert event.tuples == (("ok", "1"),)
    assert [reason in record.reason for record in bad] == [True]
    assert bad[0].line == (2 if format == "ntriples" else None)


@pytest.mark.parametrize(
    "line",
    [
        b"<urn:e> <urn:p>",
        b"urn:e urn:p 1 .",
        b'<urn:e> <urn:p> "x',
        b'<urn:e> <urn:p> "\\q" .',
        b'<urn:e> "p" "x" .',
        b'<urn:e> <urn:p> "\\uD800" .',
        b'<urn:e> <urn:p> "x" . y',
        b'<u e> <urn:p> "x" .',
        b"\xff",
    ],
)
def test_line_that_is_no_statement_is_refused(line: bytes) -> None:
    with pytest.raises(InputError, match=r"^<stream>:2: "):
        list(read_events(io.BytesIO(b"# comment\n" + line), format="ntriples"))


@pytest.mark.parametrize("text", ["<urn:e> <urn:p>", "x:y a x:z .", "[" * 5000, "<urn:e> a 'x", "@prefix ."])
def test_broken_turtle_is_one_bad_record(text: str) -> None:
    bad: list[BadRecord] = []
    assert list(read_events(io.BytesIO(text.encode()), format="turtle", on_error=bad.append)) == []
    assert [record.reason.startswith("not valid Turtle") for record in bad] == [True]


def test_turtle_syntax_error_names_its_line() -> None:
    with pytest.raises(InputError, match=r"^<stream>:3: not valid Turtle"):
        read("<urn:e> <urn:p> 1 .\n\n<urn:f> <urn:p> ^ .\n", "turtle")


def test_blank_node_in_turtle_is_a_nested_object() -> None:
    (event,) = read("<urn:e> <urn:v#room> [ <urn:v#floor> 2 ; <urn:v#bed> [ <urn:v#size> 1 ] ] .", "turtle")
    assert event.tuples == (("room floor", 2), ("room bed size", 1))


def test_blank_nodes_in_a_ring_are_refused() -> None:
    with pytest.raises(InputError, match="nested deeper"):
        read("<urn:e> <urn:p> _:a . _:a <urn:p> _:b . _:b <urn:p> _:a .", "turtle")


def test_subject_that_comes_back_later_is_a_duplicate() -> None:
    with pytest.raises(InputError, match="<stream>:3: id 'urn:a' was used before"):
        read('<urn:a> <urn:p> "1" .\n<urn:b> <urn:p> "1" .\n<urn:a> <urn:p> "2" .\n', "ntriples")


def test_event_in_another_language_only_is_refused() -> None:
    with pytest.raises(InputError, match="no attributes"):
        read('<urn:a> <urn:p> "eins"@de .', "ntriples")


def test_ids_that_are_uris_stay_readable() -> None:
    out = io.BytesIO()
    write_events([Event.of({"a": 1}, id="https://example.org/e/1")], out, format="ntriples")
    assert out.getvalue().startswith(b"<https://example.org/e/1> <urn:likewise:term:a> ")


@pytest.mark.parametrize(
    "event", [Event("e"), Event("", (("a", 1),)), Event("e", (("a", "\ud800"),)), Event("e", (("a", float("nan")),))]
)
@pytest.mark.parametrize("format", ["ntriples", "turtle"])
def test_event_that_rdf_cannot_carry_is_refused_on_writing(event: Event, format: str) -> None:
    with pytest.raises(InputError):
        write_events([event], io.BytesIO(), format=format)


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    st.sampled_from(["http://a/", "urn:", "urn:likewise:event:", ""]),
)
def test_any_id_survives(id: str, prefix: str) -> None:
    for chosen in ("ntriples", "turtle"):
        out = io.BytesIO()
        write_events([Event(prefix + id, (("a", 1),))], out, format=chosen)
        (event,) = read_events(io.BytesIO(out.getvalue()), format=chosen)
        assert event.id == prefix + id


def test_comments_and_blank_lines_are_no_statements() -> None:
    assert parse_statement(b"  ") is None
    assert parse_statement(b"# x") is None
    assert parse_statement(b"<urn:a><urn:p>_:x.#y") is not None
