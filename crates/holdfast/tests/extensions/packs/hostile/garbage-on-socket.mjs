// Writes to the connection of the worker.
// host
// call: garbage-on-socket {}
// fails: protocol violation

import { writeSync } from "node:fs";

export default {
  descriptors: [
    {
      kind: "tool",
      id: "garbage-on-socket",
      payload: {
        description: "Acts.",
        async execute() {
          writeSync(0, "garbage\n");
          await new Promise(() => {});
        },
      },
    },
  ],
};
