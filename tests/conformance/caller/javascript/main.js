// The caller in JavaScript.
import {
  agents, allow, conversations, discovery, maintenance, prompts, results, secrets, tool, toolGate,
} from "holdfast";

const calls = [
  () => secrets.keep("TOKEN", "hunter2"),
  () => agents.list(),
  () => agents.invokeTool("hum", { n: 1 }),
  () => agents.invokeModel("a line", { instructions: "be brief", agent: "poet" }),
  () => prompts.describeAgent("poet"),
  () => conversations.listThreads({ channel: "chat", archived: true }),
  () => conversations.updateThread("t1", { title: "Plans" }),
  () => conversations.history("t1"),
  () => conversations.listProjects(),
  () => conversations.updateProject({ name: "Garden" }, "garden"),
  () => conversations.removeProject("garden"),
  () => results.read(2 ** 32 + 1, 0, 10),
  () => discovery.findTools("hum", 3),
  () => discovery.listCapabilities(),
  () => maintenance.open(),
  () => maintenance.show("nobody"),
  () => maintenance.apply("nobody", "x", 1),
  () => maintenance.doctor("nobody"),
];

// What each call answers does not matter here.
function callAll() {
  for (const call of calls) {
    try {
      call();
    } catch (failure) {
      if (failure.tag === undefined) throw failure;
    }
  }
}

tool({ name: "call_all", description: "Makes every call.", effects: "write" }, () => {
  callAll();
  return "made";
});

toolGate((call) => {
  if (call.tool === "probe") callAll();
  return allow();
});
