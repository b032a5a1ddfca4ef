// A guardrail that decides on what there is not.
// hook: guardrail-garbage guard_input hello
// fails: unknown action

export default {
  descriptors: [
    { kind: "guardrail", id: "guardrail-garbage", payload: { evaluateInput: () => ({ action: "applaud" }) } },
  ],
};
