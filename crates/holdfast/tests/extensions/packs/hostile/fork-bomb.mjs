// Starts programs until that fails.
// host
// call: fork-bomb {}
// answers: "refused"

import { spawn } from "node:child_process";

export default {
  descriptors: [
    {
      kind: "tool",
      id: "fork-bomb",
      payload: {
        description: "Acts.",
        async execute() {
          for (let n = 0; n < 5000; n += 1) {
            const failed = await new Promise((done) => {
              const child = spawn("sleep", ["1000"]);
              child.on("error", () => done(true));
              child.on("spawn", () => done(false));
            });
            if (failed) return "refused";
          }
          return "all were started";
        },
      },
    },
  ],
};
