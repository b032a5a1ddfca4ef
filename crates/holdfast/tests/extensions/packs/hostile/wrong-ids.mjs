// Answers a request that nobody made.
// host
// call: wrong-ids {}
// fails: no request is waiting for the response to 999999

import { writeSync } from "node:fs";

export default {
  descriptors: [
    {
      kind: "tool",
      id: "wrong-ids",
      payload: {
        description: "Acts.",
        async execute() {
          writeSync(0, '{"jsonrpc":"2.0","id":999999,"result":1}\n');
          await new Promise(() => {});
        },
      },
    },
  ],
};
