"""The same by meaning: `~` lets a related word answer, and every match says why.

Needs the WordNet space: `likewise space build --corpus wordnet --out wordnet`, or `scripts/demo`.
"""

from likewise.engine import Engine

engine = Engine(spaces=["wordnet"])
engine.subscribe(
    """
    laptops: {type~ = energy consumption~, device~ = laptop~}
    parking: {empty parking slot~ > 0}
    """
)
events = [
    {"type": "electricity usage", "appliance": "notebook computer", "office": "room 112"},
    {"type": "temperature", "room": "kitchen"},
    {"parking vacancy": 3},
]
for event in events:
    for told in engine.publish(event):
        print(told.match.explain().text(), end="\n\n")
