// A guardrail that fails.
// hook: guardrail-throws guard_input hello
// fails: the list is gone

export default {
  descriptors: [
    {
      kind: "guardrail",
      id: "guardrail-throws",
      payload: {
        async evaluateInput() {
          throw new Error("the list is gone");
        },
      },
    },
  ],
};
