"""The general path: operators at work, event by event, for every pattern of the language."""

from likewise.composite.general.prefix import Prefix
from likewise.composite.general.process import LeafProcess, Process
from likewise.composite.general.run import PROCESSES, Run
from likewise.composite.general.sequence import SequenceProcess
from likewise.composite.instance import Filled, Instance

__all__ = ["PROCESSES", "Filled", "Instance", "LeafProcess", "Prefix", "Process", "Run", "SequenceProcess"]
