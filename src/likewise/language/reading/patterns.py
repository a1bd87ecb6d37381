"""Reads patterns, in words (`a then b within 30 minutes`) and in the papers' notation (`(a; b)30min`).

The operators are those of [003 table 1], XOR and Allen's relations of [001 sec III], and repetition.
From loosest to tightest: `or`, `xor`, `and`, `then`, an Allen relation, `not` and counts. Operands are
read by precedence climbing, so that the stack depth grows with parentheses only.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NoReturn

from likewise.language.durations import PART
from likewise.language.model import (
    Allen,
    Conjunction,
    Disjunction,
    Duplicates,
    Duration,
    ExclusiveOr,
    Keep,
    Member,
    Negation,
    Pattern,
    Profile,
    Reference,
    Relation,
    Repetition,
    Selection,
    Sequence,
    TimeEvent,
)
from likewise.language.reading.profiles import ProfileReader, starts_profile
from likewise.language.reading.scanner import Scanner, Token, shown
from likewise.language.words import ALLEN_FIRST, FOLLOWERS, JOINERS, KEYWORDS, PREFIXES

_LEVELS = {"or": 1, "xor": 2, "and": 3, "then": 4, "relation": 5}
_SIGNS = {"|": "or", "||": "or", "∥": "or", "^": "xor", ",": "and", ";": "then"}
_CHAINS: dict[str, type[Sequence | Conjunction | ExclusiveOr]] = {
    "then": Sequence,
    "and": Conjunction,
    "xor": ExclusiveOr,
}
_BOUNDED = Sequence | Conjunction | ExclusiveOr | Negation | Selection | Repetition | Relation
_CLOCK = re.compile(r"\s*+([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?(?![\w:])")
_ORDINAL = re.compile(r"(?:st|nd|rd|th)\b")
_HEADER = re.compile(r"[^\W][\w.\-]*+\s*+:")
_MEMBERS = ("a profile such as `{type= parking~}`", "the name of a subscription", "`not`", "`(`")


# Notations of other languages, and hints for them.
_OTHER_NOTATIONS = {
    "{": "a name ends with a colon, as in `alert: {…}`; join members by `then`, `and` or `or`",
    "-": "write `then` between what comes first and what follows",
    "=>": "write `then` between what comes first and what follows",
    "followed": "write `then` between what comes first and what follows",
    "in": "write `within` before a length of time",
    "&": "write `and`",
    "&&": "write `and`",
}


class PatternReader:
    """Reads one pattern at the scanner's position."""

    __slots__ = ("names", "profiles", "scanner", "text")

    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self.text = scanner.text
        self.profiles = ProfileReader(scanner)
        self.names: set[str] = set()

    def pattern(self) -> Pattern:
        """Read a pattern; options and conditions after it are left unread."""
        return self._expression(1, claimed=False)

    def pattern_from(self, profile: Profile) -> Pattern:
        """Read the rest of a pattern after its first profile."""
        return self._expression(1, claimed=False, left=self._after(Member(profile)))

    def _expression(self, floor: int, *, claimed: bool, left: Pattern | None = None) -> Pattern:
        """Read operators of level `floor` and tighter; if `claimed`, a `within` does not belong to a single operand."""
        left = left or self._operand()
        if not claimed:
            left = self._bounded(left)
        while (kind := self._joiner()) is not None and _LEVELS[kind] >= floor:
            left = self._relation(left) if kind == "relation" else self._chain(left, kind)
        return left

    def _joiner(self) -> str | None:
        """The kind of operator that comes next."""
        token = self.scanner.peek()
        if token.kind == "symbol":
            return _SIGNS.get(token.text)
        if token.kind != "word" or token.text not in JOINERS or self._begins_statement(token):
            return None
        return token.text if token.text in _LEVELS else "relation"

    def _begins_statement(self, token: Token) -> bool:
        """Whether `then: {…}` on a new line outside brackets starts a subscription of that name."""
        scan = self.scanner
        return scan.depth == 0 and scan.new_line_before(token) and _HEADER.match(self.text, token.start) is not None

    def _chain(self, left: Pattern, kind: str) -> Pattern:
        parts = [left]
        while self._joiner() == kind:
            self.scanner.take()
            parts.append(self._expression(_LEVELS[kind] + 1, claimed=kind != "or"))
        if kind != "or":
            return self._bounded(_CHAINS[kind](tuple(parts)))
        if self._within_follows():
            self.scanner.fail(
                "`or` has no duration, so it cannot have `within`",
                at=self.scanner.peek().start,
                hint="put the duration inside a part: `a or (b then c within 5 minutes)`",
            )
        return Disjunction(tuple(parts))

    def _relation(self, left: Pattern) -> Pattern:
        relation = self._allen(self.scanner.take())
        right = self._expression(_LEVELS["relation"] + 1, claimed=True)
        relation_pattern = self._bounded(Relation(left, relation, right))
        if self._joiner() == "relation":
            at = self.scanner.peek().start
            self.scanner.fail("two relations in a row are ambiguous", at=at, hint="use parentheses")
        return relation_pattern

    def _allen(self, token: Token) -> Allen:
        relation = ALLEN_FIRST[token.text]
        if relation.value.endswith(" by"):
            self.scanner.require("by")
        return relation

    def _within_follows(self) -> bool:
        token = self.scanner.peek()
        return token.kind == "word" and token.text == "within" and not self._begins_statement(token)

    def _bounded(self, pattern: Pattern) -> Pattern:
        """The pattern, with the `within` that may follow it."""
        if not self._within_follows() or not isinstance(pattern, _BOUNDED):
            return pattern
        token = self.scanner.take()
        return self._with_duration(pattern, self.scanner.duration(), token.start)

    def _with_duration(self, pattern: Pattern, duration: Duration, at: int) -> Pattern:
        if not isinstance(pattern, _BOUNDED):
            self.scanner.fail(
                "this part cannot have a duration", at=at, hint="a duration belongs to `then`, `and`, `not`"
            )
        if pattern.within is not None:
            self.scanner.fail("this part already has a duration", at=at, hint="keep one of them")
        return replace(pattern, within=duration)

    def _operand(self) -> Pattern:
        """Read one member with its prefixes (`not`, `3rd`) and suffixes (`as x`, `[3]`)."""
        scan, token = self.scanner, self.scanner.peek()
        scan.enter(token.start)
        pattern = self._prefixed(token)
        scan.leave()
        return self._after(pattern)

    def _prefixed(self, token: Token) -> Pattern:
        if token.kind == "number":
            return self._counted()
        if token.text == "!" or (token.text == "not" and token.kind == "word"):
            return self._negation()
        if token.kind == "word" and token.text in ("first", "last", "all"):
            self.scanner.take()
            return self._duplicates(Duplicates(Keep(token.text)), token)
        if token.kind == "word" and token.text == "longest":
            return self._longest(token)
        if token.kind == "word" and token.text in ("at", "every"):
            return self._time(token)
        return self._primary(token)

    def _negation(self) -> Negation:
        self.scanner.take()
        part = self._operand()
        self._time_label()
        duration = self.scanner.duration() if self.scanner.accept("for") else None
        return Negation(part, duration)

    def _counted(self) -> Pattern:
        """`3rd a`, `2nd duplicate a`, `3 times a`, `2 to 5 times a`, `2 or more times a`."""
        scan, token = self.scanner, self.scanner.peek()
        count = scan.whole("a count")
        ordinal = _ORDINAL.match(self.text, scan.pos)
        if ordinal is not None:
            scan.pos = ordinal.end()
            if scan.accept("duplicate"):
                scan.accept("of")
                return self._duplicates(Duplicates(Keep.NTH, count), token)
            return Selection(self._operand(), count)
        most: int | None = count
        if scan.accept("to"):
            most = scan.whole("the larger count", least=count)
        elif scan.accept("or"):
            scan.require("more")
            most = None
        if scan.accept("times") is None:
            scan.unexpected(("`times`", "`to`", "`or more times`", "an ordinal such as `3rd`"), candidates=("times",))
        return Repetition(self._operand(), count, most)

    def _longest(self, token: Token) -> Repetition:
        """`longest 2 or more times a`."""
        self.scanner.take()
        part = self._operand()
        if not isinstance(part, Repetition) or part.longest:
            self.scanner.fail("`longest` needs a repetition", at=token.start, expected=("`longest 2 or more times a`",))
        return replace(part, longest=True)

    def _at_least(self) -> Repetition:
        count = self.scanner.whole("a count")
        self.scanner.require("times")
        return Repetition(self._operand(), count)

    def _duplicates(self, duplicates: Duplicates, token: Token) -> Pattern:
        part = self._operand()
        if not isinstance(part, Member | Reference) or part.duplicates is not None:
            self.scanner.fail(
                "duplicates can only be chosen of a single member",
                at=token.start,
                expected=("a profile or a name after it",),
                hint="for the i-th instance of a pattern write `3rd (…)`",
            )
        return replace(part, duplicates=duplicates)

    def _time(self, token: Token) -> Pattern:
        """`at 17:00` or `every 30 minutes` [003 sec 2.1]."""
        scan = self.scanner
        scan.take()
        if token.text == "every":
            return TimeEvent(every=self._positive(token))
        if scan.accept("least"):
            return self._at_least()
        match = _CLOCK.match(self.text, scan.pos)
        if match is None:
            scan.unexpected(("a time of day such as `17:00`",))
        hours, minutes, seconds = (int(part or 0) for part in match.groups()[:3])
        if hours > 23 or minutes > 59 or seconds > 59:
            scan.fail("there is no such time of day", at=match.start(1), expected=("00:00 to 23:59:59.999999",))
        scan.pos = match.end()
        micros = int((match[4] or "").ljust(6, "0"))
        return TimeEvent(at=((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros)

    def _positive(self, token: Token) -> Duration:
        duration = self.scanner.duration()
        if duration == 0:
            self.scanner.fail("`every` needs a period above 0", at=token.start, expected=("a duration above 0",))
        return duration

    def _primary(self, token: Token) -> Pattern:
        scan = self.scanner
        if starts_profile(self.text, token.start):
            return Member(self.profiles.profile())
        if token.text == "(" and token.kind == "symbol":
            return self._group()
        if token.text == "[" and token.kind == "symbol":
            return self._bracketed()
        if token.kind == "word" and token.text in JOINERS and self.text[token.end : token.end + 1] == "(":
            return self._applied()
        if token.kind not in ("word", "quote") or (token.kind == "word" and token.text in KEYWORDS):
            scan.unexpected(_MEMBERS, candidates=PREFIXES)
        name = scan.name("a name")
        return self._named(name, token) if scan.accept("=") else Reference(name)

    def _named(self, alias: str, token: Token) -> Pattern:
        """`w = {type: window broken}`."""
        part = self._operand()
        return self._with_alias(part, alias, token.start)

    def _with_alias(self, part: Pattern, alias: str, at: int) -> Pattern:
        if not isinstance(part, Member | Reference | TimeEvent):
            self.scanner.fail(
                "only a single member can be named", at=at, hint="name the members inside the parentheses"
            )
        if part.alias is not None:
            self.scanner.fail("this member already has a name", at=at, hint="keep one of them")
        if alias in self.names:
            self.scanner.fail(f"two members are named {shown(alias)}", at=at, hint="choose different names")
        self.names.add(alias)
        return replace(part, alias=alias)

    def _group(self) -> Pattern:
        scan = self.scanner
        scan.take()
        inner = self.pattern()
        self._time_label()
        self._close(")")
        match = PART.match(self.text, scan.pos)
        if match is None:
            return inner
        return self._with_duration(inner, scan.duration(), match.start(1))

    def _bracketed(self) -> Pattern:
        """`[and(E1/T1, E2/T2)]` of [001 eq 1]."""
        scan = self.scanner
        scan.take()
        if scan.peek().text not in JOINERS:
            scan.unexpected(("an operator such as `and(`",), candidates=JOINERS)
        inner = self._applied()
        self._close("]")
        return inner

    def _applied(self) -> Pattern:
        """`and(a, b)`: an operator before its operands."""
        scan, token = self.scanner, self.scanner.take()
        relation = self._allen(token) if token.text in ALLEN_FIRST else None
        scan.require("(")
        parts = [self._timed_operand()]
        while scan.accept(","):
            parts.append(self._timed_operand())
        self._close(")")
        if len(parts) < 2 or (relation is not None and len(parts) > 2):
            scan.fail(f"`{token.text}` joins two parts", at=token.start, expected=(f"`{token.text}(a, b)`",))
        if relation is not None:
            return Relation(parts[0], relation, parts[1])
        return Disjunction(tuple(parts)) if token.text == "or" else _CHAINS[token.text](tuple(parts))

    def _timed_operand(self) -> Pattern:
        """`E1/T1`: the time label is ignored, since events have their own times."""
        part = self._expression(_LEVELS["and"] + 1, claimed=False)
        self._time_label()
        return part

    def _time_label(self) -> None:
        if self.scanner.accept("/"):
            self.scanner.name("a time label such as `T1`")

    def _close(self, closer: str) -> None:
        if self.scanner.accept(closer) is None:
            self.scanner.unexpected(
                (f"`{closer}`", *(f"`{word}`" for word in _LEVELS if word != "relation")), candidates=JOINERS
            )

    def _after(self, pattern: Pattern) -> Pattern:
        """`as x`, `[3]` and `times 2..5` after a member."""
        scan = self.scanner
        while True:
            token = scan.peek()
            if token.text == "as" and token.kind == "word" and not self._begins_statement(token):
                scan.take()
                at = scan.peek().start
                pattern = self._with_alias(pattern, scan.name("a name for this member"), at)
            elif token.text == "[" and token.kind == "symbol" and not scan.new_line_before(token):
                scan.take()
                pattern = Selection(pattern, scan.whole("the number of the instance"))
                self._close("]")
            elif token.text == "times" and token.kind == "word" and not self._begins_statement(token):
                scan.take()
                pattern = self._repeated(pattern)
            else:
                return pattern

    def _repeated(self, pattern: Pattern) -> Repetition:
        scan = self.scanner
        least = scan.whole("a count")
        if scan.accept("..") is None:
            return Repetition(pattern, least, least)
        if scan.peek().kind != "number":
            return Repetition(pattern, least)
        return Repetition(pattern, least, scan.whole("the larger count", least=least))

    def unfinished(self, expected: tuple[str, ...], candidates: tuple[str, ...]) -> NoReturn:
        """Refuse the text after a complete pattern."""
        words = (*JOINERS, *FOLLOWERS, *candidates)
        follows = ("`then`", "`and`", "`or`", "`within`", *expected)
        token = self.scanner.peek()
        if token.text in _OTHER_NOTATIONS:
            self.scanner.fail(
                f"unexpected {shown(token.text)}", at=token.start, expected=follows, hint=_OTHER_NOTATIONS[token.text]
            )
        self.scanner.unexpected(follows, candidates=words)
