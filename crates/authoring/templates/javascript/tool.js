// A tool. `holdfast ext build {{id}}` builds the component, `holdfast ext test {{id}}` runs tests.yaml.

import { tool } from "holdfast";

tool(
  {
    name: "count_words",
    description: "Counts the words of a text.",
    effects: "pure",
    // Names with a JSON Schema each; `optional: true` for what may be left out.
    parameters: { text: { type: "string", description: "The text to count." } },
  },
  ({ text }) => text.split(/\s+/).filter(Boolean).length,
);
