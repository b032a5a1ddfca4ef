// Starts threads until that fails.
// host
// call: worker-bomb {}
// fails:

import { Worker } from "node:worker_threads";

export default {
  descriptors: [
    {
      kind: "tool",
      id: "worker-bomb",
      payload: {
        description: "Acts.",
        async execute() {
          for (let n = 0; n < 2000; n += 1) {
            const worker = new Worker("setInterval(() => {}, 1000)", { eval: true });
            await new Promise((done, failed) => worker.once("online", done).once("error", failed));
          }
          return "all were started";
        },
      },
    },
  ],
};
