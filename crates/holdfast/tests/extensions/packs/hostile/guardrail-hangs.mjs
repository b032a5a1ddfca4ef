// A guardrail that never decides.
// host
// hook: guardrail-hangs guard_input hello
// fails:

export default {
  descriptors: [
    {
      kind: "guardrail",
      id: "guardrail-hangs",
      payload: { config: { timeoutMs: 200 }, evaluateInput: () => new Promise(() => {}) },
    },
  ],
};
