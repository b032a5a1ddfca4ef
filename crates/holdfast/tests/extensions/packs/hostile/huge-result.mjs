// Answers with 100 MB.
// call: huge-result {}
// fails: it is too large

export default {
  descriptors: [
    {
      kind: "tool",
      id: "huge-result",
      payload: {
        description: "Acts.",
        async execute() {
          return "x".repeat(100 << 20);
        },
      },
    },
  ],
};
