// The host's requests, and what the extension is for the host.

import { apply, bare, create, mapGet, mapSet, OwnMap, OwnPromise } from "./own.mjs";
import { encoded } from "./plain.mjs";
import { Failure, line } from "./report.mjs";
import { rolesOf } from "./roles.mjs";

const PROTOCOL = "0.1";
const LIFE = ["initialize", "start", "stop", "destroy", "health-check"];
/** What is kept free in the answer to `hello`. */
const WELCOME_BYTES = 64 << 10;

/** Serves a pack. */
export class Server {
  constructor(wire, pack) {
    this.wire = wire;
    this.pack = pack;
    this.forget();
  }

  forget() {
    this.roles = undefined;
    this.tools = new OwnMap();
    this.welcome = undefined;
    this.background = undefined;
  }

  /** Answers a request, with an object that has the answer as its `value`. */
  async serve(request) {
    const method = this[`on_${request.method}`];
    if (method === undefined) throw new Failure(`the method \`${request.method}\` is unknown`);
    return bare({ value: await apply(method, this, [request]) });
  }

  on_hello({ params }) {
    this.pack.hello = params;
    if (Number.isInteger(params.line_bytes)) this.wire.most = params.line_bytes;
    if (this.pack.active) return this.welcome;
    return { protocol: PROTOCOL, later: true, functions: { lifecycle: LIFE } };
  }

  async on_initialize() {
    await this.ready();
    return null;
  }

  /** Activates the pack, if it is not. */
  async ready() {
    if (this.pack.active && this.welcome !== undefined) return;
    await this.pack.activate();
    if (this.welcome === undefined) this.describe();
  }

  async on_start() {
    await this.ready();
    await this.pack.pack.start?.();
    return null;
  }

  async on_stop() {
    this.background?.();
    await this.ending("stop", () => this.pack.deactivate());
    return null;
  }

  async on_destroy() {
    this.background?.();
    await this.ending("destroy", () => this.pack.destroy());
    this.forget();
    return null;
  }

  /** Calls a step of a plain extension and ends the pack, also if the step fails: what it says is the answer. */
  async ending(step, end) {
    try {
      await this.pack.pack?.[step]?.();
    } finally {
      await end();
    }
  }

  async on_health() {
    if (!this.pack.active) return false;
    const healthy = await this.pack.pack.health?.();
    return healthy === undefined || healthy === null || Boolean(healthy);
  }

  async on_tool(request) {
    await this.ready();
    const tool = mapGet(this.tools, request.params.tool);
    if (tool === undefined) throw new Failure(`there is no tool \`${request.params.tool}\``);
    return (await tool.run(request)) ?? null;
  }

  async on_hook(request) {
    await this.ready();
    return (await this.hook(request.params)(request)) ?? null;
  }

  /** The function of a hook: of a descriptor, by `extension/kind/id/index`, or of the extension, by its point. */
  hook({ hook, point }) {
    const parts = String(hook).split("/");
    const index = Number(parts.at(-1));
    const path = parts.slice(1, -1);
    const at = (entry) => (entry.hooks?.[index]?.point === point ? entry.hooks[index] : undefined);
    const entries = this.pack.entries;
    const exact = entries.find((it) => it.kind === path[0] && it.id === path.slice(1).join("/") && at(it));
    const loose = exact ?? entries.find((it) => it.id === path.join("/") && at(it));
    if (loose !== undefined) return at(loose).decide;
    const hooks = this.pack.pack.hooks ?? {};
    if (typeof hooks[point] === "function") return (request) => hooks[point](request.params);
    throw new Failure(`there is no hook \`${hook}\` at ${point}`);
  }

  async on_api({ params }) {
    await this.ready();
    const method = this.roles.methods?.find((it) => it.name === params.method);
    if (method === undefined) throw new Failure(`there is no method \`${params.method}\``);
    return (await method.run(params.arguments)) ?? null;
  }

  async on_task({ params }) {
    await this.ready();
    if (typeof this.pack.pack.executeTask !== "function") throw new Failure("there is no function `executeTask`");
    return (await this.pack.pack.executeTask(params.task)) ?? null;
  }

  async on_function(request) {
    await this.ready();
    const { role, function: name, arguments: args } = request.params;
    if (role === "service") return this.live();
    const object = this.pack.pack;
    if (role === "agent") return (await object.agent.invoke(args.task, args.turn)) ?? null;
    if (role === "commands") return this.command(args);
    if (role === "renderer")
      return (
        (await object.render[name === "render-call" ? "call" : "result"](args.tool, args.arguments ?? args.result)) ??
        null
      );
    return this.described(role, name, request);
  }

  async command({ name, arguments: args }) {
    const command = this.roles.commands?.find((it) => it.name === name);
    if (command === undefined) throw new Failure(`there is no command \`${name}\``);
    return (await command.run(args)) ?? null;
  }

  /** A function of descriptors: all that have it are called, and the first answer counts. */
  async described(role, name, request) {
    const functions = this.pack.entries.map((it) => it.functions?.[role]?.[name]).filter((it) => it !== undefined);
    if (functions.length === 0) throw new Failure(`there is no function \`${name}\` of the role ${role}`);
    let answer = null;
    for (const it of functions) answer ??= (await it(request)) ?? null;
    return answer;
  }

  /**
   * Lasts until the extension stops: so timers and connections of the pack always have a call that they belong to.
   */
  live() {
    return new OwnPromise((resolve) => {
      this.background = () => resolve(null);
    });
  }

  // What it is.

  describe() {
    const { pack } = this;
    this.roles = rolesOf(pack.pack, pack);
    const sheets = [];
    const add = (tool, more) => {
      if (mapGet(this.tools, tool.sheet.name) !== undefined) {
        return pack.problem(`the tool \`${tool.sheet.name}\` is there twice: the first is used`);
      }
      mapSet(this.tools, tool.sheet.name, tool);
      sheets.push(present({ ...tool.sheet, ...more }));
    };
    for (const entry of pack.entries) {
      const more = { priority: entry.priority, required_secrets: listOr(entry.required) };
      for (const tool of entry.tools ?? []) add(tool, more);
    }
    for (const tool of this.roles.tools) add(tool, {});
    const { agent, commands, methods, hooks } = this.roles;
    const functions = this.functions();
    this.wire.lasts = functions.service !== undefined;
    this.welcome = this.fitting({
      protocol: PROTOCOL,
      tools: listOr(sheets),
      descriptors: listOr(pack.entries.filter((it) => it.kind !== "tool").map(sheetOf)),
      hooks: listOr(hooks),
      agent,
      commands: commands?.map(nameAndDescription),
      methods: methods?.map(nameAndDescription),
      functions,
    });
  }

  functions() {
    const { agent, commands, renderer } = this.roles;
    const functions = {};
    for (const entry of this.pack.entries) {
      for (const [role, names] of Object.entries(entry.functions ?? {})) functions[role] = Object.keys(names);
    }
    if (agent !== undefined) functions.agent = ["invoke"];
    if (commands !== undefined) functions.commands = ["run"];
    if (renderer.length > 0) functions.renderer = renderer;
    if (typeof this.pack.pack.executeTask === "function") functions.scheduler = ["execute-task"];
    if (this.pack.lasts()) {
      functions.lifecycle = LIFE;
      functions.service = ["run-background"];
    }
    return functions;
  }

  /** The answer to `hello`, without the last descriptors and tools if it would be too long for a line. */
  fitting(welcome) {
    const { pack } = this;
    for (;;) {
      try {
        const whole = present({ ...welcome, problems: listOr(pack.problems) });
        encoded(whole, this.wire.most - WELCOME_BYTES);
        return whole;
      } catch (error) {
        const longest = (welcome.descriptors?.length ?? 0) > (welcome.tools?.length ?? 0) ? "descriptors" : "tools";
        const list = welcome[longest] ?? [];
        if (list.length === 0) throw new Failure(`its description is too long: ${line(error)}`);
        welcome[longest] = list.slice(0, list.length >> 1);
        pack.problem(
          `the description is too long: only the first ${welcome[longest].length} ${longest} are registered`,
        );
      }
    }
  }
}

function sheetOf(entry) {
  const hooks = entry.hooks?.map(({ point, priority, timeout_ms, streams }) =>
    present({ point, priority, timeout_ms, streams }),
  );
  return present({
    kind: entry.kind,
    id: entry.id,
    description: entry.description || undefined,
    priority: entry.priority,
    required_secrets: listOr(entry.required),
    hooks,
    payload: entry.payload,
  });
}

function nameAndDescription({ name, description }) {
  return { name, description: typeof description === "string" ? description : "" };
}

function listOr(list) {
  return list === undefined || list.length === 0 ? undefined : list;
}

/** The fields that have a value. */
function present(fields) {
  const made = create(null);
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) made[name] = value;
  return made;
}
