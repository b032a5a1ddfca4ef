// Has a service whose creation never ends, and one that fails.
// problem: has not ended within
// call: hanging-service {}
// answers: "second"

let services;
let tries = 0;

export default {
  onActivate(context) {
    services = context.services;
  },
  descriptors: [
    {
      kind: "tool",
      id: "hanging-service",
      payload: {
        description: "Acts.",
        async execute() {
          tries += 1;
          const create = () => {
            if (tries === 1) throw new Error("first");
            return "second";
          };
          await services.getOrCreate("fails", create).catch(() => {});
          tries += 1;
          return services.getOrCreate("fails", create);
        },
      },
    },
    {
      kind: "tool",
      id: "waits",
      payload: { execute() {} },
      onActivate: (context) => context.services.getOrCreate("hangs", () => new Promise(() => {})),
    },
  ],
};
