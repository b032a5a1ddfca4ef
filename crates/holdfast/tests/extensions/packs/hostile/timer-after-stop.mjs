// Goes on after it was stopped.
// call: timer-after-stop {}
// answers: "fine"
// stop

export default {
  onActivate({ holdfast }) {
    setInterval(() => holdfast.ask("clock").catch(() => {}), 1);
  },
  descriptors: [{ kind: "tool", id: "timer-after-stop", payload: { execute: () => "fine" } }],
};
