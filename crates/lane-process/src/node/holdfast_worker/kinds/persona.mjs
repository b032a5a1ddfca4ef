// Kind `persona`: text for the system prompt.

import { Failure } from "../report.mjs";

export function persona(payload, { id }) {
  const prompt = promptOf(payload.baseSystemPrompt ?? payload.systemPrompt ?? payload.prompt ?? payload.instructions);
  if (prompt === "") throw new Failure("its payload has no `baseSystemPrompt`");
  const name =
    [payload.name, payload.displayName, payload.label].find((it) => typeof it === "string" && it !== "") ?? id;
  const description = typeof payload.description === "string" ? payload.description : "";
  return { description, payload: { name, description, prompt } };
}

/** A text, `{template}`, or parts with a `content` and a `priority`. */
function promptOf(prompt) {
  if (typeof prompt === "string") return prompt;
  if (Array.isArray(prompt)) {
    const parts = prompt
      .map((it) => (typeof it === "string" ? { content: it } : it))
      .filter((it) => typeof it?.content === "string");
    return parts
      .sort((one, other) => (other.priority ?? 0) - (one.priority ?? 0))
      .map((it) => it.content)
      .join("\n\n");
  }
  return typeof prompt?.template === "string" ? prompt.template : "";
}
