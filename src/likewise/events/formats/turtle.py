"""Turtle, parsed with rdflib: the whole document is held in memory; subjects keep their order.

A blank node that is the value of a statement is a nested object, named by its path as in JSON.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from likewise.errors import InputError
from likewise.events.event import Event
from likewise.events.formats.ntriples import finished
from likewise.events.formats.rdf import Draft, RdfNode, event_statements, named
from likewise.events.records import RecordIntake
from likewise.events.values import MAX_DEPTH

if TYPE_CHECKING:
    from rdflib import Graph


_Statements = dict[RdfNode, list[tuple[str, RdfNode]]]


def read_turtle(stream: BinaryIO, intake: RecordIntake) -> Iterator[Event]:
    """Yield the events of a document; a syntax error refuses the whole document, a bad statement only itself."""
    data = stream.read()
    try:
        statements = _parse(data)
    except InputError as flaw:
        intake.reject(flaw, line=flaw.line, raw=data)
        return
    nested = {value for pairs in statements.values() for _, value in pairs if value.kind == "blank"}
    for subject in statements:
        if subject not in nested:
            draft = Draft(subject)
            _add_all(draft, subject, statements, intake)
            yield from finished(draft, intake)


def _add_all(
    draft: Draft, subject: RdfNode, statements: _Statements, intake: RecordIntake, *, prefix: str = "", depth: int = 1
) -> None:
    for predicate, value in statements[subject]:
        try:
            if value.kind != "blank" or value not in statements:
                draft.add(predicate, value, prefix=prefix)
            elif depth >= MAX_DEPTH:
                raise InputError(f"blank nodes are nested deeper than {MAX_DEPTH} levels")
            else:
                path = f"{prefix} {named(predicate)}".strip()
                _add_all(draft, value, statements, intake, prefix=path, depth=depth + 1)
        except InputError as flaw:
            raw = f"{draft.subject.text} {predicate} {value.text}"
            intake.reject(flaw, line=None, raw=raw.encode("utf-8", errors="backslashreplace"))


def _parse(data: bytes) -> _Statements:
    graph, triples = _listening_graph()
    try:
        with _quiet():
            graph.parse(data=data, format="turtle", publicID="urn:likewise:base:")
    except Exception as error:
        # rdflib's parser raises arbitrary exceptions on bad input.
        lines = getattr(error, "lines", None)
        line = lines + 1 if isinstance(lines, int) else None
        reason = str(getattr(error, "_why", "")) or f"the parser failed ({type(error).__name__})"
        raise InputError(f"not valid Turtle: {reason[:200]}", line=line) from None
    statements: _Statements = {}
    for subject, predicate, value in triples:
        statements.setdefault(_node(subject), []).append((str(predicate), _node(value)))
    return statements


def _listening_graph() -> tuple[Graph, list[tuple[Any, Any, Any]]]:
    """A graph that records statements in document order, which rdflib's own store does not keep."""
    from rdflib import Graph

    statements: list[tuple[Any, Any, Any]] = []

    class Listening(Graph):
        def add(self, triple: Any) -> Self:
            statements.append(triple)
            return self

    return Listening(), statements


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence rdflib's warnings about invalid literals, which are reported as bad records."""
    logger = logging.getLogger("rdflib.term")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _node(term: Any) -> RdfNode:
    from rdflib import BNode, Literal

    if isinstance(term, Literal):
        return RdfNode(str(term), "literal", str(term.datatype or ""), term.language or "")
    return RdfNode(f"_:{term}", "blank") if isinstance(term, BNode) else RdfNode(str(term))


def encode_turtle(event: Event) -> bytes:
    """The event as one Turtle block, with its IRIs in full."""
    subject, pairs = event_statements(event)
    body = " ;\n".join(f"    {predicate} {value}" for predicate, value in pairs)
    return f"{subject}\n{body} .\n\n".encode()
