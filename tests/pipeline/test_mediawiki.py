"""Pages of a dump: read, skipped for a reason, or told as broken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.pipeline.spaces import mediawiki
from likewise.pipeline.spaces.mediawiki import Page, parse, plain_text


def fragment(text: str, *, title: str = "A", ns: str = "0", more: str = "") -> str:
    return f"<page><title>{title}</title><ns>{ns}</ns>{more}<revision><text bytes='9'>{text}</text></revision>\n  "


def test_an_article_is_read() -> None:
    head = "<mediawiki><siteinfo><sitename>W</sitename></siteinfo>\n"
    assert list(parse(head + fragment("Tom &amp; Jerry", title="T &lt; J"))) == [Page("T < J", "Tom & Jerry")]


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (fragment("x", ns="1"), "other namespace"),
        (fragment("x", more='<redirect title="B"/>'), "redirect"),
        (fragment("#REDIRECT [[B]]"), "redirect"),
        (fragment("x", title="A (disambiguation)"), "disambiguation"),
        (fragment("A may be:\n* b\n{{disambiguation}}"), "disambiguation"),
        (fragment("{{Hndis|name=A}}"), "disambiguation"),
    ],
)
def test_what_is_no_article_is_skipped(page: str, reason: str) -> None:
    assert [found.skip for found in parse(page)] == [reason]


def test_the_end_of_the_dump_is_no_page() -> None:
    assert list(parse("\n</mediawiki>\n")) == []


def test_a_torn_page_is_a_flaw_with_its_title() -> None:
    [page] = parse("<page><title>Torn</title><ns>0</ns><revision><text>half an art")
    assert page.title == "Torn"
    assert page.flaw is not None
    assert "not well-formed" in page.flaw


def test_a_page_without_end_does_not_take_the_next_one_with_it() -> None:
    torn, whole = parse("<page><title>Torn</title>" + fragment("fine", title="Whole"))
    assert (torn.title, torn.flaw) == ("Torn", "the page has no end")
    assert whole == Page("Whole", "fine")


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("'''Bold''' and ''slanted''", "Bold and slanted"),
        ("a [[link]] and [[other|text]]", "a link and text"),
        ("{{Infobox|name={{nested}}}}text", "text"),
        ("cited<ref name=a>Smith 2001</ref> here<ref name=a/>", "cited here"),
        ("<!-- hidden -->shown", "shown"),
        ("[[File:a.jpg|thumb|A [[dog]]]]text [[Category:Dogs]][[de:Hund]]", "text"),
        ("[http://example.org a site]", "a site"),
        ("__NOTOC__text", "text"),
    ],
)
def test_markup_goes_and_words_stay(wikitext: str, text: str) -> None:
    assert plain_text(wikitext) == text


def test_a_huge_page_is_cleaned_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mediawiki, "PIECE", 40)
    assert plain_text("a '''b'''\n\n" * 50).split() == ["a", "b"] * 50


@given(st.text(max_size=80), st.text(alphabet="[]{}|<>ref'=&;", max_size=40))
def test_no_page_breaks_the_reader(text: str, markup: str) -> None:
    for body in (text, markup, f"<page>{text}{markup}", fragment(markup), fragment(text + markup)):
        for page in parse(body):
            assert isinstance(page, Page)
