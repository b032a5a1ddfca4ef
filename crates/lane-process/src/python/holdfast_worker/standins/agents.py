"""A substitute for the package `agents` if it is not installed: `function_tool` and its types."""

import json
import typing

from holdfast_worker.shapes import strict, typed
from holdfast_worker.signatures import Signature

Context = typing.TypeVar("Context")
PLAIN = object()


class RunContextWrapper(typing.Generic[Context]):
    """The context of a call, passed to a tool if its first parameter is annotated with it."""

    def __init__(self, context=None, **more):
        self.context = context
        self.__dict__.update(more)


class ToolContext(RunContextWrapper[Context]):
    """The same, with the name and id of the call."""


class FunctionTool:
    """A function that a model may call."""

    def __init__(
        self, name, description, params_json_schema, on_invoke_tool, strict_json_schema=True, is_enabled=True, **more
    ):
        self.name, self.description, self.params_json_schema = name, description, params_json_schema
        self.on_invoke_tool, self.strict_json_schema, self.is_enabled = on_invoke_tool, strict_json_schema, is_enabled
        self.__dict__.update(more)


Tool = FunctionTool


def wants_context(function):
    """The name of the first parameter if it is the call's context."""
    import inspect

    first = next(iter(inspect.signature(function).parameters.values()), None)
    if first is None:
        return None
    try:
        kind = typing.get_type_hints(function).get(first.name, first.annotation)
    except NameError:
        kind = first.annotation
    if isinstance(kind, str):
        kind = {"RunContextWrapper": RunContextWrapper, "ToolContext": ToolContext}.get(kind.split("[")[0].split(".")[-1])
    kind = typing.get_origin(kind) or kind
    return first.name if isinstance(kind, type) and issubclass(kind, RunContextWrapper) else None


def function_tool(
    func=None,
    *,
    name_override=None,
    description_override=None,
    docstring_style=None,
    use_docstring_info=True,
    failure_error_function=PLAIN,
    strict_mode=True,
    is_enabled=True,
    **more,
):
    """Makes a tool of a function, with or without options."""

    def tool_of(function):
        context = wants_context(function)
        signature = Signature(function, skip=(context,) if context else ())
        schema, said = signature.schema, signature.description
        if not use_docstring_info:
            properties = {
                name: {key: it for key, it in about.items() if key != "description"}
                for name, about in schema["properties"].items()
            }
            schema, said = {**schema, "properties": properties}, ""

        def call(wrapper, arguments):
            """The function's result, or a coroutine that returns it."""
            given = signature.arguments(arguments)
            return function(wrapper, **given) if context else function(**given)

        async def on_invoke_tool(wrapper, text):
            try:
                result = call(wrapper, json.loads(text) if text else {})
                return await result if hasattr(result, "__await__") else result
            except Exception as error:
                if failure_error_function in (PLAIN, None):
                    raise
                told = failure_error_function(wrapper, error)
                return await told if hasattr(told, "__await__") else told

        made = FunctionTool(
            name=name_override or function.__name__,
            description=said if description_override is None else description_override,
            params_json_schema=strict(schema) if strict_mode else schema,
            on_invoke_tool=on_invoke_tool,
            strict_json_schema=strict_mode,
            is_enabled=is_enabled,
        )
        if failure_error_function in (PLAIN, None):
            made.call_directly = call
        return made

    return tool_of if func is None else tool_of(func)


def default_tool_error_function(ctx, error):
    """The default error message for a model."""
    return f"An error occurred while running the tool. Please try again. Error: {error}"


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise ImportError(f"there is no `{name}` here: the package `agents` is not installed for this extension, and its stand-in has `function_tool` alone")
