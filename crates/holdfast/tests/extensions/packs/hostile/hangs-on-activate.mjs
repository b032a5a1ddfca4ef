// Has a descriptor that never becomes active.
// problem: has not ended within
// call: hangs-on-activate {}
// answers: "fine"

export default {
  descriptors: [
    { kind: "tool", id: "a", payload: { execute() {} }, onActivate: () => new Promise(() => {}) },
    { kind: "tool", id: "hangs-on-activate", payload: { execute: () => "fine" } },
  ],
};
