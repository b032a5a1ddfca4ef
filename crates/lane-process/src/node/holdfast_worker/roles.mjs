// What an extension may have besides descriptors: tools by name, hooks by point, an agent, commands, methods for
// other extensions, renderers, and the steps of a life.

import { toolOf } from "./kinds/tool.mjs";
import { Failure, line } from "./report.mjs";

/** The roles of a pack or of the exports of a plain extension. */
export function rolesOf(object, pack) {
  const hooks = object.hooks ?? {};
  return {
    tools: toolsOf(object.tools, pack),
    hooks: Object.keys(hooks).filter((point) => typeof hooks[point] === "function"),
    agent: sheetOf(object.agent, "invoke"),
    commands: named(object.commands, "commands"),
    methods: named(object.methods, "methods"),
    renderer: ["call", "result"].filter((it) => typeof object.render?.[it] === "function").map((it) => `render-${it}`),
  };
}

function toolsOf(tools, pack) {
  const made = [];
  for (const tool of listed(tools)) {
    try {
      if (typeof tool?.name !== "string") throw new Failure("it has no `name`");
      made.push(toolOf(tool, tool.name, pack));
    } catch (error) {
      pack.problem(`the tool \`${String(tool?.name)}\` is left out: ${line(error)}`);
    }
  }
  return made;
}

/** A list, or a mapping of names to things or to functions. */
function listed(things) {
  if (Array.isArray(things)) return things;
  const all = Object.entries(things ?? {});
  return all.map(([name, it]) => (typeof it === "function" ? { name, run: it } : { name, ...it }));
}

function named(things, what) {
  if (things === undefined) return undefined;
  const all = listed(things);
  for (const it of all) {
    if (typeof it?.name !== "string" || typeof it.run !== "function")
      throw new Failure(`each of \`${what}\` needs a \`name\` and a function \`run\``);
  }
  return all;
}

function sheetOf(agent, method) {
  if (agent === undefined || agent === null) return undefined;
  if (typeof agent.name !== "string" || typeof agent[method] !== "function") {
    throw new Failure(`\`agent\` needs a \`name\` and a function \`${method}\``);
  }
  const sheet = { name: agent.name, description: typeof agent.description === "string" ? agent.description : "" };
  if (agent.effects !== undefined) sheet.effects = agent.effects;
  return sheet;
}
