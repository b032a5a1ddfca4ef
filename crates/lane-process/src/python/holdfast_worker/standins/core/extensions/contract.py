"""What an extension can be."""

from holdfast_worker.contract import *
