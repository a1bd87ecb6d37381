"""Reads subscriptions one after the other, with or without names."""

from __future__ import annotations

import re
from typing import NamedTuple

from likewise.errors import ParseError
from likewise.language.members import profiles_of
from likewise.language.model import Composite, Member, Operator, Options, Pattern, Predicate, Profile
from likewise.language.reading.clauses import CLAUSE_STARTS, ClauseReader
from likewise.language.reading.patterns import PatternReader
from likewise.language.reading.scanner import Scanner, Token
from likewise.language.words import CLAUSES, FOLLOWERS, JOINERS, PREFIXES, suggestion

_NAMED = re.compile(r"\s*+(\w[\w.\-]*+)\s*+(?::|=(?=\s*+[(\[]))")
_ASSIGNED = re.compile(r"[^\W\d][\w\-]*+\s*+=")
_QUOTED_NAME = re.compile(r"\s*+(?=[\"“‘'])")
_COLON = re.compile(r"\s*+:")
_PROFILE_ALONE = re.compile(r"\s*+(?:\{|profile\s*+\()")
# A statement of [002]: `event type "Football Match"`; the property may be several words.
_STATEMENT = re.compile(
    r"\s*+\??event[^\S\n]++(?!(?:then|and|or|xor)\b)([^\s\"“”(){}\[\]:=,;|~][^\n\"“”(){}\[\]:=,;|~]*+)(?=[\"“])"
)
_NEXT_LINE = re.compile(r"[^\S\n]*+\n(?=[^\S\n]*+\??event\b)")


class Statement(NamedTuple):
    """A parsed subscription; the name is None if the text has none."""

    name: str | None
    body: Profile | Composite
    options: Options
    start: int


class StatementReader:
    """Reads statements from one scanner."""

    __slots__ = ("scanner", "text")

    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self.text = scanner.text

    def statement(self) -> Statement:
        """Read the statement that starts here."""
        scan = self.scanner
        scan.depth = 0
        start = scan.peek().start
        name = self._name()
        clauses = ClauseReader(scan)
        if _STATEMENT.match(self.text, scan.pos):
            parsed: Profile | Pattern = self._triples()
            self._clauses(clauses, None)
        else:
            parsed = self._body(clauses)
        if name is None and _ASSIGNED.match(self.text, start) and isinstance(parsed, Member) and not clauses.where:
            # `p = profile(…)` on its own names a subscription, not a member [003 sec 2.1].
            name, parsed = parsed.alias, _without_alias(parsed)
        profiles = profiles_of(parsed)
        clauses.check_approach(profiles)
        return Statement(name, clauses.body(parsed), clauses.given_options(), start)

    def _name(self) -> str | None:
        scan = self.scanner
        match = _NAMED.match(self.text, scan.pos)
        if match is not None:
            scan.pos = match.end()
            return match[1]
        quote = _QUOTED_NAME.match(self.text, scan.pos)
        if quote is None:
            return None
        before, scan.pos = scan.pos, quote.end()
        name, colon = scan.quoted(), _COLON.match(self.text, scan.pos)
        if colon is None:
            scan.pos = before
            return None
        if not name:
            scan.fail("a name cannot be empty", at=quote.end())
        scan.pos = colon.end()
        return name

    def _body(self, clauses: ClauseReader) -> Profile | Pattern:
        """Read a profile, or a pattern if an operator follows it."""
        scan, patterns = self.scanner, PatternReader(self.scanner)
        body: Profile | Pattern
        if _PROFILE_ALONE.match(self.text, scan.pos):
            body = patterns.profiles.profile()
            if not self._ends_here(scan.peek()) and not self._is_clause(scan.peek()):
                body = patterns.pattern_from(body)
                if isinstance(body, Member) and body.alias is None:
                    body = body.profile
        else:
            body = patterns.pattern()
        self._clauses(clauses, patterns)
        return body

    def _clauses(self, clauses: ClauseReader, patterns: PatternReader | None) -> None:
        scan = self.scanner
        while True:
            token = scan.peek()
            if self._is_clause(token):
                clauses.read(scan.take().text, token.start)
            elif self._ends_here(token):
                return
            elif token.text == "within":
                scan.fail("nothing here can have a duration", at=token.start, hint="`within` follows `then` or `and`")
            elif patterns is None or clauses.seen:
                scan.unexpected(tuple(f"`{word}`" for word in CLAUSES), candidates=CLAUSES)
            else:
                patterns.unfinished(tuple(f"`{word}`" for word in CLAUSES), CLAUSES)

    def _is_clause(self, token: Token) -> bool:
        if token.kind != "word" or token.text not in CLAUSE_STARTS:
            return False
        return not (self.scanner.new_line_before(token) and _NAMED.match(self.text, token.start))

    def _ends_here(self, token: Token) -> bool:
        """Whether the statement ends: at the end of the text, or at a line that does not continue it."""
        if token.kind == "end":
            return True
        if not self.scanner.new_line_before(token):
            return False
        continues = token.text in JOINERS or token.text in FOLLOWERS or token.text in ";,|)"
        return not continues or _NAMED.match(self.text, token.start) is not None

    def _triples(self) -> Profile:
        """Read lines `event property "value"`, all approximate [002 sec 5.2]; a blank line ends them."""
        scan, predicates = self.scanner, list[Predicate]()
        while (match := _STATEMENT.match(self.text, scan.pos)) is not None:
            scan.pos = match.end()
            attribute = " ".join(match[1].split())
            predicates.append(Predicate(attribute, Operator.EQ, scan.quoted(), True, True))
            line = _NEXT_LINE.match(self.text, scan.pos)
            if line is None:
                break
            if _STATEMENT.match(self.text, line.end()) is not None:
                scan.pos = line.end()
        return Profile(tuple(predicates))

    def explain(self, error: ParseError, start: int) -> ParseError:
        """The error, moved to a misspelt first word if that broke the statement.

        `thershold 0.6` on a line of its own reads as a new pattern until its second word.
        """
        scan = self.scanner
        scan.pos = start
        token = scan.peek()
        if token.kind != "word" or error.hint or _NAMED.match(self.text, start):
            return error
        hint = suggestion(token.text, (*CLAUSES, *FOLLOWERS, *JOINERS, *PREFIXES))
        if hint is None:
            return error
        return scan.source.error(token.start, f"unexpected `{token.text}`", expected=error.expected, hint=hint)


def _without_alias(member: Member) -> Profile | Pattern:
    return member.profile if member.duplicates is None else Member(member.profile, None, member.duplicates)
