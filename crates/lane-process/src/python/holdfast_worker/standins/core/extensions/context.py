"""What an extension is given."""

from holdfast_worker.context import ExtensionContext
from holdfast_worker.contract import Event
