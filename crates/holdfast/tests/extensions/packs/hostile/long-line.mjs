// Writes a line that is longer than a message may be.
// host
// call: long-line {}
// fails: protocol violation

import { writeSync } from "node:fs";

export default {
  descriptors: [
    {
      kind: "tool",
      id: "long-line",
      payload: {
        description: "Acts.",
        async execute() {
          const part = Buffer.alloc(1 << 16, 120);
          for (;;) {
            try {
              writeSync(0, part);
            } catch (error) {
              if (error.code !== "EAGAIN") throw error;
              await new Promise((done) => setTimeout(done, 1));
            }
          }
        },
      },
    },
  ],
};
