// Never ends.
// call: hangs-on-deactivate {}
// answers: "fine"
// stop

export default {
  descriptors: [
    {
      kind: "tool",
      id: "hangs-on-deactivate",
      payload: { execute: () => "fine" },
      onDeactivate: () => new Promise(() => {}),
    },
  ],
};
