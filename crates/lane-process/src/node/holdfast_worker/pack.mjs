// A pack: it is loaded, activated with its descriptors, and deactivated in the reverse order. A descriptor that fails
// is left out, with a reason; a pack that fails is not active.

import { contextFor, servicesFor } from "./context.mjs";
import { adapted } from "./kinds/index.mjs";
import { apply, bare } from "./own.mjs";
import { Failure, line } from "./report.mjs";
import { Secrets } from "./secrets.mjs";
import { exportsOf, sourceOf } from "./source.mjs";
import { listOf, within } from "./wire.mjs";

const ACTIVATE_MS = 30_000;
const DEACTIVATE_MS = 5_000;
const MAX_DESCRIPTORS = 1_000;
const MAX_PROBLEMS = 100;
const KIND = /^[a-z][a-z0-9-]{0,63}$/;
const ID = /^[\w.:@/+-]{1,128}$/;
/** What an extension that exports no pack may have: see `roles.mjs`. */
export const ROLES = [
  "tools",
  "hooks",
  "agent",
  "commands",
  "methods",
  "render",
  "initialize",
  "start",
  "stop",
  "destroy",
  "health",
  "executeTask",
];

export class Pack {
  /** `target` is the kind of the source, its root and the name in it. */
  constructor(wire, target) {
    this.wire = wire;
    this.target = target;
    this.hello = bare({ id: "extension" });
    this.reset();
  }

  reset() {
    this.activation = undefined;
    this.active = false;
    this.pack = undefined;
    this.entries = [];
    this.problems = [];
    this.services = servicesFor();
  }

  /** Something that is left out: the host logs it with the answer to `hello`. */
  problem(text) {
    if (this.problems.length < MAX_PROBLEMS) this.problems.push(text);
  }

  /** Loads and activates it, once. After a failure the next call tries again. */
  activate() {
    this.activation ??= this.activated().catch((error) => {
      this.activation = undefined;
      throw error;
    });
    return this.activation;
  }

  async activated() {
    this.reset();
    const { hello, wire } = this;
    const given = hello.pack ?? { options: hello.config ?? {} };
    const limit = given.activate_ms ?? ACTIVATE_MS;
    const secrets = new Secrets({ given, granted: hello.secrets ?? [], catalogue: hello.catalogue ?? {}, wire });
    await secrets.read();
    const source = sourceOf(...this.target);
    const found = await within(
      limit,
      settled(() => exportsOf(source)),
      "loading the module",
    );
    this.context = contextFor({ wire, hello, given, secrets, services: this.services, manifest: source.manifest });
    const pack = await this.made(found.value, limit);
    try {
      await this.step(pack, "onActivate", limit, "`onActivate` of the pack");
      await this.step(pack, "initialize", limit, "`initialize`");
    } catch (error) {
      await this.release();
      throw error;
    }
    this.pack = pack;
    this.given = given;
    for (const descriptor of this.descriptors(pack)) await this.add(descriptor, secrets, limit);
    this.active = true;
  }

  /** What the module's exports make. */
  async made(exports, limit) {
    const { factory, made } = shapeOf(exports);
    if (factory === undefined) return made;
    const pack = await within(
      limit,
      settled(() => factory(this.context)),
      "the function that creates the pack",
    );
    if (typeof pack.value !== "object" || pack.value === null) {
      throw new Failure(`the function that creates the pack has returned ${typeof pack.value}, and no pack`);
    }
    return pack.value;
  }

  /** Its descriptors as they are now: a pack may replace them when it is activated. */
  descriptors(pack) {
    let list;
    try {
      list = pack.descriptors;
    } catch (error) {
      throw new Failure(`reading the pack's \`descriptors\` failed: ${line(error)}`);
    }
    const isPlain = ROLES.some((role) => pack[role] !== undefined);
    if (list === undefined && isPlain) return [];
    if (!Array.isArray(list)) throw new Failure("the pack has no list `descriptors`");
    if (list.length > MAX_DESCRIPTORS) {
      this.problem(`the pack has ${list.length} descriptors: only the first ${MAX_DESCRIPTORS} are used`);
    }
    return listOf(list, MAX_DESCRIPTORS);
  }

  async add(descriptor, secrets, limit) {
    let shown = "a descriptor";
    try {
      const kind = descriptor.kind;
      const id = descriptor.id;
      shown = named(kind, id);
      const { missing, sheets } = secrets.needs(descriptor.requiredSecrets);
      if (missing.length > 0) {
        const which = missing
          .map((it) => (it.id === it.name ? `\`${it.id}\`` : `\`${it.id}\` (${it.name})`))
          .join(", ");
        const why = `it needs the secret ${which}`;
        if (kind !== "tool" && kind !== "guardrail") return this.problem(`${shown} is left out: ${why}`);
        this.problem(`${shown} is not activated: ${why}`);
        const entry = await adapted({ descriptor, kind, id, shown, pack: this });
        const required = [...missing.map(({ name }) => ({ id: name })), ...sheets];
        return this.keep(closed(entry, required, new Failure(`${shown} is not activated: ${why}`)));
      }
      await this.step(descriptor, "onActivate", limit, `\`onActivate\` of ${shown}`);
      const entry = await adapted({ descriptor, kind, id, shown, pack: this });
      entry.required = sheets;
      entry.descriptor = descriptor;
      this.keep(entry);
    } catch (error) {
      this.problem(`${shown} is left out: ${line(error)}`);
    }
  }

  /**
   * Of two with one kind and id in one pack, the one with the higher priority is used, and of equal ones the later.
   */
  keep(entry) {
    const same = this.entries.findIndex((it) => it.kind === entry.kind && it.id === entry.id);
    if (same < 0) return void this.entries.push(entry);
    this.problem(`the pack has two descriptors ${entry.kind} \`${entry.id}\`: one is used`);
    if ((entry.priority ?? 0) >= (this.entries[same].priority ?? 0)) this.entries[same] = entry;
  }

  /** Calls a step of a life, if there is one. */
  async step(object, name, limit, what) {
    const method = object[name];
    if (typeof method !== "function") return;
    await within(
      limit,
      settled(() => apply(method, object, [this.context])),
      what,
    );
  }

  /**
   * Deactivates the descriptors, the last one first, and then the pack. Nothing that fails keeps the rest from it.
   */
  async deactivate() {
    if (!this.active) return;
    this.active = false;
    const limit = this.given.deactivate_ms ?? DEACTIVATE_MS;
    for (const entry of [...this.entries].reverse()) {
      const shown = named(entry.kind, entry.id);
      await this.quietly(() => entry.deactivate?.(), limit, `ending ${shown}`);
      await this.quietly(() => this.ended(entry.descriptor), limit, `\`onDeactivate\` of ${shown}`);
    }
    await this.quietly(() => this.ended(this.pack), limit, "`onDeactivate` of the pack");
  }

  ended(object) {
    return object.onDeactivate?.(this.context);
  }

  async quietly(work, limit, what) {
    try {
      await within(limit, settled(work), what);
    } catch (error) {
      this.wire.log("warning", `${what} failed: ${line(error)}`);
    }
  }

  /** Disposes of the services. */
  async release() {
    const limit = this.given?.deactivate_ms ?? DEACTIVATE_MS;
    for (const key of this.services.keys().reverse()) {
      await this.quietly(() => this.services.release(key), limit, `disposing of the service \`${key}\``);
    }
  }

  async destroy() {
    await this.deactivate();
    await this.release();
    this.activation = undefined;
  }

  /** Whether it must stay alive between calls. */
  lasts() {
    const object = this.pack;
    const steps = ["onActivate", "onDeactivate", "initialize", "start", "stop", "destroy", "health"];
    const does = (it) => steps.some((step) => typeof it?.[step] === "function");
    return does(object) || this.entries.some((entry) => entry.lasts || does(entry.descriptor));
  }
}

/** The value of a promise or a plain value of a pack, in an object that no promise takes for another one. */
export async function settled(work) {
  return bare({ value: await work() });
}

function named(kind, id) {
  if (typeof kind !== "string" || !KIND.test(kind))
    throw new Failure(`its kind is not lower-case words with \`-\`: ${quoted(kind)}`);
  if (typeof id !== "string" || !ID.test(id)) throw new Failure(`its id is not a name: ${quoted(id)}`);
  return `${kind} \`${id}\``;
}

function quoted(value) {
  return typeof value === "string" ? JSON.stringify(value.slice(0, 80)) : typeof value;
}

/** The factory or the pack itself in a module's exports. */
function shapeOf(exports) {
  const inner = exports.default;
  const isObject = (it) => typeof it === "object" && it !== null;
  for (const it of [exports.createExtensionPack, inner?.createExtensionPack, inner, inner?.default]) {
    if (typeof it === "function" && !isClass(it)) return { factory: it };
  }
  for (const it of [inner, exports, inner?.default, exports.extensionPack, exports.pack]) {
    if (isObject(it) && (it.descriptors !== undefined || ROLES.some((role) => it[role] !== undefined)))
      return { made: it };
  }
  const named = Object.entries(exports).filter(
    ([name, it]) => /^create\w*Pack$/.test(name) && typeof it === "function",
  );
  if (named.length === 1) return { factory: named[0][1] };
  const names = Object.keys(exports).slice(0, 8).join(", ") || "nothing";
  throw new Failure(`the module exports no \`createExtensionPack\` and no pack: it exports ${names}`);
}

function isClass(value) {
  return /^class[\s{]/.test(Function.prototype.toString.call(value));
}

/**
 * What is not activated: the host does not register a tool that lacks a secret, and a guardrail fails, so that
 * nothing passes it.
 */
function closed(entry, required, failure) {
  const fail = () => {
    throw failure;
  };
  const tools = entry.tools?.map((tool) => ({ ...tool, run: fail }));
  const hooks = entry.hooks?.map((hook) => ({ ...hook, decide: fail }));
  return {
    kind: entry.kind,
    id: entry.id,
    description: entry.description,
    priority: entry.priority,
    tools,
    hooks,
    required,
    descriptor: {},
  };
}
