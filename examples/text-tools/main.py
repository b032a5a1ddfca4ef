"""Tools for texts: counting, slugs, letter case. They are pure functions."""

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from holdfast import InvalidArguments, tool


@dataclass
class Counts:
    words: int
    lines: int
    characters: int


@tool(effects="pure")
def word_count(text: str) -> Counts:
    """Counts the words, lines and characters of a text.

    Args:
        text: The text to count.
    """
    return Counts(words=len(text.split()), lines=len(text.splitlines()), characters=len(text))


@tool(effects="pure")
def slugify(text: str, longest: int = 80) -> str:
    """Makes a text fit for an address: small letters, digits and hyphens.

    Args:
        text: The text, such as a title.
        longest: How many characters the slug may have.
    """
    if longest < 1:
        raise InvalidArguments("`longest` must be at least 1")
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:longest].rstrip("-")


@tool(effects="pure")
def change_case(text: str, case: Literal["upper", "lower", "title", "snake", "camel"]) -> str:
    """Writes a text in another letter case.

    Args:
        text: The text.
        case: The case to write it in.
    """
    words = re.findall(r"[A-Za-z0-9]+", text)
    match case:
        case "upper":
            return text.upper()
        case "lower":
            return text.lower()
        case "title":
            return text.title()
        case "snake":
            return "_".join(word.lower() for word in words)
        case "camel":
            return "".join(word.capitalize() if place else word.lower() for place, word in enumerate(words))
