"""Pages of a MediaWiki dump: from a piece of XML to plain text, or to the reason why it does not count."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from xml.etree import ElementTree

import pyarrow as pa

PAGE_END = "</page>"
"""A dump is cut into records after each page, so one broken page spoils no other."""

SCHEMA = pa.schema([(name, pa.string()) for name in ("title", "text", "skip", "flaw")])
SPARK_SCHEMA = "title string, text string, skip string, flaw string"

PIECE = 200_000
_START = re.compile(r"<page[\s>]")
_DISAMBIGUATION = re.compile(
    r"\{\{\s*(?:[\w\s]*\bdisambig\w*|disamb|dab|hndis|geodis|numberdis|schooldis|mathdab|surname|given name)\s*[|}]",
    re.IGNORECASE,
)
_REDIRECT = re.compile(r"\s*#redirect\b", re.IGNORECASE)
_ASIDE = re.compile(r"^\s*:?\s*(?:file|image|media|category|wikt|[a-z]{2,3}(?:-[a-z]+)*)\s*:", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_REFERENCE = re.compile(r"<ref\b[^>]*/>|<ref\b[^>]*>.*?</ref>", re.DOTALL | re.IGNORECASE)
_MAGIC = re.compile(r"__[A-Z]+__")


@dataclass(frozen=True, slots=True)
class Page:
    """One article, or why it is none: `skip` is as it should be, `flaw` is damage."""

    title: str
    text: str = ""
    skip: str | None = None
    flaw: str | None = None


def read_pages(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of `SCHEMA` from batches whose column `value` holds what stands before each `</page>`."""
    for batch in batches:
        pages = [page for value in batch.column("value").to_pylist() for page in parse(value)]
        columns = [[getattr(page, name) for page in pages] for name in SCHEMA.names]
        yield pa.record_batch([pa.array(cells, pa.string()) for cells in columns], schema=SCHEMA)


def parse(fragment: str) -> Iterator[Page]:
    """The page that a fragment ends with, and a flaw for every page before it that never ended.

    >>> [page.text for page in parse("<page><title>A</title><ns>0</ns><revision><text>''b'' [[c|d]]</text></revision>")]
    ['b d']
    """
    starts = [match.start() for match in _START.finditer(fragment)]
    for start, end in pairwise(starts):
        yield Page(_title(fragment[start:end]), flaw="the page has no end")
    if starts:
        yield _page(fragment[starts[-1] :])


def _page(body: str) -> Page:
    try:
        page = ElementTree.fromstring(body + PAGE_END)
    except ElementTree.ParseError as error:
        return Page(_title(body), flaw=f"not well-formed: {error}")
    title = (page.findtext("title") or "").strip()
    text = page.findtext("revision/text") or ""
    if (page.findtext("ns") or "0").strip() != "0":
        return Page(title, skip="other namespace")
    if page.find("redirect") is not None or _REDIRECT.match(text):
        return Page(title, skip="redirect")
    if title.endswith("(disambiguation)") or _DISAMBIGUATION.search(text):
        return Page(title, skip="disambiguation")
    try:
        return Page(title, plain_text(text))
    except (ValueError, RecursionError) as error:
        return Page(title, flaw=f"wikitext cannot be read: {type(error).__name__}")


def plain_text(wikitext: str) -> str:
    """What a reader sees of a page: no templates, references, files or markup.

    >>> plain_text("'''Aachen''' is a [[spa town|spa]].{{citation needed}}<ref>x</ref> [[Category:Cities]]")
    'Aachen is a spa.'
    """
    bare = _MAGIC.sub("", _REFERENCE.sub("", _COMMENT.sub("", wikitext)))
    # The parser needs memory by the megabyte of text: huge pages go through in pieces.
    return "\n".join(_strip(piece) for piece in _pieces(bare)).strip()


def _strip(wikitext: str) -> str:
    import mwparserfromhell

    code = mwparserfromhell.parse(wikitext, skip_style_tags=True)
    for link in code.filter_wikilinks():
        if _ASIDE.match(str(link.title)):
            # A link inside one that is gone already cannot be found any more.
            _remove(code, link)
    return str(code.strip_code(normalize=True, collapse=True)).replace("'''", "").replace("''", "")


def _remove(code: object, node: object) -> None:
    try:
        code.remove(node)  # type: ignore[attr-defined]  # the parser has no types
    except ValueError:
        return


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > PIECE:
        end = text.rfind("\n\n", start, start + PIECE)
        end = end if end > start else start + PIECE
        yield text[start:end]
        start = end
    yield text[start:]


def _title(body: str) -> str:
    found = re.search(r"<title>([^<]*)", body)
    return found[1] if found else body[:80]
