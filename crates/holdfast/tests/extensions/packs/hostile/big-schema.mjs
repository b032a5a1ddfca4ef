// Has schemas that are huge, or contain themselves.
// problem: tool `big` is left out: it is too large
// call: big-schema {}
// answers: "fine"

const round = {};
round.properties = { round };

export default {
  descriptors: [
    { kind: "tool", id: "big", payload: { inputSchema: { description: "x".repeat(1 << 20) }, execute() {} } },
    { kind: "tool", id: "round", payload: { inputSchema: round, execute() {} } },
    { kind: "tool", id: "big-schema", payload: { execute: () => "fine" } },
  ],
};
