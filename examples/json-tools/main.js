// Tools for JSON: extract a part of a document, and compare two documents. They are pure functions.

import { invalidArguments, notFound, tool } from "holdfast";

import { differences } from "./differences.js";
import { follow } from "./path.js";

tool(
  {
    name: "json_query",
    description: "Takes a part out of a JSON document by a path such as `users[0].name`; `[*]` takes every item.",
    effects: "pure",
    parameters: {
      document: { description: "The document: JSON, or JSON as text." },
      path: { type: "string", description: "The path, such as `users[*].name`." },
    },
  },
  ({ document, path }) => {
    const found = follow(read(document, "document"), path);
    if (found === undefined) throw notFound(`nothing is at ${path}`);
    return { value: found };
  },
);

tool(
  {
    name: "json_diff",
    description: "Lists how two JSON documents differ: each place with what was there and what is there.",
    effects: "pure",
    parameters: {
      before: { description: "The earlier document: JSON, or JSON as text." },
      after: { description: "The later document: JSON, or JSON as text." },
    },
  },
  ({ before, after }) => differences(read(before, "before"), read(after, "after")),
);

/** Models pass documents both as JSON and as strings that contain JSON. */
function read(document, name) {
  if (typeof document !== "string") return document;
  try {
    return JSON.parse(document);
  } catch (error) {
    throw invalidArguments(`\`${name}\` is not valid JSON: ${error.message}`);
  }
}
