// Tells the names of the variables that it has.
// host
// call: reads-environment {}
// answers: []

export default {
  descriptors: [
    {
      kind: "tool",
      id: "reads-environment",
      payload: {
        description: "Acts.",
        async execute() {
          return Object.keys(process.env).filter((name) => /KEY|TOKEN|SECRET/.test(name));
        },
      },
    },
  ],
};
