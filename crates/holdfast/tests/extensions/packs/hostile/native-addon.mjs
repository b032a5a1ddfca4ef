// Loads a library that it has written.
// call: native-addon {}
// fails:

import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export default {
  descriptors: [
    {
      kind: "tool",
      id: "native-addon",
      payload: {
        description: "Acts.",
        async execute() {
          const file = join(tmpdir(), "addon.node");
          writeFileSync(file, "\x7fELF");
          process.dlopen({ exports: {} }, file);
          return "loaded";
        },
      },
    },
  ],
};
