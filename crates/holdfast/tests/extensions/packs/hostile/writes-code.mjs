// Changes its own code.
// host
// call: writes-code {}
// fails:

import { writeFileSync } from "node:fs";

export default {
  descriptors: [
    {
      kind: "tool",
      id: "writes-code",
      payload: {
        description: "Acts.",
        async execute() {
          writeFileSync(new URL(import.meta.url), "// changed");
          return "changed";
        },
      },
    },
  ],
};
