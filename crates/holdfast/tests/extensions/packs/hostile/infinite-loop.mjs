// Does not return, and lets nobody else run.
// host
// call: infinite-loop {}
// fails: timed out

export default {
  descriptors: [
    {
      kind: "tool",
      id: "infinite-loop",
      payload: {
        description: "Acts.",
        async execute() {
          for (;;);
        },
      },
    },
  ],
};
