"""The tools of the comparison: where each is found, how it is run on a trace, and what its run says it did.

Nothing is built, installed or downloaded here. A tool is the program that its environment variable names, or else the one
on PATH.
"""

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path


class Missing(Exception):
    """The tool cannot be run here; the text says what to do."""


class Failed(Exception):
    """The tool ran and did not do the work; the text says how."""


def run(command, folder, limit_s):
    """Runs a command in a folder: (standard output, processor time s, elapsed s). Others' work does not count."""
    begin = time.monotonic()
    with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
        child = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        try:
            while True:
                pid, status, usage = os.wait4(child.pid, os.WNOHANG)
                if pid:
                    break
                if time.monotonic() - begin > limit_s:
                    raise Failed(f"not done after {limit_s:.0f} s")
                time.sleep(0.002)
        except BaseException:
            # Too slow, or interrupted: nothing is left behind.
            child.kill()
            os.wait4(child.pid, 0)
            child.returncode = -9
            raise
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        said = (folder / "stderr").read_text(errors="replace").strip().splitlines() or ["no message"]
        raise Failed(f"ended with {child.returncode}: {said[-1]}")
    text = (folder / "stdout").read_text(errors="replace")
    return text, usage.ru_utime + usage.ru_stime, time.monotonic() - begin


def find(variable, program):
    """The program that the variable names, or the one on PATH; Missing if neither."""
    named = os.environ.get(variable)
    found = shutil.which(named or program)
    if not found:
        raise Missing(f"{variable}={named} is no program" if named else f"no {program} on PATH; set {variable}")
    # Links stay: a virtual environment's python is one.
    return Path(found).absolute()


def find_config(variable, program, name):
    """A tool's own configuration: the variable, or `name` in a folder beside or above the program."""
    if named := os.environ.get(variable):
        if not Path(named).is_file():
            raise Missing(f"{variable}={named} is no file")
        return Path(named).resolve()
    for folder in list(program.resolve().parents)[:3]:
        if (folder / name).is_file():
            return folder / name
    raise Missing(f"{program.name} needs its {name}; set {variable}")


def check(text, pattern, accesses):
    """Failed unless the numbers that a pattern finds in what a tool says add up to the accesses that it was given."""
    counts = re.findall(pattern, text, re.M)
    if sum(int(n) for n in counts) != accesses:
        said = f"it says {' + '.join(counts)}" if counts else text.strip()[-120:]
        raise Failed(f"did not count {accesses} requests: {said}")


class Tool:
    """A tool that takes a trace: `name`, what it `keeps`, the trace's `form`, and `serve`."""

    def __init__(self, name, keeps, form, variable, program):
        self.name, self.keeps, self.form = name, keeps, form
        self.variable, self.program = variable, program

    def prepare(self):
        """Finds the tool; Missing if it cannot be run here."""
        self.path = find(self.variable, self.program)

    def convert(self, trace, _folder, _limit_s):
        """Makes the tool's own form of a trace, untimed; the file to run."""
        return trace

    def serve(self, trace, accesses, folder, limit_s):
        """Runs the tool on a trace: (requests served, processor time s, elapsed s)."""
        raise NotImplementedError


class Varve(Tool):
    """`varve run` on a trace file, from start of the process to the printed answer."""

    def __init__(self, page):
        keeps = f"time; caches, page table, DRAM cache, queues; {page} pages"
        super().__init__(f"varve run, {page}", keeps, "lackey", "VARVE_VARVE", "varve")
        self.page = page

    def convert(self, trace, folder, limit_s):
        own = folder / "own.trace"
        run([self.path, "trace", "import", "--from", "lackey", trace, "-o", own], folder, limit_s)
        return own

    def serve(self, trace, accesses, folder, limit_s):
        machine = ["--machine", "optane-6230-memory-mode", "--policy", "first-touch"]
        rest = ["--scale", "1", "--page", self.page, "--jobs", "1", "--json"]
        text, cpu, wall = run([self.path, "run", trace, *machine, *rest], folder, limit_s)
        rows = json.loads(text)["table"]["rows"]
        if [row["name"] for row in rows] != ["first-touch"]:
            raise Failed("no row for first-touch in the answer")
        return accesses, cpu, wall


class DramSim3(Tool):
    """Runs for a number of cycles, not of requests: few enough that it is busy to the end, and it says what it served."""

    def __init__(self):
        super().__init__("DRAMsim3", "time; DRAM controller", "dramsim3", "VARVE_DRAMSIM3", "dramsim3main")

    def prepare(self):
        super().prepare()
        self.config = find_config("VARVE_DRAMSIM3_CONFIG", self.path, "configs/DDR4_8Gb_x8_3200.ini")
        self.cycles_per_request = 8.0

    def serve(self, trace, accesses, folder, limit_s):
        while True:
            cycles = max(1, int(accesses * self.cycles_per_request))
            options = ["-c", str(cycles), "-t", trace, "-o", "."]
            _, cpu, wall = run([self.path, self.config, *options], folder, limit_s)
            counts = re.findall(r"^num_reads_done\s*=\s*(\d+)", (folder / "dramsim3.txt").read_text(), re.M)
            served = sum(int(n) for n in counts)
            if not served:
                raise Failed("no num_reads_done in dramsim3.txt, or none done")
            if served < accesses:
                return served, cpu, wall
            # The trace ended before the cycles did, and the rest was idle.
            self.cycles_per_request /= 2


class Ramulator2(Tool):
    """Version 2.0 is a program that takes YAML, 2.1 a Python module that takes a script."""

    def __init__(self):
        super().__init__("Ramulator 2", "time; DRAM controller", "ramulator", "VARVE_RAMULATOR2", "ramulator2")

    def serve(self, trace, accesses, folder, limit_s):
        if self.path.name.startswith("python"):
            (folder / "config.py").write_text(RAMULATOR_2_1.replace("TRACE", str(trace)))
            command = [self.path, "-m", "ramulator", "run", "config.py"]
        else:
            (folder / "config.yaml").write_text(RAMULATOR_2_0.replace("TRACE", str(trace)))
            command = [self.path, "-f", "config.yaml"]
        # It ends when the last request is in its queue. The few tens that wait there then count as served.
        text, cpu, wall = run(command, folder, limit_s)
        check(text, r"total_num_read_requests: (\d+)", accesses)
        return accesses, cpu, wall


# One channel of DDR4-2400, as in Ramulator's own examples, and its own order of components.
RAMULATOR_2_0 = """\
Frontend: {impl: LoadStoreTrace, clock_ratio: 8, path: "TRACE"}
MemorySystem:
  impl: GenericDRAM
  clock_ratio: 3
  DRAM:
    impl: DDR4
    org: {preset: DDR4_8Gb_x8, channel: 1, rank: 2}
    timing: {preset: DDR4_2400R}
  Controller:
    impl: Generic
    Scheduler: {impl: FRFCFS}
    RefreshManager: {impl: AllBank}
    RowPolicy: {impl: ClosedRowPolicy, cap: 4}
    plugins:
  AddrMapper: {impl: RoBaRaCoCh}
"""

RAMULATOR_2_1 = """\
import ramulator as r
frontend = r.frontend.LoadStoreTrace(clock_ratio=8, path="TRACE")
controller = r.controller.GenericDDR(
    dram=r.dram.DDR4(org_preset="DDR4_8Gb_x8", timing_preset="DDR4_2400R", rank=1),
    scheduler=r.scheduler.FRFCFS(),
    refresh_manager=r.refresh_manager.AllBank(),
    row_policy=r.row_policy.Open(),
    addr_mapper=r.addr_mapper.RoBaRaCoCh(),
)
memory = r.memory_system.GenericDRAM(
    clock_ratio=3, controllers=[controller], channel_mapper=r.channel_mapper.CacheLineInterleave()
)
simulation = r.Simulation(frontend, memory)
simulation.run()
print(f"total_num_read_requests: {simulation.stats['memory_system']['total_num_read_requests']}")
"""


class Vans(Tool):
    def __init__(self):
        super().__init__("VANS", "time; Optane DIMM", "vans", "VARVE_VANS", "vans")

    def prepare(self):
        super().prepare()
        self.config = find_config("VARVE_VANS_CONFIG", self.path, "config/vans.cfg")

    def serve(self, trace, accesses, folder, limit_s):
        dump = folder / "vans_dump"
        dump.mkdir(exist_ok=True)
        _, cpu, wall = run([self.path, "-c", self.config, "-t", trace], folder, limit_s)
        # A file for each memory controller.
        text = "".join(path.read_text() for path in sorted(dump.glob("stats_*")))
        check(text, r"^cnt\.rmw\.events\.read_access: (\d+)", accesses)
        return accesses, cpu, wall


class ChampSim(Tool):
    def __init__(self):
        super().__init__("ChampSim", "time; core and caches", "champsim", "VARVE_CHAMPSIM", "champsim")

    def serve(self, trace, accesses, folder, limit_s):
        options = ["--warmup-instructions", "0", "--simulation-instructions", str(accesses)]
        text, cpu, wall = run([self.path, *options, trace], folder, limit_s)
        # Some more than it was given: it starts the trace anew, and those are in flight when the last one is done.
        loads = re.search(r"L1D LOAD +ACCESS: +(\d+)", text)
        if not loads or int(loads[1]) < accesses:
            raise Failed(f"did not load {accesses} times: {loads[0] if loads else text.strip()[-120:]}")
        return accesses, cpu, wall


class LibCacheSim(Tool):
    # The last-level cache of the machine that ours models, so that most accesses miss there and here.
    CACHE_BYTES = 27 * (1 << 20) + (1 << 19)

    def __init__(self):
        super().__init__("libCacheSim", "miss ratio only; one LRU", "libcachesim", "VARVE_CACHESIM", "cachesim")

    def serve(self, trace, accesses, folder, limit_s):
        command = [self.path, trace, "oracleGeneral", "lru", str(self.CACHE_BYTES), "--num-thread", "1"]
        text, cpu, wall = run(command, folder, limit_s)
        check(text, r"(\d+) req, miss ratio", accesses)
        return accesses, cpu, wall


OURS = [Varve("2MiB"), Varve("4KiB")]
PEERS = [Ramulator2(), DramSim3(), Vans(), ChampSim(), LibCacheSim()]


def self_test(folder):
    """Runs stand-ins for tools: one that answers, one that fails, one that hangs, one that is not there."""
    text, cpu, wall = run(["sh", "-c", "echo 5 req, miss ratio"], folder, 10)
    assert text == "5 req, miss ratio\n" and 0 <= cpu <= wall + 0.1, "a tool that answers"
    for script, limit_s, says in [
        ("echo no such option >&2; exit 3", 10, "ended with 3: no such option"),
        ("exec sleep 60", 0.1, "not done after"),
    ]:
        try:
            run(["sh", "-c", script], folder, limit_s)
        except Failed as why:
            assert says in str(why), f"{why}"
        else:
            raise AssertionError(f"`{script}` passed for a success")
    for tool in PEERS:
        os.environ[tool.variable] = str(folder / "absent")
        try:
            tool.prepare()
        except Missing as why:
            assert tool.variable in str(why), f"{why}"
        else:
            raise AssertionError(f"{tool.name} was found where there is nothing")
    # A peer that counts other requests than it was given has not done the work.
    miscounts = folder / "miscounts"
    for tool, says in [
        (Ramulator2(), "echo '  total_num_read_requests: 7'"),
        (Vans(), "echo cnt.rmw.events.read_access: 7 >vans_dump/stats_0"),
        (ChampSim(), "echo 'cpu0->cpu0_L1D LOAD         ACCESS:          7 HIT:          0'"),
        (LibCacheSim(), "echo trace LRU cache size 1MiB, 7 req, miss ratio 1.0"),
    ]:
        miscounts.write_text(f"#!/bin/sh\n{says}\n")
        miscounts.chmod(0o755)
        tool.path, tool.config = miscounts, "config"
        assert tool.serve("trace", 7, folder, 10)[0] == 7, f"{tool.name}: a right count"
        try:
            tool.serve("trace", 8, folder, 10)
        except Failed as why:
            assert "8" in str(why), f"{why}"
        else:
            raise AssertionError(f"{tool.name}: a wrong count passed")
