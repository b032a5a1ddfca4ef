// A guardrail over answers. `holdfast ext build {{id}}` makes the component, `holdfast ext test {{id}}` runs tests.yaml.

import { allow, block, guardOutput } from "holdfast";

const FORBIDDEN = ["bluebird"];

// Asked about each answer before anybody sees it. A guardrail that fails or is late has blocked.
guardOutput((answer) =>
  FORBIDDEN.some((word) => answer.includes(word)) ? block("the answer holds a forbidden word") : allow(),
);
