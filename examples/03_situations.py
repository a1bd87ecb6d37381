"""Situations: events combined in time, joined by the room they happened in."""

from datetime import UTC, datetime, timedelta

from likewise.engine import Engine
from likewise.events import Event

engine = Engine()
engine.subscribe(
    """
    intrusion: {type = window broken} as w then {type = presence} as p within 10 minutes where w.room = p.room
    silence: not {type = heartbeat} for 30 minutes
    """
)
start = datetime(2026, 11, 15, 3, 0, tzinfo=UTC)
night = [
    (0, {"type": "heartbeat"}),
    (1, {"type": "window broken", "room": "laboratory"}),
    (4, {"type": "presence", "room": "kitchen"}),
    (6, {"type": "presence", "room": "laboratory"}),
    (45, {"type": "heartbeat"}),
]
for number, (minute, attributes) in enumerate(night):
    event = Event.of(attributes, id=f"e{number}", time=start + timedelta(minutes=minute))
    for told in engine.publish(event):
        print(f"{event.time:%H:%M} {told.subscription}: {', '.join(one.id for one in told.events) or 'nothing came'}")
