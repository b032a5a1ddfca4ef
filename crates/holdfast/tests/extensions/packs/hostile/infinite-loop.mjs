// Does not return, and lets nobody else run.
// host
// call: infinite-loop {}
// fails: no answer within

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
