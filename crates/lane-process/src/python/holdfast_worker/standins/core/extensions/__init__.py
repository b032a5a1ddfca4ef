"""The contract between extensions and whoever runs them."""

from holdfast_worker.context import ExtensionContext
from holdfast_worker.contract import *
