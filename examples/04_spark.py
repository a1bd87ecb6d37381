# %% [markdown]
# # Likewise for data engineers: events as DataFrames
#
# Run the cells one by one, or the whole file. It needs Java 17 and `pip install 'likewise[spark]'`.

# %%
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

if find_spec("pyspark") is None or shutil.which("java") is None:
    print("needs Java 17 and pip install 'likewise[spark]'", file=sys.stderr)
    sys.exit(77)

from pyspark.sql import functions as F

from likewise.events import RecordMapping
from likewise.pipeline import (
    dead_letters,
    detect,
    events_from_columns,
    join_by_meaning,
    match,
    read_events,
    spark_session,
)
from likewise.semantics import write_space

spark = spark_session(settings={"spark.sql.shuffle.partitions": "2"})
spark.sparkContext.setLogLevel("ERROR")
folder = Path(tempfile.mkdtemp())

# %% [markdown]
# ## A space
# Usually built with `likewise space build --corpus wordnet --out wordnet`; six sentences are enough for this example.

# %%
space = folder / "tiny"
write_space(
    space,
    [
        ("Car park", "parking garage car vehicle parking space street"),
        ("Garage", "garage car repair vehicle parking door"),
        ("Laptop", "laptop computer notebook battery power"),
        ("Computer", "computer laptop processor memory office"),
        ("Energy", "energy consumption usage electricity meter"),
        ("Electricity", "electricity power energy station"),
    ],
)

# %% [markdown]
# ## Events
# Any table becomes events: a mapping names the columns of id and time. `read_events` reads JSON lines, CloudEvents,
# CSV, Parquet and RDF; bad records become dead letters.

# %%
readings = spark.createDataFrame(
    [
        ("r1", "2026-01-01 10:00:00", "laptop", "electricity usage", 230, "101"),
        ("r2", "2026-01-01 10:01:00", "notebook", "presence", 1, "101"),
        ("r3", "2026-01-01 10:02:00", "car", "presence", 1, "garage"),
        ("r4", "2026-01-01 10:03:00", "computer", "electricity usage", 410, "102"),
    ],
    "id string, at string, device string, type string, reading int, room string",
)
events = events_from_columns(readings, RecordMapping(id="id", time="at"))
events.select("id", "time", F.transform("attributes", lambda a: F.concat_ws("=", a["name"], a["value"]))).show(
    truncate=False
)

# %% [markdown]
# ## Matching by meaning
# Subscribers use their own words; `~` marks terms that related words may answer.

# %%
found = match(
    events,
    "computers: {device~ = computer~} approach approximate threshold 0.3",
    spaces=space,
)
found.select("event_id", F.round("score", 3).alias("score"), F.col("mapping")[0]["event_value"].alias("because")).show()

# %% [markdown]
# ## Detection in event time
# Electricity is used, then someone is present in the same room within five minutes.

# %%
patterns = """
working: {type = electricity usage} as draw then {type = presence} as person
    within 5 minutes where draw.room = person.room
"""
detect(events, patterns).select("pattern", "time", F.col("events.id").alias("events")).show(truncate=False)

# %% [markdown]
# ## Dead letters

# %%
file = folder / "events.jsonl"
file.write_text('{"id": "e1", "attributes": {"type": "presence"}}\nthis is no event\n')
dead_letters(read_events(spark, file)).show(truncate=False)

# %% [markdown]
# ## A join by meaning
# Join two tables that use different words for the same things.

# %%
catalogue = spark.createDataFrame([("computer", "IT"), ("garage", "facilities")], "thing string, owner string")
join_by_meaning(readings, catalogue, on=("device", "thing"), threshold=0.2, spaces=space).select(
    "id", "device", "thing", "owner", F.round("relatedness", 3).alias("relatedness")
).orderBy("id").show()

# %%
spark.stop()
shutil.rmtree(folder)
