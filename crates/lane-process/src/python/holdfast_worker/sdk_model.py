"""A model that agents of the package `agents` can run on: its calls go through the host, and count against the budget of the turn.

The host answers with text. The functions that such an agent has are described in the instructions, and an answer that is JSON of the form
described there calls them.
"""

import functools
import json
import re
import time
import typing
import uuid

from .models import Model

CALLING = """You can call functions. To call {how}, answer with nothing but JSON of this form:
{{"calls": [{{"name": "a function", "arguments": {{"an argument": "its value"}}}}]}}
You are given the results. When you need no further call, answer as usual.{chosen}
The functions, each with the JSON schema of its arguments:
{functions}"""
SHAPED = "Unless you call a function, answer with nothing but JSON that fits this JSON schema:\n{schema}"


@functools.cache
def sdk_model():
    """The class, made when the package is there."""
    from agents.items import (
        ModelResponse,
        Response,
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
        TResponseStreamEvent,
    )
    from agents.models.interface import Model as Interface
    from agents.usage import Usage

    events = {it.__name__: it for it in members(TResponseStreamEvent)}

    class HostModel(Model, Interface):
        async def get_response(self, system_instructions, input, model_settings, tools, output_schema=None, handoffs=(), *rest, **more):
            functions = [described(it) for it in (*tools, *handoffs)]
            offer, form = calling(functions, model_settings), shaped(output_schema)
            answer = await self.invoke(said(input), "\n\n".join(it for it in (system_instructions, offer, form) if it))
            calls = calls_of(answer) if offer else []
            calls = calls if getattr(model_settings, "parallel_tool_calls", None) is not False else calls[:1]
            if calls:
                make = lambda name, arguments: ResponseFunctionToolCall(
                    type="function_call", call_id=f"call_{uuid.uuid4().hex}", name=name, arguments=arguments
                )
                output = [make(name, arguments) for name, arguments in calls]
            else:
                text = ResponseOutputText(type="output_text", text=unfenced(answer) if form else answer, annotations=[])
                output = [ResponseOutputMessage(id="message", type="message", role="assistant", status="completed", content=[text])]
            return ModelResponse(output=output, usage=Usage(), response_id=None)

        async def stream_response(self, *positional, **named):
            """The whole answer as one piece."""
            output = (await self.get_response(*positional, **named)).output
            for item in output:
                for part in getattr(item, "content", None) or []:
                    yield events["ResponseTextDeltaEvent"](
                        type="response.output_text.delta", delta=part.text, item_id=item.id, content_index=0, output_index=0,
                        logprobs=[], sequence_number=0,
                    )  # fmt: skip
            whole = Response(
                id="response", created_at=time.time(), model=str(self), object="response", output=output, tool_choice="auto",
                tools=[], parallel_tool_calls=False,
            )  # fmt: skip
            yield events["ResponseCompletedEvent"](type="response.completed", response=whole, sequence_number=1)

        # Of the interface, but with nothing to close.
        async def close(self): ...

    return HostModel


def members(union):
    """The classes of a union, also of one with a discriminator."""
    return [union] if isinstance(union, type) else [it for part in typing.get_args(union) for it in members(part)]


def described(function):
    """A function tool or a handoff, as the model is told of it."""
    if hasattr(function, "on_invoke_handoff"):
        about = (function.tool_name, function.tool_description, function.input_json_schema)
    elif hasattr(function, "on_invoke_tool"):
        about = (function.name, function.description, function.params_json_schema)
    else:
        name = getattr(function, "name", type(function).__name__)
        raise RuntimeError(f"a model that the host answers for cannot use `{name}`, which only its provider runs: use a function tool")
    return dict(zip(("name", "description", "arguments"), about))


def calling(functions, settings):
    """How functions are called. `tool_choice` and `parallel_tool_calls` are requests here as well."""
    choice = getattr(settings, "tool_choice", None)
    if not functions or choice == "none":
        return ""
    one = getattr(settings, "parallel_tool_calls", None) is False
    chosen = {None: "", "auto": "", "required": " Call at least one."}
    return CALLING.format(
        how="one" if one else "one or several",
        chosen=chosen.get(choice, f" Call `{choice}`."),
        functions="\n".join(json.dumps(it, ensure_ascii=False) for it in functions),
    )


def shaped(output_schema):
    """The schema of an answer that is not plain text."""
    if output_schema is None or output_schema.is_plain_text():
        return ""
    return SHAPED.format(schema=json.dumps(output_schema.json_schema(), ensure_ascii=False))


def unfenced(answer):
    """An answer without the fence that many models put around JSON."""
    fenced = re.fullmatch(r"\s*```[a-z]*\n(.*?)\n?```\s*", answer, re.DOTALL)
    return (fenced.group(1) if fenced else answer).strip()


def calls_of(answer):
    """The calls that an answer makes: names, and arguments as JSON. An answer of another form makes none."""
    try:
        calls = json.loads(unfenced(answer))["calls"]
        return [(it["name"], json.dumps(it.get("arguments") or {}, ensure_ascii=False)) for it in calls if isinstance(it["name"], str)]
    except (ValueError, TypeError, KeyError, AttributeError):
        return []


def said(input):
    """The messages, calls and results so far as one text."""
    if isinstance(input, str):
        return input
    parts, names = [], {}
    for item in input:
        item = item if isinstance(item, dict) else {"content": str(item)}
        if item.get("type") == "function_call":
            names[item.get("call_id")] = item["name"]
            call = {"name": item["name"], "arguments": json.loads(item.get("arguments") or "{}")}
            parts.append(("assistant", json.dumps({"calls": [call]}, ensure_ascii=False)))
        elif item.get("type") == "function_call_output":
            parts.append((f"result of {names.get(item.get('call_id'), 'a call')}", text_of(item.get("output"))))
        else:
            content = text_of(item.get("content"))
            parts.append((item.get("role", ""), content or json.dumps(item, ensure_ascii=False)))
    return parts[0][1] if len(parts) == 1 else "\n\n".join(f"{role}: {text}" for role, text in parts)


def text_of(content):
    if isinstance(content, list):
        content = "".join(it.get("text", "") for it in content if isinstance(it, dict))
    return content if isinstance(content, str) else ""
