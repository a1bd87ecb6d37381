"""The same by meaning: `~` lets a related word answer, and every match says why.

Needs the WordNet space: `likewise space build --corpus wordnet --out wordnet`, or `scripts/demo`.
"""

from likewise.engine import Engine

engine = Engine(spaces=["wordnet"])
engine.subscribe(
    """
    fridges: {type~ = energy consumption~, device~ = refrigerator~}
    parking: {empty parking slot~ > 0}
    """
)
events = [
    {"type": "electricity usage", "appliance": "fridge", "office": "room 112"},
    {"type": "temperature", "room": "kitchen"},
    {"vacant parking spaces": 3},
]
for event in events:
    for told in engine.publish(event):
        print(told.match.explain().text(), end="\n\n")
