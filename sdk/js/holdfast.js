// Holdfast extensions in JavaScript. A tool is a function with a description, and a hook is a function:
//
//     import { tool, toolGate, allow, deny } from "holdfast";
//
//     tool({ name: "count_words", description: "Counts the words of a text.", effects: "pure",
//            parameters: { text: "string" } },
//          ({ text }) => text.split(/\s+/).filter(Boolean).length);
//
//     toolGate((call) => (call.tool === "delete" ? deny("nothing is deleted here") : allow()));
//
// The interfaces of the host are `log`, `config`, `state` and the similar objects below. `holdfast ext build` builds the component; it
// scans the imports from this module, so import names, not everything.

import { host } from "./host.js";

const registered = { tools: new Map(), commands: new Map(), methods: new Map(), hooks: new Map(), agent: null, setup: null };

/** Why there is no result. The text is for the model and the user. */
export class Failure extends Error {
  constructor(message, tag = "failed") {
    super(message);
    this.tag = tag;
  }
}

/** The arguments are invalid. */
export const invalidArguments = (message) => new Failure(message, "invalid-arguments");
/** It was refused. */
export const denied = (message) => new Failure(message, "denied");
/** The requested item does not exist. */
export const notFound = (message) => new Failure(message, "not-found");

/** A gate or a guardrail: allows the call or text. */
export const allow = () => ({ tag: "allow" });
/** A gate: refuses the call. */
export const deny = (reason) => ({ tag: "deny", val: String(reason) });
/** A gate: asks a person to decide. */
export const ask = (reason) => ({ tag: "ask", val: String(reason) });
/** A guardrail or a sanitizer: allows the text, with a remark. */
export const flag = (reason) => ({ tag: "flag", val: String(reason) });
/** A guardrail or a sanitizer: blocks the text. */
export const block = (reason) => ({ tag: "block", val: String(reason) });
/** A sanitizer: leaves the text unchanged. */
export const unchanged = () => ({ tag: "unchanged" });
/** A sanitizer: replaces the text, by text or by any JSON value. */
export const replace = (content) => ({ tag: "replaced", val: toContent(content) });

const EFFECTS = ["unknown", "pure", "read", "write", "exec", "network"];

/**
 * A tool that a model may call. `parameters` is a JSON Schema of an object, or short: names with a type each, such as
 * `{ text: "string", limit: "integer?" }`, or with a schema each. A question mark makes one optional.
 */
export function tool({ name, description, effects = "unknown", parameters = {}, output, timeoutMs, render }, run) {
  if (!name || !description) throw new TypeError("a tool needs a name and a description");
  if (!EFFECTS.includes(effects)) throw new TypeError(`effects is ${effects}; it is one of ${EFFECTS.join(", ")}`);
  if (typeof run !== "function") throw new TypeError(`the tool ${name} needs a function`);
  registered.tools.set(name, { name, description, effects, schema: toSchema(parameters), output, timeoutMs, render, run });
}

/** A slash command: a function from the rest of the line to an answer. */
export function command({ name, description }, run) {
  registered.commands.set(name, { name, description, run });
}

/** A method that other extensions may call. */
export function method({ name, description = "" }, run) {
  registered.methods.set(name, { name, description, run });
}

/** An agent: a function from a task to an answer. `integration` is `tool` or `handoff`. */
export function agent({ id, description, integration = "tool" }, run) {
  registered.agent = { id, description, integration, run };
}

const hook = (name) => (run) => {
  if (registered.hooks.has(name)) throw new TypeError(`there are two functions for ${name}`);
  registered.hooks.set(name, run);
};

/** Once, before anything else: () => void */
export const initialize = hook("initialize");
/** Starts work: () => void */
export const start = hook("start");
/** Stops work: () => void */
export const stop = hook("stop");
/** Releases resources: () => void */
export const destroy = hook("destroy");
/** Whether it is healthy: () => boolean */
export const healthCheck = hook("healthCheck");
/** A session began: () => void */
export const sessionStart = hook("sessionStart");
/** A session ended: () => void */
export const sessionEnd = hook("sessionEnd");
/** A turn was cancelled: () => void */
export const sessionCancel = hook("sessionCancel");
/** A turn begins: () => void */
export const turnStart = hook("turnStart");
/** A turn is about to end: (answer or null) => void */
export const turnEnd = hook("turnEnd");
/** May rewrite the user's text: (text) => text or null */
export const inputNormalise = hook("inputNormalise");
/** (text) => unchanged(), replace(), flag() or block() */
export const sanitizeInput = hook("sanitizeInput");
/** (text) => allow(), flag() or block() */
export const guardInput = hook("guardInput");
/** Adds to the system role: (prompt) => text or null */
export const context = hook("context");
/** Names a model: (prompt) => { model, reason, authoritative } or null */
export const modelRoute = hook("modelRoute");
/** (call) => { arguments, implementation } or null */
export const toolModify = hook("toolModify");
/** (call) => allow(), deny() or ask() */
export const toolGate = hook("toolGate");
/** (call, result) => { result, artifacts: [{ name, mediaType, content }], render } or null */
export const toolAfter = hook("toolAfter");
/** (call, result) => unchanged(), replace(), flag() or block() */
export const sanitizeResult = hook("sanitizeResult");
/** (call, result) => allow(), flag() or block() */
export const guardResult = hook("guardResult");
/** (answer) => unchanged(), replace(), flag() or block() */
export const sanitizeOutput = hook("sanitizeOutput");
/** (answer) => allow(), flag() or block() */
export const guardOutput = hook("guardOutput");
/** (chunk) => allow(), flag() or block() */
export const guardChunk = hook("guardChunk");
/** Rewrites the answer: (answer) => text or null */
export const responseProcess = hook("responseProcess");
/** () => { instructions, keep } or null */
export const compactionBefore = hook("compactionBefore");
/** Writes the summary: (messages) => text or null */
export const compactionProvide = hook("compactionProvide");
/** (tool, arguments) => Markdown or null */
export const renderCall = hook("renderCall");
/** (tool, result) => Markdown or null */
export const renderResult = hook("renderResult");
/** Runs a task of the manifest's schedules: (task) => text, any JSON value or null; `{ text }` tells the user that text */
export const executeTask = hook("executeTask");
/** Takes an event: ({ id, topic, payload, key, correlation, attempt, repeat }) => void */
export const onEvent = hook("onEvent");
/** A loop in the background, until the extension stops: () => void. Between two waits it has the budget of one call. */
export const runBackground = hook("runBackground");
/** A channel: sends a text to a user that the channel itself has named: (user, text, { id, repeat }) => void */
export const sendToUser = hook("sendToUser");
/** A channel that knows whom to write to: (text, { id, repeat }) => void */
export const sendMessage = hook("sendMessage");
/** A channel that sends files: (user or null, { name, mediaType, content }, { id, repeat }) => void; the content is bytes */
export const sendFile = hook("sendFile");
/** A channel with buttons: (user, text, [{ label, answer }], { id, repeat }) => void */
export const sendQuestion = hook("sendQuestion");

/**
 * A channel that shows an answer while it is written: `start(user, id)`, `chunk(user, id, text)`, `status(user, id, status)` and
 * `end(user, id, text, { id, repeat })`. The text at the end is what counts.
 */
export function streamingChannel({ start, chunk, status, end }) {
  for (const [name, run] of Object.entries({ start, chunk, status, end }))
    if (typeof run !== "function") throw new TypeError(`a streaming channel needs the function ${name}`);
  hook("streamStart")(start);
  hook("streamChunk")(chunk);
  hook("streamStatus")(status);
  hook("streamEnd")(end);
}

/**
 * The parameters that the extension needs: `schema()` gives a list of `{ name, description, secret, required }`, `apply(values)` takes
 * answers over, a secret as its reference, and `complete()` gives a word for the user, or throws what is missing.
 */
export function setup({ schema, apply, complete }) {
  for (const [name, run] of Object.entries({ schema, apply, complete }))
    if (typeof run !== "function") throw new TypeError(`a setup needs the function ${name}`);
  if (registered.setup) throw new TypeError("there are two setups");
  registered.setup = { schema, apply, complete };
}

/** An interface of the host, which `ext build` links if the source or the grants name it. */
function linked(name) {
  if (!host[name]) throw new Failure(`the host interface ${name} is not linked; import it from holdfast by its name`);
  return host[name];
}

/** Calls the host; its failures become the SDK's. */
function called(name, run) {
  const functions = linked(name);
  return inItsWords(() => run(functions));
}

function inItsWords(run) {
  try {
    return run();
  } catch (error) {
    const failure = error?.payload ?? error;
    throw failure?.tag ? new Failure(failure.val, failure.tag) : error;
  }
}

// A component has no clock and no random numbers of its own. Those of the host are recorded.
Date.now = () => linked("clock").now();
Math.random = () => linked("random").bytes(4).reduce((sum, byte) => (sum + byte) / 256, 0);

const parsed = (text) => (text === null || text === undefined ? null : JSON.parse(text));

/** Lines for the host's log. */
export const log = Object.fromEntries(
  ["debug", "info", "warning", "error"].map((level) => [level, (message) => linked("log").log(level, String(message))]),
);
/** The extension's configuration. */
export const config = {
  get: (name) => parsed(linked("config").get(name)),
  all: () => JSON.parse(linked("config").all()),
};
/** The turn that is served. */
export const session = { current: () => linked("session").current() };
/** Persistent values of this extension in this session. */
export const state = {
  get: (key) => called("state", (it) => parsed(it.get(key))),
  set: (key, value) => called("state", (it) => it.set(key, JSON.stringify(value))),
  remove: (key) => called("state", (it) => it.set(key, null)),
};
/** Messages for the conversation. */
export const messages = { inject: (text) => called("messages", (it) => it.inject(text)) };
/** The time, recorded. */
export const clock = { now: () => linked("clock").now() };
/** Random bytes, recorded. */
export const random = { bytes: (count) => linked("random").bytes(count) };
/** The bus. Needs the grant `events`. */
export const events = {
  publish: (topic, payload, key = null) => called("events", (it) => it.publish(topic, JSON.stringify(payload), key)),
  /** With everything that an event can have; gives its id. */
  publishEvent: ({ topic, payload, key, correlation, idempotency }) =>
    called("events", (it) =>
      it.publishEvent({
        topic,
        payload: JSON.stringify(payload ?? null),
        key: key ?? null,
        correlation: correlation ?? null,
        idempotency: idempotency ?? null,
      }),
    ),
};
/** Subscriptions besides those in the manifest. Needs the grant `subscriptions`. */
export const subscriptions = {
  subscribe: (topic) => called("subscriptions", (it) => it.subscribe(topic)),
  unsubscribe: (topic) => called("subscriptions", (it) => it.unsubscribe(topic)),
};
/** Questions to the user. Needs the grant `ui`. */
export const ui = {
  select: (prompt, options) => called("ui", (it) => it.select(prompt, options)),
  confirm: (prompt) => called("ui", (it) => it.confirm(prompt)),
  input: (prompt) => called("ui", (it) => it.input(prompt)),
  custom: (kind, prompt, payload) => called("ui", (it) => parsed(it.custom(kind, prompt, JSON.stringify(payload)))),
};
/** Secrets: the extension's own, and those that are granted by name. Prefer the reference, which the host replaces. */
export const secrets = {
  reference: (name) => called("secrets", (it) => it.reference(name)),
  get: (name) => called("secrets", (it) => it.get(name)),
  /** Stores a secret of the extension; an empty value removes it. */
  keep: (name, value) => called("secrets", (it) => it.keep(name, value)),
};
/** Waiting, and when a schedule is next due. Not for hooks. */
export const timers = {
  waitUntil: (moment) => called("timers", (it) => it.waitUntil(moment)),
  nextDue: (when, timezone = null) => called("timers", (it) => it.nextDue(when, timezone)),
};
/** Methods of the extensions that this one depends on. Needs the grant `extensions`. */
export const extensions = {
  call: (extension, method, given) =>
    called("extensions", (it) => fromContent(it.call(extension, method, JSON.stringify(given ?? null)))),
};
/** Services that extensions share: `<extension>/<name>`. Needs the grant `services`. */
export const services = {
  get: (key, given) => called("services", (it) => fromContent(it.get(key, JSON.stringify(given ?? null)))),
  call: (key, method, given) =>
    called("services", (it) => fromContent(it.call(key, method, JSON.stringify(given ?? null)))),
};
const recipient = ({ channel, user, correlation } = {}) => ({
  channel: channel ?? null,
  user: user ?? null,
  correlation: correlation ?? null,
});
/**
 * An agent at work. Iterate for what happens meanwhile: `{ text }`, or `{ tool, arguments }`. It is cancelled if it is closed before its
 * end.
 */
export class Invocation {
  #invocation;
  constructor(invocation) {
    this.#invocation = invocation;
  }
  *[Symbol.iterator]() {
    for (let update; (update = this.#invocation.next()); )
      yield update.tag === "text" ? { text: update.val } : { tool: update.val.tool, arguments: JSON.parse(update.val.arguments) };
  }
  /** Waits until the agent has finished, and gives its answer. */
  answer() {
    return inItsWords(() => fromContent(this.#invocation.answer()));
  }
  close() {
    this.#invocation[Symbol.dispose]?.();
  }
}
/** The agents. Needs the grant `agents`. */
export const agents = {
  invoke: (task, agent = null) => called("agents", (it) => fromContent(it.invoke(agent, task))),
  /** The same, to be followed; gives an `Invocation`. */
  invokeStreamed: (task, agent = null) => called("agents", (it) => new Invocation(it.invokeStreamed(agent, task))),
  task: (task, { agent, ...to } = {}) => called("agents", (it) => it.task(agent ?? null, task, recipient(to))),
  background: (task, { agent, ...to } = {}) =>
    called("agents", (it) => it.background(agent ?? null, task, recipient(to))),
  /** The agents that can be asked. */
  list: () => called("agents", (it) => parsed(it.list())),
  /** Runs a tool that the extension's agent has. */
  invokeTool: (tool, given) => called("agents", (it) => fromContent(it.invokeTool(tool, JSON.stringify(given ?? null)))),
  /** Asks the model that an agent uses; gives its text. */
  invokeModel: (prompt, { instructions = "", agent = null } = {}) =>
    called("agents", (it) => it.invokeModel(prompt, instructions, agent)),
};
/** The channels that reach the user. Needs the grant `channels`. */
export const channels = {
  notify: (text, { channel, user } = {}) => called("channels", (it) => it.notify(text, channel ?? null, user ?? null)),
  list: () => called("channels", (it) => it.list()),
};
/** Prompts. Needs the grant `context`. */
export const prompts = {
  enrich: (prompt, agent = null) => called("prompts", (it) => it.enrich(prompt, agent)),
  /** An agent's models; of the extension's own also its instructions, tools, limits and parameters. */
  describeAgent: (agent = null) => called("prompts", (it) => parsed(it.describeAgent(agent))),
};
/** Conversations, and the projects that they are in. Needs the grant `conversations`. */
export const conversations = {
  listThreads: ({ thread = null, channel = null, project = null, archived = false } = {}) =>
    called("conversations", (it) => parsed(it.listThreads({ thread, channel, project, archived }))),
  /** `changes`: `title` and `project`, which null removes, `archived`, and `channel` to create a conversation. */
  updateThread: (thread, changes) =>
    called("conversations", (it) => parsed(it.updateThread(thread, JSON.stringify(changes)))),
  history: (thread) => called("conversations", (it) => parsed(it.history(thread))),
  listProjects: () => called("conversations", (it) => parsed(it.listProjects())),
  /** Changes a project, or creates one if none is named. */
  updateProject: (fields, project = null) =>
    called("conversations", (it) => parsed(it.updateProject(project, JSON.stringify(fields)))),
  removeProject: (project) => called("conversations", (it) => it.removeProject(project)),
};
/** Tool results that this extension has truncated. Needs the grant `results`. */
export const results = {
  /** `{ text, offset, end, total }`; the call is the id that a hook was given. */
  read: (call, offset, limit) => called("results", (it) => parsed(it.read(call, offset, limit))),
};
/** The extensions and tools of this session. Needs the grant `discovery`. */
export const discovery = {
  findTools: (query, limit = null) => called("discovery", (it) => parsed(it.findTools(query, limit))),
  listCapabilities: () => called("discovery", (it) => parsed(it.listCapabilities())),
};
/** Setting up and examining extensions. Needs the grant `setup`. */
export const maintenance = {
  open: () => called("maintenance", (it) => parsed(it.open())),
  show: (extension) => called("maintenance", (it) => parsed(it.show(extension))),
  apply: (extension, name, value) =>
    called("maintenance", (it) => parsed(it.apply(extension, name, JSON.stringify(value ?? null)))),
  doctor: (extension = null) => called("maintenance", (it) => parsed(it.doctor(extension))),
};
/** The process. Needs the grant `system`. */
export const system = { restart: (reason = null) => called("system", (it) => it.restart(reason)) };
/** Requests over HTTP. Needs a granted host, or the grant `http`. `headers` is an object or a list of pairs; a body is text or bytes. */
export const http = {
  send: ({ method = "GET", url, headers = {}, body = "", timeoutMs = null }) =>
    called("http", (it) => {
      const pairs = Array.isArray(headers) ? headers : Object.entries(headers);
      const response = it.send({ method, url, headers: pairs, body: toBytes(body), timeoutMs });
      const bytes = Uint8Array.from(response.body);
      return { status: response.status, headers: response.headers, body: bytes, text: () => fromBytes(bytes) };
    }),
};
/** Files in the extension's own data folder and in granted folders. */
export const files = {
  read: (path) => called("files", (it) => Uint8Array.from(it.read(path))),
  readText: (path) => called("files", (it) => fromBytes(Uint8Array.from(it.read(path)))),
  write: (path, content) => called("files", (it) => it.write(path, toBytes(content))),
  list: (path) => called("files", (it) => it.list(path)),
  stat: (path) => called("files", (it) => it.stat(path) ?? null),
  remove: (path) => called("files", (it) => it.remove(path)),
  makeFolder: (path) => called("files", (it) => it.makeFolder(path)),
};
/** Environment variables of the host. Needs a grant for each name. */
export const environment = { get: (name) => called("environment", (it) => it.get(name) ?? null) };

/** Text as UTF-8. The interpreter has no TextEncoder. */
function toBytes(content) {
  if (typeof content !== "string") return content;
  const bytes = [];
  for (const letter of content) {
    const point = letter.codePointAt(0);
    if (point < 0x80) bytes.push(point);
    else if (point < 0x800) bytes.push(0xc0 | (point >> 6), 0x80 | (point & 63));
    else if (point < 0x10000) bytes.push(0xe0 | (point >> 12), 0x80 | ((point >> 6) & 63), 0x80 | (point & 63));
    else
      bytes.push(0xf0 | (point >> 18), 0x80 | ((point >> 12) & 63), 0x80 | ((point >> 6) & 63), 0x80 | (point & 63));
  }
  return Uint8Array.from(bytes);
}

/** UTF-8 as text. Invalid UTF-8 is a failure. */
function fromBytes(bytes) {
  let coded = "";
  for (const byte of bytes) coded += "%" + byte.toString(16).padStart(2, "0");
  try {
    return decodeURIComponent(coded);
  } catch {
    throw new Failure("the bytes are not UTF-8");
  }
}

function toSchema(parameters) {
  if (parameters.type === "object") return parameters;
  const properties = {};
  const required = [];
  for (const [name, given] of Object.entries(parameters)) {
    const short = typeof given === "string";
    const optional = short ? given.endsWith("?") : given.optional === true;
    const { optional: _, ...schema } = short ? { type: given.replace(/\?$/, "") } : given;
    properties[name] = schema;
    if (!optional) required.push(name);
  }
  const schema = { type: "object", properties, additionalProperties: false };
  if (required.length > 0) schema.required = required;
  return schema;
}

function toContent(value) {
  if (typeof value === "string") return { tag: "text", val: value };
  return { tag: "json", val: JSON.stringify(value ?? null) };
}

const fromContent = (content) => (content.tag === "text" ? content.val : JSON.parse(content.val));
const fromEvent = ({ id, topic, payload, key, correlation, attempt, repeat }) => ({
  id,
  topic,
  payload: JSON.parse(payload),
  key: key ?? null,
  correlation: correlation ?? null,
  attempt,
  repeat,
});
const fromDelivery = ({ id, repeat }) => ({ id, repeat });
const fromFile = ({ name, mediaType, content }) => ({ name, mediaType, content: Uint8Array.from(content) });
const fromChoices = (choices) => choices.map(({ label, answer }) => ({ label, answer }));
const fromCall = ({ id, tool, arguments: given }) => ({ id, tool, arguments: JSON.parse(given) });
const same = (value) => value ?? null;
const nothing = () => undefined;
const maybe = (change) => (value) => (value === null || value === undefined ? null : change(value));

/** Runs the author's code; an exception becomes the interface's failure. */
function guarded(run) {
  try {
    return run();
  } catch (error) {
    const tag = error instanceof Failure ? error.tag : "failed";
    const text = error instanceof Failure ? error.message : String(error);
    throw { tag, val: text };
  }
}

function said(words, answer) {
  if (!answer || !(answer.tag in words)) {
    throw { tag: "failed", val: `the hook answered ${JSON.stringify(answer)}; it may say ${Object.keys(words).join(", ")}` };
  }
  return { ...answer, tag: words[answer.tag] };
}

const decision = (answer) => said({ allow: "allow", deny: "deny", ask: "ask" }, answer);
const verdict = (answer) => said({ allow: "allow", flag: "flag", block: "block" }, answer);
const sanitized = (answer) =>
  said({ unchanged: "unchanged", replaced: "replaced", flag: "flagged", block: "blocked" }, answer);

const route = ({ model, reason = "", authoritative = false }) => ({ model, reason, authoritative });
const modification = ({ arguments: given, implementation }) => ({
  arguments: given === undefined ? null : JSON.stringify(given),
  implementation: implementation ?? null,
});
const enrichment = ({ result, artifacts = [], render }) => ({
  result: result === undefined ? null : toContent(result),
  artifacts: artifacts.map(({ name, mediaType, content }) => ({ name, mediaType, content: toContent(content) })),
  render: render === undefined ? null : JSON.stringify(render),
});
const plan = ({ instructions, keep }) => ({ instructions: instructions ?? null, keep: keep ?? null });

function found(entries, what, name) {
  const entry = entries.get(name);
  if (!entry) throw { tag: "not-found", val: `there is no ${what} \`${name}\`` };
  return entry;
}

const byName = (entries) => [...entries.values()].sort((a, b) => (a.name < b.name ? -1 : 1));

/** An interface with one function. */
const one = (exported, name, takes, gives) => ({
  [exported]: (...given) =>
    gives(guarded(() => registered.hooks.get(name)(...given.map((value, place) => takes[place](value))))),
});

/** What the component exports, by interface. `ext build` writes a module that exports those of the extension's roles. */
export const roles = {
  tools: {
    list: () =>
      byName(registered.tools).map(({ name, description, effects, schema, output, timeoutMs, render }) => ({
        name,
        description,
        inputSchema: JSON.stringify(schema),
        outputSchema: output ? JSON.stringify(output) : null,
        effects,
        timeoutMs: timeoutMs ?? null,
        render: render ? JSON.stringify(render) : null,
      })),
    call: (name, given) => toContent(guarded(() => found(registered.tools, "tool", name).run(JSON.parse(given)))),
  },
  api: {
    methods: () => byName(registered.methods).map(({ name, description }) => ({ name, description })),
    call: (name, given) => toContent(guarded(() => found(registered.methods, "method", name).run(JSON.parse(given)))),
  },
  commands: {
    list: () => byName(registered.commands).map(({ name, description }) => ({ name, description })),
    run: (name, given) => toContent(guarded(() => found(registered.commands, "command", name).run(given))),
  },
  agent: {
    descriptor: () => ({
      id: registered.agent.id,
      description: registered.agent.description,
      integration: registered.agent.integration,
    }),
    invoke: (task) => toContent(guarded(() => registered.agent.run(task))),
  },
  lifecycleInitialize: one("initialize", "initialize", [], () => undefined),
  lifecycleStart: one("start", "start", [], () => undefined),
  lifecycleStop: one("stop", "stop", [], () => undefined),
  lifecycleDestroy: one("destroy", "destroy", [], () => undefined),
  lifecycleHealth: one("healthCheck", "healthCheck", [], Boolean),
  sessionStart: one("sessionStart", "sessionStart", [], () => undefined),
  sessionEnd: one("sessionEnd", "sessionEnd", [], () => undefined),
  sessionCancel: one("sessionCancel", "sessionCancel", [], () => undefined),
  turnStart: one("turnStart", "turnStart", [], () => undefined),
  turnEnd: one("turnEnd", "turnEnd", [maybe(fromContent)], () => undefined),
  inputNormalise: one("inputNormalise", "inputNormalise", [fromContent], maybe(toContent)),
  sanitizeInput: one("sanitizeInput", "sanitizeInput", [fromContent], sanitized),
  guardInput: one("guardInput", "guardInput", [fromContent], verdict),
  context: one("getContext", "context", [fromContent], same),
  modelRoute: one("modelRoute", "modelRoute", [fromContent], maybe(route)),
  toolModify: one("toolModify", "toolModify", [fromCall], maybe(modification)),
  toolGate: one("toolGate", "toolGate", [fromCall], decision),
  toolAfter: one("toolAfter", "toolAfter", [fromCall, fromContent], maybe(enrichment)),
  sanitizeResult: one("sanitizeResult", "sanitizeResult", [fromCall, fromContent], sanitized),
  guardResult: one("guardResult", "guardResult", [fromCall, fromContent], verdict),
  sanitizeOutput: one("sanitizeOutput", "sanitizeOutput", [fromContent], sanitized),
  guardOutput: one("guardOutput", "guardOutput", [fromContent], verdict),
  guardChunk: one("guardChunk", "guardChunk", [fromContent], verdict),
  responseProcess: one("responseProcess", "responseProcess", [fromContent], maybe(toContent)),
  compactionBefore: one("compactionBefore", "compactionBefore", [], maybe(plan)),
  compactionProvide: one("compactionProvide", "compactionProvide", [fromContent], same),
  renderCall: one("renderCall", "renderCall", [same, JSON.parse], same),
  renderResult: one("renderResult", "renderResult", [same, fromContent], same),
  scheduler: one("executeTask", "executeTask", [same], maybe(toContent)),
  subscriber: one("onEvent", "onEvent", [fromEvent], nothing),
  service: one("runBackground", "runBackground", [], nothing),
  channel: one("sendToUser", "sendToUser", [same, same, fromDelivery], nothing),
  channelMessage: one("sendMessage", "sendMessage", [same, fromDelivery], nothing),
  channelFile: one("sendFile", "sendFile", [same, fromFile, fromDelivery], nothing),
  channelQuestion: one("sendQuestion", "sendQuestion", [same, same, fromChoices, fromDelivery], nothing),
  streamingChannel: {
    ...one("streamStart", "streamStart", [same, same], nothing),
    ...one("streamChunk", "streamChunk", [same, same, same], nothing),
    ...one("streamEnd", "streamEnd", [same, same, same, fromDelivery], nothing),
  },
  streamingStatus: one("streamStatus", "streamStatus", [same, same, same], nothing),
  setup: {
    schema: () => JSON.stringify(registered.setup.schema()),
    apply: (values) => nothing(guarded(() => registered.setup.apply(JSON.parse(values)))),
    complete: () => String(guarded(() => registered.setup.complete())),
  },
};
