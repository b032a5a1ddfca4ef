// Prints without end.
// host
// call: log-flood {}
// answers: "done"

export default {
  descriptors: [
    {
      kind: "tool",
      id: "log-flood",
      payload: {
        description: "Acts.",
        async execute() {
          for (let n = 0; n < 200000; n += 1) console.log("x".repeat(100));
          return "done";
        },
      },
    },
  ],
};
