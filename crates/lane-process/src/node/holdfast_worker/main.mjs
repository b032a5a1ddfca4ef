// The worker for extensions in JavaScript: `main.mjs folder ROOT [FILE]` or `main.mjs package ROOT NAME`. Standard
// input is a socket to the host; what is printed goes to the log.

import childProcess from "node:child_process";
import { syncBuiltinESMExports } from "node:module";
import { Readable } from "node:stream";

import { apply, bare, defineProperty, isArray } from "./own.mjs";
import { Pack } from "./pack.mjs";
import { guardProcess } from "./report.mjs";
import { Server } from "./serve.mjs";
import { Wire } from "./wire.mjs";

const [kind, root, name] = process.argv.slice(2);
const wire = new Wire(0);
guardProcess((level, text) => wire.log(level, text));
reserveInput();
const server = new Server(wire, new Pack(wire, [kind, root, name]));
wire.serve((request) => server.serve(request));

/**
 * Who reads standard input would take the host's messages: for the extension, and for the programs that it starts, it
 * is empty.
 */
function reserveInput() {
  const nothing = Readable.from([]);
  defineProperty(process, "stdin", bare({ value: nothing, writable: true, configurable: true, enumerable: true }));
  const { ChildProcess } = childProcess;
  const spawn = ChildProcess.prototype.spawn;
  ChildProcess.prototype.spawn = function (options) {
    return apply(spawn, this, [withoutInput(options, nothing)]);
  };
  for (const method of ["spawnSync", "execFileSync", "execSync"]) {
    const original = childProcess[method];
    childProcess[method] = (...words) =>
      apply(
        original,
        childProcess,
        words.map((it) => withoutInput(it, nothing)),
      );
  }
  syncBuiltinESMExports();
}

/** The options of a program that is started, without the worker's standard input. Other values stay as they are. */
function withoutInput(options, nothing) {
  if (typeof options !== "object" || options === null || isArray(options)) return options;
  const { stdio } = options;
  const input = isArray(stdio) ? stdio[0] : stdio;
  if (input !== "inherit" && input !== 0 && input !== nothing) return options;
  return { ...options, stdio: isArray(stdio) ? ["ignore", ...stdio.slice(1)] : ["ignore", "inherit", "inherit"] };
}
