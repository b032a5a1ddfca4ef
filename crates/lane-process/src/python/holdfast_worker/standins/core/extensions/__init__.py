"""The contract between extensions and their host."""

from holdfast_worker.context import ExtensionContext
from holdfast_worker.contract import *
