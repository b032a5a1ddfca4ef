// Has descriptors that cannot be read.
// problem: left out: unreadable
// call: throwing-descriptors {}
// answers: "fine"

const throwing = (name) => ({
  get [name]() {
    throw new Error("unreadable");
  },
});

export default {
  descriptors: [
    Object.assign(Object.create(throwing("kind")), { id: "a" }),
    Object.assign(Object.create(throwing("payload")), { kind: "tool", id: "b" }),
    { kind: "tool", id: "c", payload: Object.assign(Object.create(throwing("description")), { execute() {} }) },
    { kind: "tool", id: "throwing-descriptors", payload: { execute: () => "fine" } },
  ],
};
