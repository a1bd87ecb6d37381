"""Why a pattern was detected or not: what an event is to its parts, how far it came, and what was missing."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

from likewise.composite.reasons.explain import PatternState
from likewise.composite.reasons.report import state_lines, state_plain
from likewise.matching import Explanation


@dataclass(frozen=True, slots=True)
class PatternExplanation:
    """Each part beside the event, and the state of the pattern."""

    pattern: str
    event: str
    parts: tuple[tuple[str, Explanation], ...]
    state: PatternState
    lacks: tuple[tuple[str, str], ...] = ()
    """Parts that the event answers, and attributes of theirs that a condition asks for and it does not have."""

    @property
    def matched(self) -> bool:
        """Whether the event answers any part."""
        return any(part.matched for _, part in self.parts)

    @property
    def score(self) -> float:
        """How well it answers the part that it answers best."""
        return max((part.score for _, part in self.parts), default=0.0)

    @property
    def why_not(self) -> str:
        """What the best part lacks; empty if one is answered."""
        if self.matched or not self.parts:
            return ""
        role, part = max(self.parts, key=lambda each: each[1].score)
        return f"{role}: {part.why_not}"

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        parts = {role: part.as_dict() for role, part in self.parts}
        return {
            "pattern": self.pattern,
            "event": self.event,
            "matched": self.matched,
            "parts": parts,
            "lacks": [list(each) for each in self.lacks],
            "state": state_plain(self.state),
        }

    def text(self, *, full: bool = False) -> str:
        """For people: what the event is to each part, then how far the pattern came and what stopped it."""
        return "\n".join([*self.event_lines(full=full), *state_lines([self.state])])

    def event_lines(self, *, full: bool = False) -> list[str]:
        """What the event is to each part."""
        answered = [role for role, part in self.parts if part.matched]
        what = f"answers {' and '.join(answered)}" if answered else "answers no part"
        lines = [f"{self.event} {what} of {self.pattern}"]
        for role, part in self.parts:
            inner = part.text(full=full).splitlines()
            lines += [f"  {role}: {inner[0]}", *(f"  {line}" for line in inner[1:])]
        for role, attribute in self.lacks:
            lines.append(f"  {role}: a condition asks for {attribute!r}, which {self.event} does not have")
        return lines

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text())}</pre>"
