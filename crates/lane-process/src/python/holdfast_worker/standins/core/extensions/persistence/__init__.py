"""What is kept of conversations."""

from .models import ProjectInfo, ThreadInfo
