// Never answers, but lets others run.
// host
// call: never-answers {}
// fails: no answer within

export default {
  descriptors: [
    {
      kind: "tool",
      id: "never-answers",
      payload: {
        description: "Acts.",
        async execute() {
          await new Promise(() => {});
        },
      },
    },
  ],
};
