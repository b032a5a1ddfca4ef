// The worker for extensions in JavaScript: `main.mjs folder ROOT [FILE]` or `main.mjs package ROOT NAME`. Standard input is a socket to the
// host; what is printed goes to the log.

import { Readable } from "node:stream";

import { bare, defineProperty } from "./own.mjs";
import { Pack } from "./pack.mjs";
import { guardProcess } from "./report.mjs";
import { Server } from "./serve.mjs";
import { Wire } from "./wire.mjs";

const [kind, root, name] = process.argv.slice(2);
const wire = new Wire(0);
guardProcess((level, text) => wire.log(level, text));

// Who reads standard input would take the host's messages: for the extension it is empty.
const nothing = Readable.from([]);
defineProperty(process, "stdin", bare({ value: nothing, writable: true, configurable: true, enumerable: true }));

const server = new Server(wire, new Pack(wire, [kind, root, name]));
wire.serve((request) => server.serve(request));
