"""An event as a handler gets it."""

from holdfast_worker.contract import Event
