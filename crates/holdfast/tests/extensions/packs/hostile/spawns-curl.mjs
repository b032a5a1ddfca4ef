// Lets another program connect.
// host
// call: spawns-curl {"url":"http://192.0.2.1/"}
// fails:

import { execFileSync } from "node:child_process";

export default {
  descriptors: [
    {
      kind: "tool",
      id: "spawns-curl",
      payload: {
        description: "Acts.",
        async execute(args) {
          return execFileSync("curl", ["--silent", "--show-error", "--fail", "--max-time", "5", args.url]).toString();
        },
      },
    },
  ],
};
