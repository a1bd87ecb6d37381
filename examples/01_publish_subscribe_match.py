"""Subscribe, publish an event, and see which attribute answers which predicate."""

from likewise import Engine

engine = Engine()
engine.subscribe("usage: {type = increased energy consumption event, device = computer, office = room 112}")
event = {"type": "increased energy consumption event", "device": "computer", "office": "Room_112"}
for notification in engine.publish(event):
    print(f"{notification.subscription} matches with score {notification.score}")
    for pair in notification.match.mapping.correspondences:
        print(f"  {pair.predicate.attribute} is answered by {pair.tuple}")
