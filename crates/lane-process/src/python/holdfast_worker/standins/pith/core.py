"""Stands in for the package of another program, of which channels import `Message`."""

from holdfast_worker.message import Message
