"""Detect patterns: events in the same room within ten minutes, and a heartbeat that is missing."""

from datetime import UTC, datetime, timedelta

from likewise import Engine, Event

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
    for notification in engine.publish(event):
        ids = ", ".join(member.id for member in notification.events)
        print(f"{event.time:%H:%M} {notification.subscription}: {ids or 'no event arrived'}")
