"""Names that patterns refer to."""

from __future__ import annotations

import pytest

from likewise.language import circle, labels, members, parse, parse_pattern, references


def test_each_name_once_from_left_to_right() -> None:
    [subscription] = parse("x: b then (a or not b) then {c= 1}")
    assert references(subscription) == ("b", "a")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a: {x= 1}\nb: a then a", ()),
        ("a: a then {x= 1}", ("a", "a")),
        ("a: b then c\nb: {x= 1}\nc: d or b\nd: c and b", ("c", "d", "c")),
        ("a: unknown then b\nb: c or c\nc: {x= 1}", ()),
    ],
)
def test_circles(text: str, names: tuple[str, ...]) -> None:
    assert circle(parse(text)) == names


def test_members_and_their_names() -> None:
    root = parse_pattern("{x= 1} as w then (a during b as c) then not {y= 2} then at 17:00").root
    assert len(list(members(root))) == 5
    assert list(labels(root)) == ["w", "a", "c"]
