"""The JSON Schema of a function's arguments, and its arguments made of JSON.

Most functions take texts and numbers. Those are read off here, without `inspect` and `typing`; everything else is left to `shapes`.
"""

from .docstrings import documented
from .wire import Failure

SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean"}
FUNCTION = type(lambda: None)
VARIADIC, COROUTINE = 0x0C, 0x80
EFFECTS = ("pure", "read", "write", "exec", "network", "unknown")


def checked_effects(effects, where):
    """The effects that a tool declares. `where` says where it does, if they are not valid."""
    if effects in EFFECTS:
        return effects
    raise Failure(f"{where()} is {effects!r}; it is one of {', '.join(EFFECTS)}")


def is_async(function):
    """Whether calling it returns a coroutine."""
    if type(function) is FUNCTION:
        return bool(function.__code__.co_flags & COROUTINE)
    import inspect

    return inspect.iscoroutinefunction(function)


def object_schema(properties, required):
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


class Signature:
    """The parameters of a function. `skip` names those that the caller does not provide."""

    def __init__(self, function, skip=()):
        self.function = function
        said, self.about = documented(function.__doc__)
        self.description = said
        self.kinds = None
        self.schema = self.plain(skip)
        if self.schema is None:
            from .shapes import signature

            self.schema, self.kinds = signature(function, self.about, skip)

    def plain(self, skip):
        """The schema of a function with only strings and numbers as parameters; `None` for others."""
        function = self.function
        if type(function) is not FUNCTION or hasattr(function, "__wrapped__") or hasattr(function, "__signature__"):
            return None
        code, hints = function.__code__, function.__annotations__
        if code.co_flags & VARIADIC or code.co_posonlyargcount:
            return None
        positional = code.co_varnames[: code.co_argcount]
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        preset = function.__defaults__ or ()
        defaults = {**dict(zip(positional[len(positional) - len(preset) :], preset)), **(function.__kwdefaults__ or {})}
        properties, required = {}, []
        for name in names:
            if name in skip:
                continue
            if name not in hints or hints[name] not in SIMPLE:
                return None
            schema = {"type": SIMPLE[hints[name]]}
            if self.about.get(name):
                schema["description"] = self.about[name]
            if name not in defaults:
                required.append(name)
            elif type(defaults[name]) in SIMPLE:
                schema["default"] = defaults[name]
            else:
                return None
            properties[name] = schema
        return object_schema(properties, required)

    def arguments(self, given):
        """Converts arguments to the types of the function."""
        if self.kinds is None:
            hints = self.function.__annotations__
            return {
                name: float(it) if hints.get(name) is float and type(it) is int else it for name, it in given.items()
            }
        from .shapes import typed

        return {name: typed(it, self.kinds[name]) if name in self.kinds else it for name, it in given.items()}
