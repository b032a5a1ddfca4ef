"""Beside the class."""

from . import words
from .lib.deep import DEPTH

count = 0


def shout(text):
    return words.louder(text) + "!" * DEPTH
