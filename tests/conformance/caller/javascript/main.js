// The caller in JavaScript.
import {
  agents, allow, channels, conversations, discovery, environment, events, files, maintenance, prompts, results, secrets,
  system, timers, tool, toolGate,
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

const to = { agent: "idle", correlation: "c" };
const more = [
  () => events.publish("news.weather", { n: 1 }, "k"),
  () => channels.notify("hello", { channel: "office", user: "ada" }),
  () => channels.list(),
  () => agents.task("rest", to),
  () => agents.background("rest", to),
  () => prompts.enrich("hello", "idle"),
  () => timers.nextDue("every 1h", "Europe/Berlin"),
  () => files.makeFolder("made"),
  () => files.write("made/new.txt", "text"),
  () => files.stat("made/new.txt"),
  () => files.list("made"),
  () => files.remove("made/new.txt"),
  () => environment.get("LANG"),
  () => system.restart("why not"),
];

// What each call answers does not matter here.
function callAll(calls) {
  for (const call of calls) {
    try {
      call();
    } catch (failure) {
      if (failure.tag === undefined) throw failure;
    }
  }
}

tool({ name: "call_all", description: "Makes every call.", effects: "write" }, () => {
  callAll(calls);
  return "made";
});

tool({ name: "call_more", description: "Makes the calls that other tests compare with a class.", effects: "write" }, () => {
  callAll(more);
  return "made";
});

toolGate((call) => {
  if (call.tool === "probe") callAll(calls);
  return allow();
});
