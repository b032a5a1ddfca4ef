// The connection to the host: JSON-RPC with one message per line over a socket, with requests in both directions. It
// works with the worker's own copies only, so that it outlives what a pack does to the objects of the language.

import { Socket } from "node:net";
import { Readable } from "node:stream";

import {
  OwnAbortController,
  OwnMap,
  OwnPromise,
  abort,
  bare,
  current,
  exit,
  find,
  independent,
  mapDelete,
  mapGet,
  mapSet,
  parse,
  push,
  runWith,
  setPrototypeOf,
  signalOf,
  slice,
  then,
  timeout,
  clear,
  hasOwn,
  isArray,
} from "./own.mjs";
import { encoded } from "./plain.mjs";
import { Failure, asRpcError, described } from "./report.mjs";

/** Bytes of a line, until the host has said how many it takes. */
const LINE_BYTES = 8 << 20;
/** What is kept free of a line for the message around a value. */
const ENVELOPE_BYTES = 1024;
/** Host calls that wait for a request that they can belong to. */
const MAX_HELD = 1000;
const MAX_LOG_CHARS = 4000;
const readable = Readable.prototype.read;
/** Requests that host calls from outside of any other call belong to. */
const LASTING = bare({ initialize: true, start: true, stop: true, destroy: true });

/** A request of the host. `signal` is aborted when its answer is not wanted any more. */
class Request {
  constructor(id, method, params) {
    setPrototypeOf(this, null);
    this.id = id;
    this.method = method;
    this.params = params;
    this.open = true;
    this.controller = undefined;
  }
}

/** The signal of a request, which is made when somebody wants it. */
export function signal(request) {
  request.controller ??= new OwnAbortController();
  return signalOf(request.controller);
}

export class Wire {
  constructor(file) {
    this.most = LINE_BYTES;
    this.requests = new OwnMap();
    this.questions = new OwnMap();
    this.asked = 0;
    // Open requests that last, and the host calls that wait for one.
    this.lasting = setPrototypeOf([], null);
    this.held = setPrototypeOf([], null);
    /** Whether a request that lasts will come. */
    this.lasts = false;
    this.rest = "";
    this.socket = independent(new Socket({ fd: file, readable: true, writable: true }));
    // That of a socket looks for the one of all streams, where it is changed.
    this.socket.read = readable;
  }

  /** Serves requests with a function of the request, which gives an object with the answer as its `value`. */
  serve(handler) {
    this.handler = handler;
    this.socket.setEncoding("utf8");
    this.socket.on("data", (text) => this.received(text));
    this.socket.on("error", () => exit(0));
    this.socket.on("close", () => exit(0));
    this.socket.on("end", () => exit(0));
  }

  received(text) {
    let from = 0;
    let end = find(text, "\n");
    while (end >= 0) {
      const line = this.rest === "" ? slice(text, from, end) : this.rest + slice(text, from, end);
      this.rest = "";
      this.take(setPrototypeOf(parse(line), null));
      from = end + 1;
      end = find(text, "\n", from);
    }
    this.rest += slice(text, from);
  }

  take(message) {
    const { id, method } = message;
    const params =
      message.params === undefined || message.params === null ? bare({}) : setPrototypeOf(message.params, null);
    if (method === undefined) this.answered(message);
    else if (method === "cancel") this.cancel(params.id);
    else if (method === "update") this.updated(params);
    else if (method === "ping") this.write(`{"jsonrpc":"2.0","id":${id},"result":{}}\n`);
    else this.begin(new Request(id, method, params));
  }

  // Requests of the host.

  begin(request) {
    const { id, method, params } = request;
    mapSet(this.requests, id, request);
    if (LASTING[method] === true || (method === "function" && params.role === "service")) this.opened(request);
    runWith(request, () => {
      let answer;
      try {
        answer = this.handler(request);
      } catch (error) {
        return this.fail(request, error);
      }
      then(
        answer,
        (done) => this.reply(request, done.value),
        (error) => this.fail(request, error),
      );
    });
  }

  opened(request) {
    push(this.lasting, request);
    const held = this.held;
    this.held = setPrototypeOf([], null);
    for (let index = 0; index < held.length; index += 1) this.put(held[index], request);
  }

  closed(request) {
    request.open = false;
    mapDelete(this.requests, request.id);
    const kept = setPrototypeOf([], null);
    for (let index = 0; index < this.lasting.length; index += 1) {
      if (this.lasting[index] !== request) push(kept, this.lasting[index]);
    }
    this.lasting = kept;
  }

  reply(request, value) {
    if (!request.open) return;
    let text;
    try {
      text = value === undefined ? "null" : encoded(value, this.most - ENVELOPE_BYTES);
    } catch (error) {
      return this.fail(request, new Failure(`the answer cannot be sent: ${described(error)}`));
    }
    this.closed(request);
    this.write(`{"jsonrpc":"2.0","id":${request.id},"result":${text}}\n`);
  }

  fail(request, error) {
    if (!request.open) return;
    this.closed(request);
    let told = asRpcError(error);
    if (error instanceof Failure && error.details !== undefined)
      told = bare({ code: told.code, message: told.message, data: error.details });
    let text;
    try {
      text = encoded(told, this.most - ENVELOPE_BYTES);
    } catch {
      text = encoded(bare({ code: told.code, message: told.message }), this.most);
    }
    this.write(`{"jsonrpc":"2.0","id":${request.id},"error":${text}}\n`);
  }

  cancel(id) {
    const request = mapGet(this.requests, id);
    if (request === undefined) return;
    this.fail(request, new Failure("cancelled"));
    if (request.controller !== undefined) abort(request.controller);
    else request.controller = aborted();
  }

  // Requests to the host.

  /** Makes a host call for the request in progress. `updated` gets what happens meanwhile. */
  ask(name, args, { timeout_ms, updated } = bare({})) {
    return new OwnPromise((resolve, reject) => {
      const question = bare({ name, args: args ?? null, timeout_ms, updated, resolve, reject });
      const request = current();
      if (request !== undefined && request.open) return this.put(question, request);
      const lasting = this.lasting[this.lasting.length - 1];
      if (lasting !== undefined) return this.put(question, lasting);
      if (!this.lasts || this.held.length >= MAX_HELD) {
        return reject(new Failure(`\`${name}\` was asked outside of any call of the host`));
      }
      push(this.held, question);
    });
  }

  put(question, request) {
    const { name, args, timeout_ms, updated } = question;
    const params = bare({ call: request.id, name, arguments: args });
    if (timeout_ms !== undefined) params.timeout_ms = timeout_ms;
    if (updated !== undefined) params.updates = true;
    let text;
    try {
      text = encoded(params, this.most - ENVELOPE_BYTES);
    } catch (error) {
      return question.reject(new Failure(`the arguments of \`${name}\` cannot be sent: ${described(error)}`));
    }
    this.asked += 1;
    mapSet(this.questions, this.asked, question);
    this.write(`{"jsonrpc":"2.0","id":${this.asked},"method":"ask","params":${text}}\n`);
  }

  answered(message) {
    const question = mapGet(this.questions, message.id);
    if (question === undefined) return;
    mapDelete(this.questions, message.id);
    if (message.error === undefined) return question.resolve(message.result ?? null);
    const { message: words, data } = setPrototypeOf(message.error, null);
    const failure = new Failure(words);
    if (data !== undefined && data !== null && hasOwn(data, "code")) failure.problem = data.code;
    question.reject(failure);
  }

  updated(update) {
    mapGet(this.questions, update.question)?.updated?.(update);
  }

  // Notifications.

  log(level, words) {
    const text = words.length > MAX_LOG_CHARS ? `${slice(words, 0, MAX_LOG_CHARS)} …` : words;
    this.write(`{"jsonrpc":"2.0","method":"log","params":${encoded(bare({ level, text }), this.most)}}\n`);
  }

  progress(words) {
    const request = current();
    if (request === undefined || !request.open) return;
    const params = bare({ call: request.id, text: slice(words, 0, MAX_LOG_CHARS) });
    this.write(`{"jsonrpc":"2.0","method":"progress","params":${encoded(params, this.most)}}\n`);
  }

  write(line) {
    this.socket.write(line);
  }
}

function aborted() {
  const controller = new OwnAbortController();
  abort(controller);
  return controller;
}

/** Waits for a promise, at most so long; `what` says what is late. */
export function within(milliseconds, promise, what) {
  return new OwnPromise((resolve, reject) => {
    const late = () => reject(new Failure(`${what} has not ended within ${milliseconds / 1000} s`));
    const timer = timeout(late, milliseconds);
    then(
      promise,
      (value) => {
        clear(timer);
        resolve(value);
      },
      (error) => {
        clear(timer);
        reject(error);
      },
    );
  });
}

/** A list of a pack as an array of ours, with at most so many items. */
export function listOf(value, most) {
  const made = [];
  if (!isArray(value)) return made;
  for (let index = 0; index < value.length && index < most; index += 1) push(made, value[index]);
  return made;
}
