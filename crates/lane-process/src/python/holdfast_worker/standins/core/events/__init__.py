"""Events, and the topics of the program."""

from holdfast_worker.contract import Event

from .topics import SystemTopics
