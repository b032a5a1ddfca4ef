// A host for the worker: starts it with a socket as its standard input, and makes the requests of a test.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const WORKER = process.env.WORKER ?? fileURLToPath(new URL("../../src/node/holdfast_worker/main.mjs", import.meta.url));
export const TURN = { session: "s1", turn: 1, agent: "main", channel: "test", user: "ada" };

/** A folder with files, removed after the test. */
export function folder(test, files) {
  const root = mkdtempSync(join(tmpdir(), "holdfast-node-"));
  test.after(() => rmSync(root, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), typeof text === "string" ? text : JSON.stringify(text));
  }
  return root;
}

/** A worker that runs. */
export class Driven {
  constructor(words, environment = {}) {
    const command = [
      "-c",
      'exec "$0" "$@" <&3 3<&-',
      process.execPath,
      "--disable-wasm-trap-handler",
      WORKER,
      ...words,
    ];
    const env = { PATH: process.env.PATH, HOME: "/tmp", ...environment };
    this.child = spawn("/bin/sh", command, { stdio: ["ignore", "pipe", "pipe", "pipe"], env });
    this.socket = this.child.stdio[3];
    this.waiting = new Map();
    this.logged = [];
    this.progress = [];
    this.asked = [];
    this.odd = [];
    this.printed = "";
    this.last = 0;
    this.answers = {};
    this.wanted = [];
    for (const stream of [this.child.stdout, this.child.stderr])
      stream.setEncoding("utf8").on("data", (text) => (this.printed += text));
    createInterface({ input: this.socket }).on("line", (line) => this.take(line));
    this.socket.on("error", () => {});
    this.ended = new Promise((resolve) => this.child.on("close", (code, signal) => resolve({ code, signal })));
    this.ended.then((how) => {
      for (const { reject } of this.waiting.values())
        reject(new Error(`ended: ${JSON.stringify(how)} ${this.printed}`));
    });
  }

  take(line) {
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      return void this.odd.push(line);
    }
    if (message.method === "log") this.logged.push(message.params);
    else if (message.method === "progress") this.progress.push(message.params);
    else if (message.method === "ask") this.reply(message);
    else if (this.waiting.has(message.id)) {
      const { resolve, reject } = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      if (message.error === undefined) resolve(message.result);
      else reject(Object.assign(new Error(message.error.message), { rpc: message.error }));
    } else this.odd.push(line);
    for (const wake of this.wanted.splice(0)) wake();
  }

  reply({ id, params }) {
    this.asked.push(params);
    const answer = this.answers[params.name];
    const result = typeof answer === "function" ? answer(params.arguments, params) : answer;
    const message =
      result instanceof Error
        ? { error: { code: 1, message: result.message, data: { code: "HF-4103" } } }
        : { result: result ?? null };
    this.write({ id, ...message });
  }

  write(message) {
    this.socket.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  /** Makes a request; `number` is its id. */
  request(method, params) {
    this.last += 1;
    const id = this.last;
    const answer = new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    answer.catch(() => {});
    this.write(params === undefined ? { id, method } : { id, method, params });
    return Object.assign(answer, { number: id });
  }

  hello(more = {}) {
    const about = {
      id: "pack-test",
      version: "1.0.0",
      config: {},
      data_dir: "/tmp",
      line_bytes: 8 << 20,
      features: [],
      manifest: {},
    };
    return this.request("hello", { protocol: "0.1", ...about, ...more });
  }

  /** Says hello, activates, and gives what the extension is. */
  async open(more = {}) {
    this.first = await this.hello(more);
    await this.request("initialize");
    return this.hello(more);
  }

  tool(tool, args = {}, turn = TURN) {
    return this.request("tool", { call: 5, tool, arguments: args, turn });
  }

  hook(hook, point, subject, call) {
    return this.request("hook", { hook, point, subject, call, turn: TURN });
  }

  function(role, name, args = {}) {
    return this.request("function", { role, function: name, arguments: args });
  }

  /** Waits until something is true; looks again after each message. */
  async until(found) {
    for (;;) {
      const it = found();
      if (it) return it;
      await new Promise((resolve) => this.wanted.push(resolve));
    }
  }

  async stop() {
    this.socket.destroy();
    await this.ended;
  }
}

/** Starts a worker for a folder with these files. */
export function start(test, files, { name, environment } = {}) {
  const named = typeof files === "string" ? { "index.mjs": files } : files;
  const root = folder(test, named);
  const words = name?.package ? ["package", root, name.package] : ["folder", root, ...(name ? [name] : [])];
  const driven = new Driven(words, environment);
  driven.root = root;
  test.after(() => driven.stop());
  return driven;
}

/** A pack with one tool, as text: `body` is what `execute(args, context)` does. */
export function packOf(body, more = "") {
  return `export function createExtensionPack(context) {
  ${more}
  return { name: "p", descriptors: [{ id: "act", kind: "tool", payload: {
    name: "act", description: "Acts.", inputSchema: { type: "object" },
    async execute(args, call) { ${body} },
  } }] };
}`;
}
