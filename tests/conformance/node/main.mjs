// The conformance extension in Node: every role and every hook point, each doing what its directive says.

import { OBEYS, Obedient, POINTS, TOOLS, shown } from "./directives.mjs";

let host;
let obedient;

const step = (name) => async () => {
  await obedient.directive(name);
};

export async function initialize(context) {
  host = context.holdfast;
  obedient = new Obedient(host.ask, context.logger.info, host.config);
  await obedient.directive("initialize");
}

export const start = step("start");
export const stop = step("stop");
export const destroy = step("destroy");

export async function health() {
  return (await obedient.directive("health"))[0] !== "unwell";
}

export const tools = TOOLS.map((tool) => ({ ...tool, run: (args) => obedient.told("tool", args, args, host.turn) }));
export const hooks = Object.fromEntries(POINTS.map((point) => [point, (request) => obedient.decide(request)]));
export const agent = {
  name: "helper",
  description: "Helps in words.",
  invoke: (task, turn) => obedient.told("agent", task, null, turn),
};
export const commands = [{ name: "obey", description: OBEYS, run: (text) => obedient.told("command", text) }];
export const methods = [{ name: "obey", description: OBEYS, run: (args) => obedient.told("api", args, args) }];
export const render = { call: shown, result: shown };
