// Reads standard input, and lets a program read it.
// call: reads-input {}
// answers: [0,0]

import { execFileSync } from "node:child_process";

export default {
  descriptors: [
    {
      kind: "tool",
      id: "reads-input",
      payload: {
        description: "Acts.",
        async execute() {
          let read = 0;
          for await (const chunk of process.stdin) read += chunk.length;
          return [read, execFileSync("cat", { stdio: ["inherit", "pipe", "inherit"] }).length];
        },
      },
    },
  ],
};
