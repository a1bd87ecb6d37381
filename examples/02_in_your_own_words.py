"""Match by meaning: `~` also accepts words that mean the same, and every match explains itself.

Needs the WordNet space: run `likewise space build --corpus wordnet --out wordnet` first, or `scripts/demo`.
"""

from likewise import Engine

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
    for notification in engine.publish(event):
        print(notification.match.explain(), end="\n\n")
