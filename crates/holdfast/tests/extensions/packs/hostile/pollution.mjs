// Changes the objects of the language.
// call: pollution {}
// answers: "changed"
// call: pollution {"again":true}
// answers: "still there"

export default {
  descriptors: [
    {
      kind: "tool",
      id: "pollution",
      payload: {
        description: "Acts.",
        async execute(args) {
          if (args.again) return "still there";
          Object.prototype.toJSON = Array.prototype.toJSON = () => "mine";
          Object.prototype.method = Object.prototype.result = "mine";
          JSON.parse = JSON.stringify = () => {
            throw new Error("mine");
          };
          Promise.prototype.then = Map.prototype.get = Array.prototype.push = String.prototype.slice = JSON.parse;
          globalThis.setTimeout = JSON.parse;
          return "changed";
        },
      },
    },
  ],
};
