// What a pack is given: options, secrets, a logger, services, and the way to the host.

import { current } from "./own.mjs";
import { described } from "./report.mjs";
import { SharedServiceRegistry } from "./standin/index.js";
import { signal } from "./wire.mjs";

const LEVELS = {
  trace: "debug",
  debug: "debug",
  log: "info",
  info: "info",
  warn: "warning",
  warning: "warning",
  error: "error",
  fatal: "error",
};

/** The context of a factory and of every `onActivate` and `onDeactivate`. */
export function contextFor({ wire, hello, given, secrets, services, manifest }) {
  const options = { ...given.options };
  const values = secrets.options();
  if (Object.keys(values).length > 0 || options.secrets !== undefined) options.secrets = values;
  const identifier = given.identifier ?? hello.id;
  const name = manifest.name ?? given.package ?? hello.id;
  const context = {
    options,
    logger: logger(wire, {}),
    getSecret: (id) => secrets.value(id),
    secrets: values,
    services,
    source: { sourceName: name, sourceVersion: manifest.version ?? hello.version, identifier },
    manifestEntry: {
      package: given.package ?? name,
      version: given.version,
      priority: given.priority,
      identifier,
      options,
    },
    onActivate() {},
    onDeactivate() {},
    holdfast: host(wire, hello, given),
  };
  return context;
}

export function servicesFor() {
  return new SharedServiceRegistry();
}

/** Logs to the host. Extra values are added as they print. */
function logger(wire, bound) {
  const made = {};
  for (const [name, level] of Object.entries(LEVELS)) {
    made[name] = (...parts) => wire.log(level, [...parts.map(printed), ...fieldsOf(bound)].join(" "));
  }
  made.child = (more) => logger(wire, { ...bound, ...more });
  return made;
}

function fieldsOf(bound) {
  return Object.entries(bound).map(([name, value]) => `${name}=${printed(value)}`);
}

function printed(value) {
  if (typeof value === "string") return value;
  if (value instanceof Error) return described(value);
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}

/** What Holdfast offers besides the contract of packs. */
function host(wire, hello, given) {
  return Object.freeze({
    id: hello.id,
    version: hello.version,
    config: hello.config ?? {},
    data_dir: hello.data_dir,
    workspace: given.workspace,
    /** Makes a host call; `updated` gets what happens meanwhile. */
    ask: (name, args, { timeout_ms, updated } = {}) => wire.ask(String(name), args, { timeout_ms, updated }),
    /** Shows the progress of the call that is served. */
    progress: (text) => wire.progress(String(text)),
    /** The turn of the call that is served. */
    get turn() {
      return turnOf(current()) ?? null;
    },
    /** Aborted when the answer to the call that is served is not wanted any more. */
    get signal() {
      const request = current();
      return request === undefined ? undefined : signal(request);
    },
  });
}

/** The turn that a request belongs to; an agent's is among its arguments. */
export function turnOf(request) {
  const { turn, role, arguments: args } = request?.params ?? {};
  return turn ?? (role === "agent" ? args?.turn : undefined) ?? undefined;
}
