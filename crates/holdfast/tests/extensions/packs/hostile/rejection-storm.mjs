// Rejects promises that nobody handles.
// call: rejection-storm {}
// answers: "done"
// log: more errors that nobody catches

export default {
  descriptors: [
    {
      kind: "tool",
      id: "rejection-storm",
      payload: {
        description: "Acts.",
        async execute() {
          for (let n = 0; n < 20000; n += 1) Promise.reject(new Error(`number ${n}`));
          return "done";
        },
      },
    },
  ],
};
