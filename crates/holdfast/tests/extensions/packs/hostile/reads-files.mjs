// Reads files that are not its own.
// host
// call: reads-files {"path":"/etc/shadow"}
// fails:

import { readFileSync } from "node:fs";

export default {
  descriptors: [
    {
      kind: "tool",
      id: "reads-files",
      payload: {
        description: "Acts.",
        async execute(args) {
          return readFileSync(args.path, "utf8").length;
        },
      },
    },
  ],
};
