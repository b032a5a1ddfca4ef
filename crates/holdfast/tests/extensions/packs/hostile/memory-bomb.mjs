// Allocates until there is no memory.
// host
// call: memory-bomb {}
// fails:

export default {
  descriptors: [
    {
      kind: "tool",
      id: "memory-bomb",
      payload: {
        description: "Acts.",
        async execute() {
          const kept = [];
          for (;;) kept.push(Buffer.alloc(64 << 20, 1));
        },
      },
    },
  ],
};
