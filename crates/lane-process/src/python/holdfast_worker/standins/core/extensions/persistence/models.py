"""A conversation and a project."""

from holdfast_worker.conversations import ProjectInfo, ThreadInfo
