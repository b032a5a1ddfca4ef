// Answers with what JSON does not have.
// call: strange-results {"what":"bigint"}
// answers: {"n":10}
// call: strange-results {"what":"cycle"}
// fails: refers to a value that contains it
// call: strange-results {"what":"function"}
// answers: null
// call: strange-results {"what":"getter"}
// fails: cannot be read: unreadable
// call: strange-results {"what":"surrogate"}
// answers: "\ufffd"

export default {
  descriptors: [
    {
      kind: "tool",
      id: "strange-results",
      payload: {
        description: "Acts.",
        async execute(args) {
          const cycle = {};
          cycle.cycle = cycle;
          const getter = {
            get it() {
              throw new Error("unreadable");
            },
          };
          return { bigint: { n: 10n }, cycle, function: () => 1, getter, surrogate: "\ud800" }[args.what];
        },
      },
    },
  ],
};
