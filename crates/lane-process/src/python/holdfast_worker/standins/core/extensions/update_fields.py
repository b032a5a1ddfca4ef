"""A value for a field that is to stay as it is."""

from holdfast_worker.conversations import UNSET, UnsetType
