// Kills the process that started it, as far as it sees one.
// host
// call: kills-parent {}
// answers: "alive"

export default {
  descriptors: [
    {
      kind: "tool",
      id: "kills-parent",
      payload: {
        description: "Acts.",
        async execute() {
          for (const id of [process.ppid, -1]) {
            try {
              if (id !== 0) process.kill(id, "SIGKILL");
            } catch {
              // It is not there.
            }
          }
          return "alive";
        },
      },
    },
  ],
};
