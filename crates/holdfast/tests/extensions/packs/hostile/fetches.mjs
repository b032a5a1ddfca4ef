// Connects to a host that it was not granted.
// host
// call: fetches {"url":"http://192.0.2.1/"}
// fails: fetch failed
// call: fetches {"url":"http://169.254.169.254/latest/meta-data/"}
// fails: fetch failed

export default {
  descriptors: [
    {
      kind: "tool",
      id: "fetches",
      payload: {
        description: "Acts.",
        async execute(args) {
          return (await fetch(args.url)).status;
        },
      },
    },
  ],
};
