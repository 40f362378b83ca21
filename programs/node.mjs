// Runs a program on Node 26 or later, for comparison: node node.mjs RUNTIME.mjs PROGRAM.wasm [ARGS..]
// RUNTIME.mjs is the compiler's own runtime (see `engines`). Varve itself needs no JavaScript.
import { writeSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { WASI } from "node:wasi";

const [runtime, program, ...args] = process.argv.slice(2);
const { load } = await import(pathToFileURL(runtime));

const module = new WebAssembly.Module(await readFile(program));
const isJava = WebAssembly.Module.imports(module).some((i) => i.module.startsWith("teavm"));

const memory = new WebAssembly.Memory({ initial: 64, maximum: 32768 });
const wasi = new WASI({
  version: "preview1",
  env: { ...process.env, PWD: process.cwd() },
  preopens: { "/": "/" },
  returnOnExit: false,
});
if (!isJava) {
  wasi.initialize(new WebAssembly.Instance(module, wasi.getImportObject()));
  process.exit();
}
wasi.initialize({ exports: { memory } });

// The runtime's own console writes asynchronously: an exit would lose what is not written yet.
const LONGEST = 8000;
const pending = { 1: [], 2: [] };
function put(fd, unit) {
  pending[fd].push(unit);
  if (unit === 10 || pending[fd].length > LONGEST) flush(fd);
}
function flush(fd) {
  const bytes = Buffer.from(String.fromCharCode(...pending[fd]), "utf8");
  pending[fd].length = 0;
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
}
process.on("exit", () => [1, 2].forEach(flush));

const { exports } = await load(await readFile(program), {
  memory: { external: memory, maxSize: 2 ** 31 - 1 },
  installImports(imports) {
    imports.wasi_snapshot_preview1 = wasi.wasiImport;
    // No memory to choose here: what programs say of their objects and intervals goes nowhere.
    // Nor does anything survive: roots are kept by the program itself.
    imports.varve = {
      critical() {},
      sampling: () => 0,
      interval() {},
      durable: () => 0,
      root_unit() {},
      root: () => null,
      set_root() {},
      region_begin() {},
      region_end() {},
      region_rollback() {},
    };
    imports.teavmConsole.putcharStdout = (unit) => put(1, unit);
    imports.teavmConsole.putcharStderr = (unit) => put(2, unit);
  },
});
try {
  exports.main(args);
} catch (error) {
  [1, 2].forEach(flush);
  process.stderr.write(`${error?.stack ?? error}\n`);
  process.exitCode = 1;
}
