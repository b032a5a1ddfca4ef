// A guardrail over answers. `holdfast ext build {{id}}` builds the component, `holdfast ext test {{id}}` runs tests.yaml.

import { allow, block, guardOutput } from "holdfast";

const FORBIDDEN = ["bluebird"];

// Called for each answer before it is shown. A guardrail that fails or times out blocks the answer.
guardOutput((answer) =>
  FORBIDDEN.some((word) => answer.includes(word)) ? block("the answer holds a forbidden word") : allow(),
);
