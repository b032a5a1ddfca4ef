"""A model that agents of the package `agents` can run on: its calls go through the host, and count against the budget of the turn. The
host answers with text, so that such an agent has no tools."""

import functools
import json

from .models import Model


@functools.cache
def sdk_model():
    """The class, made when the package is there."""
    from agents.items import ModelResponse, ResponseOutputMessage, ResponseOutputText
    from agents.models.interface import Model as Interface
    from agents.usage import Usage

    class HostModel(Model, Interface):
        async def get_response(self, system_instructions, input, model_settings, tools, *rest, **more):
            if tools:
                names = ", ".join(getattr(it, "name", "?") for it in tools)
                raise RuntimeError(f"a model that the host answers for cannot call tools of the extension: {names}")
            answer = await self.invoke(said(input), system_instructions or "")
            text = ResponseOutputText(type="output_text", text=answer, annotations=[])
            message = ResponseOutputMessage(id="message", type="message", role="assistant", status="completed", content=[text])
            return ModelResponse(output=[message], usage=Usage(), response_id=None)

        def stream_response(self, *positional, **named):
            raise NotImplementedError("a model that the host answers for gives its answer as a whole")

        # Of the interface, but with nothing to close.
        async def close(self): ...

    return HostModel


def said(input):
    """The messages so far as one text."""
    if isinstance(input, str):
        return input
    parts = []
    for item in input:
        content = item.get("content") if isinstance(item, dict) else str(item)
        if isinstance(content, list):
            content = "".join(it.get("text", "") for it in content if isinstance(it, dict))
        role = item.get("role", "") if isinstance(item, dict) else ""
        parts.append((role, content if isinstance(content, str) else json.dumps(item, ensure_ascii=False)))
    return parts[0][1] if len(parts) == 1 else "\n\n".join(f"{role}: {text}" for role, text in parts)
