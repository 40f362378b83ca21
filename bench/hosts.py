"""The engines of the comparison: where each is found, how it is installed in a folder of its own, and its command for a benchmark."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tools import Failed, Missing

WORKSPACE = Path(__file__).resolve().parent.parent
PROGRAMS = WORKSPACE / "programs"
NATIVE = WORKSPACE / "target/bench-wasi"
NODE_VERSION = 26
COMPILER_RUNTIME = "org/teavm/backend/wasm/wasm-gc-module-runtime.js"


def say(text):
    """Progress, apart from the result."""
    print(text, file=sys.stderr, flush=True)


def said(*command):
    """The first line that a command prints on either output; Missing if it does not run."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(f"{command[0]} does not run: {error}") from None
    if done.returncode:
        raise Missing(f"{command[0]} ended with {done.returncode}")
    return (done.stdout.strip().splitlines() or [""])[0]


def named(variable, fallback):
    """The program that a variable names, or the fallback, if it is there."""
    found = shutil.which(os.environ.get(variable) or str(fallback))
    if found:
        return Path(found).absolute()
    if variable in os.environ:
        raise Missing(f"{variable}={os.environ[variable]} is no program")
    return None


def module(benchmark):
    """The WebAssembly module that a benchmark runs, the same bytes on every engine."""
    if benchmark.source:
        return NATIVE / f"{benchmark.program}.wasm"
    return WORKSPACE / "bench/modules" / f"{benchmark.module}.wasm" if benchmark.module else PROGRAMS / "dist" / f"{benchmark.program}.wasm"


def arguments(benchmark, quick, rounds):
    """What the program is told."""
    words = benchmark.words(quick)
    return [*words, str(rounds)] if benchmark.module or benchmark.source else [*words, "--rounds", str(rounds)]


class Engine:
    """An engine under one setting: `name` heads a column of at most 9 characters, `what` explains it."""

    # Processes of a benchmark before those that are measured.
    before = 0
    # Whether it is measured only if it is asked for by name.
    asked = False

    def __init__(self, name, what):
        self.name, self.what = name, what

    def prepare(self, folder):
        """Finds the engine in the folder of installations or elsewhere; what it says its version is. Missing if it is not there."""
        raise NotImplementedError

    def runs(self, benchmark):
        """Whether the engine has a form of the benchmark."""
        return True

    def command(self, benchmark, quick, rounds, heap_mib):
        """The words of the command that runs a benchmark."""
        raise NotImplementedError


class Varve(Engine):
    """Without compiled code of earlier runs; or `again` with it, in a folder of its own that is empty in the beginning. The build is
    the one that `variable` names."""

    def __init__(self, name, tier=None, again=False, variable="VARVE"):
        kept = "--code-cache FOLDER` with the code of a run before" if again else "--code-cache none`"
        build = f", the build that `{variable}` names" if variable != "VARVE" else ""
        super().__init__(name, f"`varve run --heap-max HEAP{f' --tier {tier}' if tier else ''} {kept}{build}")
        self.tier = tier
        self.before = 1 if again else 0
        self.variable = variable
        self.asked = variable != "VARVE"

    def prepare(self, folder):
        self.path = named(self.variable, "" if self.asked else WORKSPACE / "target/release/varve")
        if self.asked and not self.path:
            raise Missing(f"name another build of varve by {self.variable}")
        if not self.path:
            raise Missing("build it (cargo build --release --workspace), or name the binary by VARVE")
        if self.tier:
            options = subprocess.run([self.path, "run", "--help=all"], stdout=subprocess.PIPE, text=True, check=True).stdout
            if "--tier" not in options:
                raise Missing("this varve has no --tier")
        self.kept = tempfile.TemporaryDirectory(prefix="engines-code-") if self.before else None
        return said(self.path, "--version")

    def command(self, benchmark, quick, rounds, heap_mib):
        tier = ["--tier", self.tier] if self.tier else []
        kept = ["--code-cache", self.kept.name if self.kept else "none"]
        head = [self.path, "run", module(benchmark), "--heap-max", f"{heap_mib}MiB", *tier, *kept]
        return [*head, "--", *arguments(benchmark, quick, rounds)]


class Node(Engine):
    def __init__(self):
        super().__init__("V8", "V8 in Node, `--max-old-space-size=HEAP`")

    @staticmethod
    def install(folder):
        subprocess.run(["npm", "install", "--silent", "--prefix", folder / "node", f"node@{NODE_VERSION}"], check=True)

    def prepare(self, folder):
        own = folder / "node/node_modules/.bin/node" if folder else None
        self.path = named("NODE", own if own and own.exists() else "node")
        version = said(self.path, "--version") if self.path else ""
        if not version.startswith("v") or int(version[1:].split(".")[0]) < NODE_VERSION:
            raise Missing(f"it needs Node {NODE_VERSION} or later: --install DIR gets it, or name one by NODE")
        self.runtime = compiler_runtime(folder)
        return f"{version}, V8 {said(self.path, '-p', 'process.versions.v8')}"

    def command(self, benchmark, quick, rounds, heap_mib):
        head = [self.path, "--no-warnings", f"--max-old-space-size={heap_mib}"]
        if benchmark.module or benchmark.source:
            script = [WORKSPACE / "bench/wasi.mjs"]
        elif self.runtime:
            script = [PROGRAMS / "node.mjs", self.runtime]
        else:
            raise Missing("the Java programs need the runtime of their compiler: programs/build fetches it")
        return [*head, *script, module(benchmark), *arguments(benchmark, quick, rounds)]


def compiler_runtime(folder):
    """The compiler's own runtime for JavaScript engines, out of its archive; None without the archive."""
    repository = Path(os.environ.get("MAVEN_REPOSITORY") or Path.home() / ".m2/repository")
    archives = [a for a in sorted((repository / "org/teavm/teavm-core").glob("*/teavm-core-*.jar")) if "sources" not in a.name]
    if not archives:
        return None
    to = (folder or PROGRAMS / "common/target") / "runtime.mjs"
    to.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archives[-1]) as archive:
        to.write_bytes(archive.read(COMPILER_RUNTIME))
    return to


class Java(Engine):
    def __init__(self, name, *options):
        super().__init__(name, " ".join(["HotSpot, `-XmxHEAP", *options]) + "`")
        self.options = options

    @staticmethod
    def install(_folder):
        if not (PROGRAMS / "trees/target/classes").is_dir():
            subprocess.run(["mvn", "--quiet", "--batch-mode", "--no-transfer-progress", "package"], cwd=PROGRAMS, check=True)

    def prepare(self, folder):
        self.path = named("JAVA", "java")
        if not self.path:
            raise Missing("there is no java on PATH (a JDK 17 or later), and JAVA names none")
        if not (PROGRAMS / "trees/target/classes").is_dir():
            raise Missing("the Java programs are not built here: --install DIR builds them, and so does programs/build")
        return said(self.path, "-version").replace('"', "")

    def runs(self, benchmark):
        return not benchmark.source

    def command(self, benchmark, quick, rounds, heap_mib):
        classes = [PROGRAMS / benchmark.program / "target/classes", PROGRAMS / "common/target/classes", PROGRAMS / "api/target/classes"]
        path = os.pathsep.join(map(str, classes))
        head = [self.path, f"-Xmx{heap_mib}m", *self.options, "-cp", path, main_class(benchmark.program)]
        return [*head, *benchmark.words(quick), "--rounds", str(rounds)]


def main_class(program):
    """The class with the main function of a program, as programs/engines knows it."""
    found = re.search(rf"\[{program}\]=([\w.]+)", (PROGRAMS / "engines").read_text())
    if not found:
        raise Failed(f"programs/engines has no main class of {program}")
    return found[1]


class Wasmtime(Engine):
    def __init__(self, name, collector):
        super().__init__(name, f"wasmtime with its collector `{collector}`, heap without bound")
        self.collector = collector

    @staticmethod
    def install(folder):
        environment = {**os.environ, "CARGO_TARGET_DIR": str(folder / "wasmtime-host")}
        command = [os.environ.get("CARGO", "cargo"), "build", "--release", "--quiet", "--locked"]
        subprocess.run(command, cwd=WORKSPACE / "bench/wasmtime-host", env=environment, check=True)

    def prepare(self, folder):
        own = folder / "wasmtime-host/release/wasmtime-host" if folder else Path("wasmtime-host")
        self.path = named("WASMTIME_HOST", own)
        if not self.path:
            raise Missing("--install DIR builds it (Rust 1.97 or later), or name the binary of bench/wasmtime-host by WASMTIME_HOST")
        locked = (WORKSPACE / "bench/wasmtime-host/Cargo.lock").read_text()
        return "wasmtime " + re.search(r'name = "wasmtime"\nversion = "([^"]+)"', locked)[1]

    def runs(self, benchmark):
        # Native programs need more of WASI than the host has, and no collector.
        return not benchmark.source

    def command(self, benchmark, quick, rounds, heap_mib):
        head = [self.path, "--collector", self.collector]
        return [*head, module(benchmark), *arguments(benchmark, quick, rounds)]


class PackagedWasmtime(Engine):
    """wasmtime as PyPI has it, for programs that need nothing but WASI."""

    def __init__(self):
        super().__init__("wasmtime", "wasmtime from PyPI with its own WASI, for native programs alone")
        self.folder = None

    @staticmethod
    def install(folder):
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--target", folder / "wasmtime-py", "wasmtime"], check=True)

    def prepare(self, folder):
        self.folder = folder / "wasmtime-py" if folder else None
        try:
            return "wasmtime " + said(*self._python(), "-c", "import wasmtime, importlib.metadata as m; print(m.version('wasmtime'))")
        except Missing:
            raise Missing("--install DIR gets it, and so does pip install wasmtime") from None

    def _python(self):
        return ["env", f"PYTHONPATH={self.folder}", sys.executable] if self.folder else [sys.executable]

    def runs(self, benchmark):
        return bool(benchmark.source)

    def command(self, benchmark, quick, rounds, heap_mib):
        script = WORKSPACE / "bench/wasi.py"
        return [*self._python(), script, module(benchmark), *arguments(benchmark, quick, rounds)]


ENGINES = [
    Varve("varve"),
    Varve("again", again=True),
    Varve("baseline", "baseline"),
    Varve("optimized", "optimizing"),
    Varve("beside", variable="VARVE_BESIDE"),
    Node(),
    Java("HotSpot"),
    Java("HS serial", "-XX:+UseSerialGC"),
    Wasmtime("wt copy", "copying"),
    Wasmtime("wt drc", "drc"),
    Wasmtime("wt null", "null"),
    PackagedWasmtime(),
]


def install(folder, wanted, benchmarks):
    """Installs what wanted engines lack in a folder of its own: Node by npm, the host of wasmtime by cargo, wasmtime by pip; builds the Java
    programs and the native ones.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not all(module(b).is_file() for b in benchmarks):
        say("building the native programs")
        subprocess.run([WORKSPACE / "bench/wasi/build", NATIVE], check=False)
    for engine, made in (
        (Node, folder / "node/node_modules/.bin/node"),
        (Wasmtime, folder / "wasmtime-host/release/wasmtime-host"),
        (Java, PROGRAMS / "trees/target/classes"),
        (PackagedWasmtime, folder / "wasmtime-py/wasmtime"),
    ):
        if made.exists() or not any(isinstance(e, engine) for e in wanted):
            continue
        say(f"installing for {engine.__name__}")
        try:
            engine.install(folder)
        except (OSError, subprocess.CalledProcessError) as error:
            say(f"not installed: {error}")
