"""How fast subscriptions are read and written: `likewise bench language`."""

from __future__ import annotations

import random
import sys
from time import perf_counter

from likewise.language import format_file, parse

_WORDS = (
    *("energy", "power", "building", "parking", "city", "traffic", "noise", "water", "light"),
    *("street", "office", "room", "laptop", "computer", "sensor", "temperature", "humidity", "consumption"),
    *("increased", "decreased", "event", "device", "floor", "ground", "zone", "station"),
)
_UNITS = ("minutes", "hours", "seconds")


def run(*, quick: bool = False) -> list[dict[str, object]]:
    """Rows of subscriptions per second, each the best of several runs on one core."""
    count, rounds = (2_000, 3) if quick else (20_000, 5)
    rows = []
    for what, text, target in (
        ("parse profiles (theme of 2, 3 predicates)", _profiles(count), 5_000),
        ("parse profiles, all terms quoted", _profiles(count, quote='"'), None),
        ("parse patterns (3 members, binding, options)", _patterns(count // 4), None),
    ):
        rate = _best(text, rounds)
        row: dict[str, object] = {"what": what, "value": round(rate), "unit": "subscriptions/s"}
        rows.append(row | ({"target": target} if target else {}))
    rows.append(_peer(_profiles(count // 4), rounds))
    rows.append({"what": "write profiles", "value": round(_best_format(count, rounds)), "unit": "subscriptions/s"})
    return rows


def _best(text: str, rounds: int) -> float:
    rates = []
    for number in range(rounds):
        start = perf_counter()
        found = len(parse(text))
        rates.append(found / (perf_counter() - start))
        print(f"  round {number + 1}/{rounds}: {rates[-1]:,.0f}/s", file=sys.stderr)
    return max(rates)


_GRAMMAR = r"""
    start: subscription+
    subscription: NAME ":" theme? "," predicates option*
    theme: "{" TERM ("," TERM)* "}"
    predicates: "{" predicate ("," predicate)* "}"
    predicate: TERM TILDE? OPERATOR TERM TILDE?
    option: "threshold" NUMBER | "top" NUMBER
    TILDE: "~"
    OPERATOR: "=" | "!=" | "<=" | ">=" | "<" | ">"
    NAME: /\w+(?=:)/
    NUMBER: /[0-9.]+/
    TERM: /[^\s{}~=<>!,:][^{}~=<>!,:\n]*/
    %ignore /\s+/
"""


def _peer(text: str, rounds: int) -> dict[str, object]:
    """The same profiles through Lark's fastest parser, whose trees are not even turned into values."""
    row: dict[str, object] = {"what": "peer: Lark LALR, bare tree of the same profiles", "unit": "subscriptions/s"}
    try:
        import lark
    except ImportError:
        return row | {"value": "skipped: lark is not installed"}
    parser = lark.Lark(_GRAMMAR, parser="lalr", lexer="contextual")
    rates = []
    for _ in range(rounds):
        start = perf_counter()
        found = len(parser.parse(text).children)
        rates.append(found / (perf_counter() - start))
    return row | {"value": round(max(rates))}


def _best_format(count: int, rounds: int) -> float:
    many = parse(_profiles(count))
    rates = []
    for _ in range(rounds):
        start = perf_counter()
        format_file(many)
        rates.append(count / (perf_counter() - start))
    return max(rates)


def _profiles(count: int, *, quote: str = "") -> str:
    """The typical subscription: a name, a theme of two tags, three predicates."""
    pick = random.Random(7)

    def term() -> str:
        return quote + " ".join(pick.sample(_WORDS, pick.randint(1, 3))) + quote

    lines = (
        f"n{number}: {{{term()}, {term()}}}, "
        f"{{{term()}= {term()}~, {term()}~= {term()}~, {term()}= {number}}} threshold 0.5"
        for number in range(count)
    )
    return "\n".join(lines)


def _patterns(count: int) -> str:
    pick = random.Random(7)
    lines = (
        f"p{number}: {{type= {pick.choice(_WORDS)}~}} as a then not {{type= {pick.choice(_WORDS)}}} as b "
        f"then {{type= {pick.choice(_WORDS)}}} as c within {number + 1} {pick.choice(_UNITS)} "
        "where a.room = c.room consume unique threshold 0.5"
        for number in range(count)
    )
    return "\n".join(lines)
