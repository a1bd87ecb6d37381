"""The smallest whole thing: subscribe, publish, and see what answered what."""

from likewise.engine import Engine

engine = Engine()
engine.subscribe("usage: {type = increased energy consumption event, device = computer, office = room 112}")
event = {"type": "increased energy consumption event", "device": "computer", "office": "Room_112"}
for told in engine.publish(event):
    print(told.subscription, told.score, [pair.tuple for pair in told.match.mapping.correspondences])
