// Kind `memory-provider`: three tools, and what it recalls for the system prompt.

import { Failure } from "../report.mjs";

const COLLECTION = "conversation";
const RECALLED = 5;
const MAX_RECALLED_CHARS = 4_000;
const TEXT = { type: "string" };

export async function memory(payload, { id }) {
  for (const name of ["store", "query"]) {
    if (typeof payload[name] !== "function") throw new Failure(`its payload has no function \`${name}\``);
  }
  await payload.initialize?.({});
  const query = (text, limit, collection) => payload.query(collection ?? COLLECTION, text, { limit });
  const decide = async (request) => {
    const subject = request.params.subject;
    const found = typeof subject === "string" && subject !== "" ? await query(subject, RECALLED) : [];
    const lines = (Array.isArray(found) ? found : []).map((it) => `- ${textOf(it)}`).join("\n");
    return lines === ""
      ? null
      : { decision: "inject", content: `Recalled from ${payload.name ?? id}:\n${lines.slice(0, MAX_RECALLED_CHARS)}` };
  };
  const prefix = id.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 54);
  return {
    tools: tools(payload, prefix, query),
    hooks: [{ point: "context", decide }],
    lasts: true,
    deactivate: () => payload.shutdown?.(),
  };
}

function tools(payload, prefix, query) {
  const about = typeof payload.description === "string" ? ` ${payload.description.slice(0, 1_000)}` : "";
  const tool = (name, description, properties, required, effects, run) => ({
    sheet: {
      name: `${prefix}_${name}`,
      description: description + about,
      input_schema: { type: "object", properties, required },
      effects,
    },
    run: ({ params }) => run(params.arguments ?? {}),
  });
  const collection = { type: "string", description: `The collection; without it \`${COLLECTION}\`.` };
  const made = [
    tool("remember", "Stores a text.", { text: TEXT, collection }, ["text"], "write", (it) =>
      payload.store(it.collection ?? COLLECTION, { text: it.text }),
    ),
    tool(
      "recall",
      "Finds what was stored.",
      { query: TEXT, limit: { type: "integer", minimum: 1, maximum: 100 }, collection },
      ["query"],
      "read",
      (it) => query(it.query, it.limit ?? RECALLED, it.collection),
    ),
  ];
  if (typeof payload.delete === "function") {
    const ids = { type: "array", items: TEXT };
    made.push(
      tool("forget", "Removes what was stored.", { ids, collection }, ["ids"], "write", (it) =>
        payload.delete(it.collection ?? COLLECTION, it.ids),
      ),
    );
  }
  return made;
}

function textOf(item) {
  const said = [item, item?.text, item?.content, item?.data?.text].find((it) => typeof it === "string");
  return said ?? JSON.stringify(item);
}
