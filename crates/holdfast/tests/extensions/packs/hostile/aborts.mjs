// Aborts its process.
// call: aborts {}
// ends: process.abort()

export default {
  descriptors: [
    {
      kind: "tool",
      id: "aborts",
      payload: {
        description: "Acts.",
        async execute() {
          process.abort();
        },
      },
    },
  ],
};
