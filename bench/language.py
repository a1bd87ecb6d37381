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
