// Ends its process in a call.
// call: exits-in-call {}
// ends: process.exit(3)

export default {
  descriptors: [
    {
      kind: "tool",
      id: "exits-in-call",
      payload: {
        description: "Acts.",
        async execute() {
          process.exit(3);
        },
      },
    },
  ],
};
