"""Text to subscriptions."""

from __future__ import annotations

from likewise.language import parse


def test_names_theme_predicates_and_options_are_read() -> None:
    [alert] = parse("alert: {power}, {device~= laptop~, floor > 2} threshold 0.6 top 3 approach thematic")
    assert (alert.name, alert.body.theme, len(alert.body.predicates)) == ("alert", ("power",), 2)
    assert (alert.options.threshold, alert.options.top_k, alert.options.approach) == (0.6, 3, "thematic")
