"""Types as JSON Schema, JSON as values of types, and values as JSON."""

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import inspect
import math
import pathlib
import types
import typing
import uuid

from .signatures import object_schema

SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def moment(text):
    # Python 3.10 does not know the `Z`.
    return datetime.datetime.fromisoformat(f"{text[:-1]}+00:00" if text.endswith("Z") else text)


TEXTS = {
    datetime.datetime: ("date-time", moment),
    datetime.date: ("date", datetime.date.fromisoformat),
    datetime.time: ("time", datetime.time.fromisoformat),
    uuid.UUID: ("uuid", uuid.UUID),
    decimal.Decimal: (None, decimal.Decimal),
    pathlib.Path: (None, pathlib.Path),
    bytes: (None, str.encode),
}
LISTS = (list, set, frozenset, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Set)
MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
UNIONS = (typing.Union, types.UnionType)
MISSING = dataclasses.MISSING


def is_typed_dict(kind):
    return isinstance(kind, type) and issubclass(kind, dict) and hasattr(kind, "__total__")


def is_model(kind):
    return isinstance(kind, type) and hasattr(kind, "model_json_schema") and hasattr(kind, "model_validate")


def is_tuple_with_names(kind):
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def fields_of(kind):
    """The fields of an object type with their annotations, and the names of the required ones; `None` for other types."""
    if not (is_typed_dict(kind) or dataclasses.is_dataclass(kind) or is_tuple_with_names(kind)):
        return None
    hints = typing.get_type_hints(kind, include_extras=True)
    if is_typed_dict(kind):
        return hints, [name for name in hints if name in kind.__required_keys__]
    if is_tuple_with_names(kind):
        kinds = {name: hints.get(name, typing.Any) for name in kind._fields}
        return kinds, [name for name in kind._fields if name not in kind._field_defaults]
    fields = [field for field in dataclasses.fields(kind) if field.init]
    required = [it.name for it in fields if it.default is MISSING and it.default_factory is MISSING]
    return {it.name: hints[it.name] for it in fields}, required


def parts(kind):
    """A type without `Annotated`, `Required` and the like, its origin, its arguments, and the metadata of `Annotated`."""
    remark = None
    while True:
        origin = typing.get_origin(kind)
        if origin is typing.Annotated:
            remarks = (it if isinstance(it, str) else getattr(it, "description", None) for it in kind.__metadata__)
            remark = next((it for it in remarks if isinstance(it, str)), remark)
            kind = kind.__origin__
        elif getattr(origin, "_name", None) in ("Required", "NotRequired", "ReadOnly"):
            kind = typing.get_args(kind)[0]
        elif hasattr(kind, "__supertype__"):
            kind = kind.__supertype__
        elif isinstance(kind, typing.TypeVar):
            kind = kind.__bound__ or typing.Any
        else:
            return kind, origin, typing.get_args(kind), remark


class Schemas:
    """Schemas of types. Recursive types and definitions of pydantic models are defined once."""

    def __init__(self):
        self.defined, self.within = {}, []

    def of(self, kind):
        kind, origin, inner, remark = parts(kind)
        schema = self.plain(kind, origin, inner)
        return {**schema, "description": remark} if remark else schema

    def plain(self, kind, origin, inner):
        if kind in (inspect.Parameter.empty, typing.Any, object):
            return {}
        if kind is None:
            return {"type": "null"}
        if kind in SIMPLE:
            return {"type": SIMPLE[kind]}
        if kind in TEXTS:
            form = TEXTS[kind][0]
            return {"type": "string", "format": form} if form else {"type": "string"}
        if origin in UNIONS:
            options = [self.of(it) for it in inner]
            return options[0] if len(options) == 1 else {"anyOf": options}
        if origin is typing.Literal:
            return {"enum": [plain(it) for it in inner]}
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return {"enum": [plain(member.value) for member in kind]}
        if is_model(kind):
            schema = dict(kind.model_json_schema())
            self.defined.update(schema.pop("$defs", {}))
            return schema
        return self.structure(origin or kind, kind, inner)

    def structure(self, container, kind, inner):
        if fields_of(container) is not None:
            return self.object(container)
        if container is tuple:
            if not inner:
                return {"type": "array"}
            if inner[-1] is Ellipsis:
                return {"type": "array", "items": self.of(inner[0])}
            items = [self.of(it) for it in inner]
            return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
        if container in LISTS:
            schema = {"type": "array", "items": self.of(inner[0])} if inner else {"type": "array"}
            return {**schema, "uniqueItems": True} if container in (set, frozenset) else schema
        if container in MAPPINGS:
            values = self.of(inner[1]) if len(inner) == 2 else {}
            return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
        return {}

    def object(self, kind):
        if kind in self.within:
            self.defined.setdefault(kind.__name__, None)
            return {"$ref": f"#/$defs/{kind.__name__}"}
        self.within.append(kind)
        hints, required = fields_of(kind)
        schema = object_schema({name: self.of(hint) for name, hint in hints.items()}, required)
        self.within.pop()
        if self.defined.get(kind.__name__, schema) is None:
            self.defined[kind.__name__] = schema
            return {"$ref": f"#/$defs/{kind.__name__}"}
        return schema


def schema_of(kind):
    """The schema of a single type."""
    schemas = Schemas()
    schema = schemas.of(kind)
    return {**schema, "$defs": schemas.defined} if schemas.defined else schema


def signature(function, about, skip=()):
    """The JSON Schema of a function's arguments, and the annotation of each."""
    hints = typing.get_type_hints(function, include_extras=True)
    schemas, properties, required, kinds = Schemas(), {}, [], {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or name in skip:
            continue
        kinds[name] = hints.get(name, parameter.annotation)
        if isinstance(kinds[name], str):
            kinds[name] = typing.Any
        schema = schemas.of(kinds[name])
        if about.get(name) and "description" not in schema:
            schema = {**schema, "description": about[name]}
        if parameter.default is parameter.empty:
            required.append(name)
        elif is_json(parameter.default):
            schema = {**schema, "default": plain(parameter.default)}
        properties[name] = schema
    schema = object_schema(properties, required)
    return ({**schema, "$defs": schemas.defined} if schemas.defined else schema), kinds


def is_json(value):
    return value is None or isinstance(value, (str, bool, int, float, enum.Enum, list, dict, tuple))


def strict(schema):
    """A strict schema, as some models require it: every property is required, and there are no others."""
    if isinstance(schema, list):
        return [strict(it) for it in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: strict(it) for name, it in schema.items() if not (name == "default" and it is None)}
    if made.get("type") == "object" and "properties" in made:
        made["additionalProperties"], made["required"] = False, list(made["properties"])
    return made


def typed(value, kind):
    """Converts a JSON value to the annotated type; unchanged if that is ambiguous."""
    kind, origin, inner, _ = parts(kind)
    if origin in UNIONS:
        for option in inner:
            if fits(value, option):
                return typed(value, option)
        return value
    if is_model(kind):
        return kind.model_validate(value)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(value)
    if kind in TEXTS and isinstance(value, str):
        return TEXTS[kind][1](value)
    container = origin or kind
    if isinstance(value, dict):
        fields = fields_of(container)
        if fields is not None:
            made = {name: typed(it, fields[0].get(name, typing.Any)) for name, it in value.items()}
            return made if is_typed_dict(container) else container(**made)
        if container in MAPPINGS and len(inner) == 2:
            return {typed(name, inner[0]): typed(it, inner[1]) for name, it in value.items()}
    if isinstance(value, list):
        if container is tuple:
            kinds = [inner[0]] * len(value) if inner and inner[-1] is Ellipsis else list(inner)
            kinds += [typing.Any] * (len(value) - len(kinds))
            return tuple(typed(it, kind) for it, kind in zip(value, kinds))
        if container in LISTS:
            items = [typed(it, inner[0]) if inner else it for it in value]
            return container(items) if container in (set, frozenset) else items
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def fits(value, kind):
    kind, origin, inner, _ = parts(kind)
    if kind in (None, type(None)):
        return value is None
    if kind is typing.Any:
        return True
    if origin is typing.Literal:
        return value in inner
    if origin in UNIONS:
        return any(fits(value, it) for it in inner)
    if kind in (str, int, float, bool):
        if isinstance(value, bool) or kind is bool:
            return isinstance(value, bool) and kind is bool
        return isinstance(value, (int, float) if kind is float else kind)
    if kind in TEXTS:
        try:
            return isinstance(value, str) and TEXTS[kind][1](value) is not None
        except (ValueError, ArithmeticError):
            return False
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return any(member.value == value for member in kind)
    container = origin or kind
    fields = fields_of(container)
    if fields is not None:
        return isinstance(value, dict) and set(fields[1]) <= set(value) <= set(fields[0])
    if is_model(kind) or container in MAPPINGS:
        return isinstance(value, dict)
    return isinstance(value, list) if container in LISTS or container is tuple else True


def plain(value):
    """Converts a value to JSON."""
    if value is None or isinstance(value, (str, bool, int, float)):
        value = value.value if isinstance(value, enum.Enum) else value
        return str(value) if isinstance(value, float) and not math.isfinite(value) else value
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if hasattr(value, "model_dump") and not isinstance(value, type):
        return plain(value.model_dump(mode="json"))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, collections.abc.Mapping):
        return {str(plain(name)): plain(it) for name, it in value.items()}
    if is_tuple_with_names(type(value)):
        return {name: plain(it) for name, it in zip(value._fields, value)}
    if isinstance(value, (set, frozenset)):
        return [plain(it) for it in sorted(value, key=repr)]
    if isinstance(value, (list, tuple, collections.abc.Iterator, collections.abc.KeysView, collections.abc.ValuesView)):
        return [plain(it) for it in value]
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    return str(value)
