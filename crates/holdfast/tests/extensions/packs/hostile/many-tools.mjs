// Has 5,000 tools.
// problem: only the first 1000 are used
// call: many-tools-0 {}
// answers: 0

const tools = Array.from({ length: 5000 }, (_, n) => ({
  kind: "tool",
  id: `many-tools-${n}`,
  payload: { execute: () => n },
}));

export default { descriptors: tools };
