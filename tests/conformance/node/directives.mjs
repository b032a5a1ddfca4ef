// What the conformance extension is told to do, and how it does that, for the Node lane.
// `tests/tests/conformance/directive.rs` says what a directive is.

export const POINTS = [
  "session_start",
  "turn_start",
  "input_normalise",
  "sanitize_input",
  "guard_input",
  "context",
  "model_route",
  "guard_chunk",
  "tool_modify",
  "tool_gate",
  "tool_after",
  "sanitize_result",
  "guard_result",
  "sanitize_output",
  "guard_output",
  "response_process",
  "compaction_before",
  "compaction_provide",
  "session_cancel",
  "turn_end",
  "session_end",
];
const ALLOWING = ["guard_input", "guard_chunk", "tool_gate", "guard_result", "guard_output"];
const FAILING = ["invalid", "refused", "missing", "failed"];
export const OBEYS = "Does what it is told.";
export const TOOLS = [
  { name: "act", description: OBEYS, effects: "pure" },
  { name: "change", description: "Says that it changes things.", effects: "write", timeout_ms: 2000 },
  {
    name: "typed",
    description: "Takes a count and promises text.",
    effects: "pure",
    input_schema: { type: "object", properties: { count: { type: "integer" } }, required: ["count"] },
    output_schema: { type: "string" },
    render: { as: "table" },
  },
];

/** What it says of its own failure. */
class Failure extends Error {
  constructor(kind, text) {
    super(text);
    this.code = kind === "invalid" ? -32602 : 1;
  }
}

/** JSON with the keys in order, and without spaces. */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`);
  return `{${fields.join(",")}}`;
}

export function textOf(value) {
  return typeof value === "string" ? value : canonical(value);
}

function split(text, separator) {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + separator.length)];
}

export function shown(tool, what) {
  return tool === "plain" ? null : `**${tool}** ${textOf(what)}`;
}

/** Does what it is told. */
export class Obedient {
  constructor(ask, log, config) {
    this.ask = ask;
    this.log = log;
    this.config = config;
  }

  lineFor(where, subject, args) {
    const told = typeof args === "object" && args !== null ? args.do : undefined;
    for (const lines of [subject, told, this.config.do]) {
      for (const line of typeof lines === "string" ? lines.split("\n") : []) {
        const [place, rest] = split(line, " ");
        if (place === where) return rest;
      }
    }
    return null;
  }

  async question(args) {
    return (await this.ask("ui", args)) ?? "nothing";
  }

  /** The host's answer; `null` if it has no such verb. */
  async askHost(verb, rest, turn) {
    const done = async (name, args) => {
      await this.ask(name, args);
      return "";
    };
    switch (verb) {
      case "clock":
        return textOf(await this.ask("clock"));
      case "random":
        return textOf(await this.ask("random", { bytes: Number(rest) }));
      case "remember": {
        const [key, value] = split(rest, " ");
        return done("state.set", { key, value: JSON.parse(value) });
      }
      case "forget":
        return done("state.set", { key: rest });
      case "recall": {
        const value = await this.ask("state.get", { key: rest });
        return value === null ? "nothing" : canonical(value);
      }
      case "tell":
        return done("inject", { text: rest });
      case "write":
        return this.ask("file.write", { path: rest, content: "text" }).then(
          () => "written",
          () => "refused",
        );
      case "host": {
        const [name, args] = split(rest, " ");
        return this.ask(name, JSON.parse(args)).then(
          () => "served",
          () => "refused",
        );
      }
      case "log":
        this.log(rest);
        return "";
      case "config":
        return Object.hasOwn(this.config, rest) ? canonical(this.config[rest]) : "nothing";
      case "session":
        return turn ? `${turn.session}/${turn.turn}/${turn.agent}/${turn.channel}/${turn.user ?? "nobody"}` : "outside";
      default:
        return this.askUser(verb, rest);
    }
  }

  async askUser(verb, rest) {
    if (verb === "select") {
      const [prompt, options] = split(rest, ": ");
      return textOf(await this.question({ select: { prompt, options: options.split(", ") } }));
    }
    if (verb === "confirm") {
      const answer = await this.question({ confirm: { prompt: rest } });
      return answer === true ? "yes" : answer === false ? "no" : "nothing";
    }
    if (verb === "input") return textOf(await this.question({ input: { prompt: rest } }));
    if (verb !== "custom") return null;
    const [kind, more] = split(rest, " ");
    const [prompt, payload] = split(more, ": ");
    const answer = await this.question({ custom: { prompt, view: { kind, payload: JSON.parse(payload) } } });
    return answer === "nothing" ? answer : canonical(answer);
  }

  /** A directive's last verb and its text, once the host has been asked for the others. */
  async directive(where, subject, args, turn) {
    let line = this.lineFor(where, subject, args);
    let heard = "";
    while (line !== null) {
      const [stage, rest] = split(line, " | ");
      const [verb, text] = split(stage, " ");
      const answer = await this.askHost(verb, text, turn);
      if (answer === null) {
        const words = text.replaceAll("%", () => heard);
        if (FAILING.includes(verb)) throw new Failure(verb, words);
        return [verb, words];
      }
      heard = answer;
      line = rest === "" ? null : rest;
    }
    return ["", ""];
  }

  async told(where, given, args, turn) {
    const [verb, text] = await this.directive(where, given, args, turn);
    if (verb === "text") return text;
    return verb === "json" ? JSON.parse(text) : given;
  }

  async decide({ point, subject, call, turn }) {
    const [verb, text] = await this.directive(point, subject, call?.arguments, turn);
    const [first, rest] = split(text, " ");
    switch (verb) {
      case "deny":
      case "ask":
      case "flag":
      case "block":
        return { decision: verb, reason: text };
      case "inject":
      case "replace":
        return { decision: verb, content: text };
      case "route":
      case "order":
        return { decision: "route", model: first, authoritative: verb === "order", reason: rest };
      case "arguments":
        return { decision: "modify", arguments: JSON.parse(text) };
      case "implementation":
        return { decision: "modify", implementation: text };
      case "result":
        return { decision: "enrich", result: text };
      case "json":
        return point === "tool_after"
          ? { decision: "enrich", result: JSON.parse(text) }
          : { decision: "replace", content: JSON.parse(text) };
      case "artifact":
        return { decision: "enrich", artifacts: [{ name: first, media_type: "text/plain", content: rest }] };
      case "render":
        return { decision: "enrich", render: JSON.parse(text) };
      case "keep":
        return { decision: "compact", keep: Number(first), instructions: rest || null };
      case "instructions":
        return { decision: "compact", instructions: text };
      default:
        return ALLOWING.includes(point) ? { decision: "allow" } : null;
    }
  }
}
