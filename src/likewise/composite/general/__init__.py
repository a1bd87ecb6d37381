"""The general path: runs any pattern of the language, event by event."""

from likewise.composite.general.prefix import Prefix
from likewise.composite.general.process import LeafProcess, Process
from likewise.composite.general.run import PROCESSES, Run
from likewise.composite.general.sequence import SequenceProcess
from likewise.composite.instance import FilledRole, Instance

__all__ = ["PROCESSES", "FilledRole", "Instance", "LeafProcess", "Prefix", "Process", "Run", "SequenceProcess"]
