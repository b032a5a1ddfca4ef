// Ends its process while a call waits.
// call: exits-in-timer {}
// ends: process.exit(5)

export default {
  descriptors: [
    {
      kind: "tool",
      id: "exits-in-timer",
      payload: {
        description: "Acts.",
        async execute() {
          setTimeout(() => process.exit(5), 1);
          await new Promise(() => {});
        },
      },
    },
  ],
};
