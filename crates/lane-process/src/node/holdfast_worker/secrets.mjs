// The secrets of one pack: their values are read when it is activated, because packs ask for them in code that cannot
// wait.

import { described } from "./report.mjs";

/**
 * The environment variable or stored secret that a secret's id means where the catalogue does not say:
 * `mapService.apiKey` is `MAP_SERVICE_API_KEY`.
 */
export function nameOf(id, catalogue = {}) {
  if (Object.hasOwn(catalogue, id) && typeof catalogue[id] === "string") return catalogue[id];
  return id
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replace(/[^A-Za-z0-9]+/g, "_")
    .toUpperCase();
}

export class Secrets {
  #values = new Map();

  /** `given` is the pack's entry in the settings, `granted` the names that it may read. */
  constructor({ given, granted, catalogue, wire }) {
    this.given = given;
    this.granted = granted;
    this.catalogue = catalogue;
    this.wire = wire;
  }

  /** Reads the granted secrets from the host. */
  async read() {
    const read = async (name) => {
      try {
        const value = await this.wire.ask("secret.get", name);
        if (typeof value === "string") this.#values.set(name, value);
      } catch (error) {
        this.wire.log("debug", `the secret ${name} is not there: ${described(error)}`);
      }
    };
    await Promise.all(this.granted.map(read));
  }

  /**
   * The value of a secret: set for this pack, granted to it, in its options, or in the environment, in this order.
   */
  value(id) {
    if (typeof id !== "string") return undefined;
    const name = nameOf(id, this.catalogue);
    const set = this.given.secrets?.[id];
    const named = [set, id, name].find((it) => typeof it === "string" && this.#values.has(it));
    if (named !== undefined) return this.#values.get(named);
    const option = this.given.options?.secrets?.[id];
    if (typeof option === "string" && option !== "") return option;
    return process.env[name] || undefined;
  }

  /** What a pack finds in `options.secrets`: all that is set or granted for it, by id. */
  options() {
    const ids = new Set([...Object.keys(this.given.options?.secrets ?? {}), ...Object.keys(this.given.secrets ?? {})]);
    for (const [id, name] of Object.entries(this.catalogue)) if (this.#values.has(name)) ids.add(id);
    const found = [...ids].map((id) => [id, this.value(id)]).filter(([, value]) => value !== undefined);
    return Object.fromEntries(found);
  }

  /** A descriptor's needs: which are missing, and how the host is told of them. */
  needs(required) {
    const missing = [];
    const sheets = [];
    for (const need of Array.isArray(required) ? required : []) {
      const id = typeof need === "string" ? need : need?.id;
      if (typeof id !== "string" || this.value(id) !== undefined) continue;
      const name = this.given.secrets?.[id] ?? nameOf(id, this.catalogue);
      if (need.optional === true) sheets.push({ id: name, optional: true });
      else missing.push({ id, name });
    }
    return { missing, sheets };
  }
}
