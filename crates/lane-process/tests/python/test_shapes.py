"""Types as JSON Schema, JSON as values, values as JSON, and what docstrings say: one table each."""

import collections
import dataclasses
import datetime
import decimal
import enum
import functools
import inspect
import pathlib
import unittest
import uuid
from typing import Annotated, Any, Dict, List, Literal, NamedTuple, NewType, Optional, Tuple, TypedDict, Union

from holdfast_worker.docstrings import documented
from holdfast_worker.shapes import fits, plain, schema_of, strict, typed
from holdfast_worker.signatures import Signature


class Unit(enum.Enum):
    METRE = "m"
    FOOT = "ft"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.5


@dataclasses.dataclass
class Line:
    start: Point
    end: Optional[Point] = None
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Node:
    name: str
    inner: "list[Node]" = dataclasses.field(default_factory=list)


class Film(TypedDict):
    title: str
    year: int


class Partial(TypedDict, total=False):
    title: str


class Pair(NamedTuple):
    left: int
    right: str = "r"


UserId = NewType("UserId", int)
POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "y": {"type": "number"}},
    "additionalProperties": False,
    "required": ["x"],
}
STRING, INTEGER, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}


def closed(properties, required=()):
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


# A type, its schema, a JSON value, and what that arrives as.
ROWS = [
    (str, STRING, "a", "a"),
    (int, INTEGER, 3, 3),
    (float, {"type": "number"}, 3, 3.0),
    (bool, {"type": "boolean"}, True, True),
    (None, NULL, None, None),
    (Any, {}, [1], [1]),
    (object, {}, "a", "a"),
    (Optional[int], {"anyOf": [INTEGER, NULL]}, None, None),
    (int | None, {"anyOf": [INTEGER, NULL]}, 4, 4),
    (Union[str, int], {"anyOf": [STRING, INTEGER]}, 5, 5),
    (Union[Point, Film], {"anyOf": [POINT, closed({"title": STRING, "year": INTEGER}, ["title", "year"])]}, {"x": 1}, Point(1)),
    (Literal["a", 1, None], {"enum": ["a", 1, None]}, 1, 1),
    (Unit, {"enum": ["m", "ft"]}, "ft", Unit.FOOT),
    (Level, {"enum": [1, 2]}, 2, Level.HIGH),
    (list, {"type": "array"}, [1, "a"], [1, "a"]),
    (list[int], {"type": "array", "items": INTEGER}, [1], [1]),
    (List[Unit], {"type": "array", "items": {"enum": ["m", "ft"]}}, ["m"], [Unit.METRE]),
    (set[str], {"type": "array", "items": STRING, "uniqueItems": True}, ["a", "a"], {"a"}),
    (frozenset[int], {"type": "array", "items": INTEGER, "uniqueItems": True}, [1], frozenset([1])),
    (collections.abc.Sequence[int], {"type": "array", "items": INTEGER}, [1], [1]),
    (tuple, {"type": "array"}, [1], (1,)),
    (tuple[int, ...], {"type": "array", "items": INTEGER}, [1, 2], (1, 2)),
    (Tuple[int, str], {"type": "array", "prefixItems": [INTEGER, STRING], "minItems": 2, "maxItems": 2}, [1, "a"], (1, "a")),
    (dict, {"type": "object"}, {"a": 1}, {"a": 1}),
    (dict[str, int], {"type": "object", "additionalProperties": INTEGER}, {"a": 1}, {"a": 1}),
    (Dict[str, Point], {"type": "object", "additionalProperties": POINT}, {"a": {"x": 1}}, {"a": Point(1)}),
    (collections.abc.Mapping[str, Any], {"type": "object"}, {"a": 1}, {"a": 1}),
    (Film, closed({"title": STRING, "year": INTEGER}, ["title", "year"]), {"title": "a", "year": 1}, {"title": "a", "year": 1}),
    (Partial, closed({"title": STRING}), {}, {}),
    (Point, POINT, {"x": 1, "y": 2}, Point(1, 2.0)),
    (Line, closed({"start": POINT, "end": {"anyOf": [POINT, NULL]}, "tags": {"type": "array", "items": STRING}}, ["start"]),
     {"start": {"x": 1}, "end": {"x": 2}, "tags": ["a"]}, Line(Point(1), Point(2), ["a"])),
    (Pair, closed({"left": INTEGER, "right": STRING}, ["left"]), {"left": 1}, Pair(1)),
    (Annotated[str, "Words."], {"type": "string", "description": "Words."}, "a", "a"),
    (Annotated[Optional[int], "Words."], {"anyOf": [INTEGER, NULL], "description": "Words."}, 1, 1),
    (UserId, INTEGER, 1, 1),
    (datetime.datetime, {"type": "string", "format": "date-time"}, "2026-01-02T03:04:05", datetime.datetime(2026, 1, 2, 3, 4, 5)),
    (datetime.date, {"type": "string", "format": "date"}, "2026-01-02", datetime.date(2026, 1, 2)),
    (uuid.UUID, {"type": "string", "format": "uuid"}, "12345678-1234-5678-1234-567812345678", uuid.UUID("12345678123456781234567812345678")),
    (decimal.Decimal, STRING, "1.50", decimal.Decimal("1.50")),
    (pathlib.Path, STRING, "a/b", pathlib.Path("a/b")),
    (bytes, STRING, "a", b"a"),
]  # fmt: skip

# A value, and what it is in JSON.
VALUES = [
    (None, None),
    ("a", "a"),
    (1.5, 1.5),
    (float("nan"), "nan"),
    (Unit.FOOT, "ft"),
    (Level.HIGH, 2),
    (Line(Point(1), None, ["a"]), {"start": {"x": 1, "y": 0.5}, "end": None, "tags": ["a"]}),
    ((1, {"b"}), [1, ["b"]]),
    ({Unit.FOOT: 1, 2: 3}, {"ft": 1, "2": 3}),
    (Pair(1), {"left": 1, "right": "r"}),
    ((it for it in (1, 2)), [1, 2]),
    ({"a": 1}.keys(), ["a"]),
    (datetime.date(2026, 1, 2), "2026-01-02"),
    (b"bytes", "bytes"),
    (pathlib.Path("a"), "a"),
]

GOOGLE = """Measures.

    More words.

    Args:
        start: Where it begins.
        unit (Optional[Unit]): What it is
            measured in: metres.
        *rest: Others.

    Returns:
        A number: the length.
    """
NUMPY = """Measures.

    More words.

    Parameters
    ----------
    start : Point
        Where it begins.
    unit, mode : Unit, optional
        What it is
        measured in.

    Returns
    -------
    length : float
        The length.
    """
REST = """Measures.

    More words.

    :param start: Where it begins.
    :param Unit unit: What it is
        measured in.
    :type start: Point
    :returns: The length.
    """
DOCSTRINGS = [
    (GOOGLE, {"start": "Where it begins.", "unit": "What it is measured in: metres.", "rest": "Others."}),
    (NUMPY, {"start": "Where it begins.", "unit": "What it is measured in.", "mode": "What it is measured in."}),
    (REST, {"start": "Where it begins.", "unit": "What it is measured in."}),
    ("Measures.\n\nMore words.", {}),
]


class Shapes(unittest.TestCase):
    def test_types(self):
        for kind, schema, value, arrived in ROWS:
            with self.subTest(kind=kind):
                self.assertEqual(schema_of(kind), schema)
                self.assertEqual(typed(value, kind), arrived)
                self.assertIs(type(typed(value, kind)), type(arrived))
                self.assertTrue(fits(value, kind))

    def test_what_refers_to_itself(self):
        schema = schema_of(Node)
        self.assertEqual(schema["$ref"], "#/$defs/Node")
        self.assertEqual(schema["$defs"]["Node"]["properties"]["inner"]["items"], {"$ref": "#/$defs/Node"})
        self.assertEqual(typed({"name": "a", "inner": [{"name": "b"}]}, Node), Node("a", [Node("b")]))

    def test_values(self):
        for value, expected in VALUES:
            with self.subTest(value=value):
                self.assertEqual(plain(value), expected)

    def test_docstrings(self):
        for text, about in DOCSTRINGS:
            with self.subTest(text=text):
                self.assertEqual(documented(text), ("Measures.\n\nMore words.", about))

    def test_strict(self):
        def function(a: int, b: Optional[str] = None, c: int = 3): ...

        self.assertEqual(
            strict(Signature(function).schema),
            closed({"a": INTEGER, "b": {"anyOf": [STRING, NULL]}, "c": {"type": "integer", "default": 3}}, ["a", "b", "c"]),
        )

    def test_models(self):
        try:
            import pydantic
        except ImportError:
            self.skipTest("pydantic is not installed")

        class Inner(pydantic.BaseModel):
            n: int

        class Outer(pydantic.BaseModel):
            inner: Inner

        def function(outer: Outer): ...

        signature = Signature(function)
        self.assertIn("Inner", signature.schema["$defs"])
        self.assertNotIn("$defs", signature.schema["properties"]["outer"])
        self.assertEqual(signature.arguments({"outer": {"inner": {"n": "3"}}})["outer"].inner.n, 3)
        self.assertEqual(plain(Outer(inner=Inner(n=1))), {"inner": {"n": 1}})


class Signatures(unittest.TestCase):
    def test_both_ways_give_the_same(self):
        def function(text: str, count: int = 1, *, ratio: float = 0.5, flag: bool = False):
            """Does.

            Args:
                text: What.
            """

        quick = Signature(function)
        self.assertIsNone(quick.kinds, "it is read off without `typing`")
        function.__signature__ = inspect.signature(function)
        self.assertEqual(Signature(function).schema, quick.schema)
        self.assertEqual(quick.arguments({"ratio": 1, "count": 2}), {"ratio": 1.0, "count": 2})

    def test_what_is_left_out(self):
        def function(self, text, *rest, **more): ...

        self.assertEqual(Signature(function, skip=("self",)).schema, closed({"text": {}}, ["text"]))

    def test_annotations_that_are_text(self):
        function = namespace("from __future__ import annotations\ndef f(a: int, b: list[str] | None = None): ...")["f"]
        expected = {"anyOf": [{"type": "array", "items": STRING}, NULL], "default": None}
        self.assertEqual(Signature(function).schema, closed({"a": INTEGER, "b": expected}, ["a"]))

    def test_positional_only_and_wrapped(self):
        def function(a: int, /, b: str): ...

        @functools.wraps(function)
        def wrapped(*rest, **more): ...

        for it in (function, wrapped):
            self.assertEqual(Signature(it).schema, closed({"a": INTEGER, "b": STRING}, ["a", "b"]))


def namespace(text):
    made = {"__name__": __name__}
    exec(text, made)
    return made


if __name__ == "__main__":
    unittest.main()
