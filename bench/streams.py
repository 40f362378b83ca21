"""The access stream of the comparison, and how it is written in each tool's own trace format.

One thread, reads of 64 B lines drawn at random from a region: the same recurrence and seed as the case `random` of
`model/machine/examples/speed.rs`, so that the model alone and every tool that reads a file see the same accesses.
"""

import struct
from array import array

LINE_BYTES = 64
SEED = 1
# Knuth's MMIX generator, as in `model/machine/benches/pattern/mod.rs`.
MULTIPLIER = 6_364_136_223_846_793_005
INCREMENT = 1_442_695_040_888_963_407
MASK = (1 << 64) - 1
# Tools that take virtual addresses get the region at 4 GiB, as in the example: an address of 0 means "none" to ChampSim.
VIRTUAL_BASE = 1 << 32
# Lines that are formatted before they are written.
CHUNK = 1 << 16


def offsets(accesses, region_bytes):
    """Offsets into the region, B, one per access."""
    lines, state, out = region_bytes // LINE_BYTES, SEED, array("Q")
    for _ in range(accesses):
        state = (state * MULTIPLIER + INCREMENT) & MASK
        out.append(((state >> 33) * lines >> 31) * LINE_BYTES)
    return out


def _lackey(offset, _index):
    return b" L %x,64\n" % (VIRTUAL_BASE + offset)


def _ramulator(offset, _index):
    return b"LD 0x%x\n" % offset


def _dramsim3(offset, _index):
    # Cycle 0: each request is offered as soon as the queue has room.
    return b"0x%X READ 0\n" % offset


def _vans(offset, _index):
    return b"0x%08x R\n" % offset


def _champsim(offset, index):
    # One load per instruction, no registers, in a loop of 16 instructions: ip, branch flags, 2 + 4 registers, 2
    # destinations, 4 sources.
    return struct.pack("<Q8x2Q4Q", 0x400000 + index % 16 * 4, 0, 0, VIRTUAL_BASE + offset, 0, 0, 0)


def _libcachesim(offset, index):
    # oracleGeneral: time (s), object, size (B), next access of the object (-1: unknown, which LRU does not need).
    return struct.pack("<IQIq", index // 1_000_000, offset // LINE_BYTES, LINE_BYTES, -1)


# Format: how one access is written, and the size of a record in bytes (none: a line of text).
FORMATS = {
    "lackey": (_lackey, None),
    "ramulator": (_ramulator, None),
    "dramsim3": (_dramsim3, None),
    "vans": (_vans, None),
    "champsim": (_champsim, 64),
    "libcachesim": (_libcachesim, 24),
}


def write(path, form, stream, accesses):
    """Writes the first `accesses` of the stream in a format of `FORMATS`."""
    record = FORMATS[form][0]
    with open(path, "wb") as out:
        for begin in range(0, accesses, CHUNK):
            part = stream[begin : min(begin + CHUNK, accesses)]
            out.write(b"".join(record(offset, begin + i) for i, offset in enumerate(part)))


def _decode(form, data):
    """Offsets in written bytes, by a second reading of each format's description."""
    if form == "champsim":
        records = [data[i : i + 64] for i in range(0, len(data), 64)]
        assert all(r[8] == 0 and r[9] == 0 and r[16:32] == bytes(16) and r[40:] == bytes(24) for r in records)
        return [int.from_bytes(r[32:40], "little") - VIRTUAL_BASE for r in records]
    if form == "libcachesim":
        records = [data[i : i + 24] for i in range(0, len(data), 24)]
        assert all(r[12:16] == b"\x40\0\0\0" and r[16:] == b"\xff" * 8 for r in records)
        return [int.from_bytes(r[4:12], "little") * LINE_BYTES for r in records]
    lines = data.decode().splitlines()
    if form == "lackey":
        assert all(line.startswith(" L ") and line.endswith(",64") for line in lines)
        return [int(line[3:-3], 16) - VIRTUAL_BASE for line in lines]
    words = [line.split(" ") for line in lines]
    if form == "ramulator":
        assert all(len(w) == 2 and w[0] == "LD" and w[1].startswith("0x") for w in words)
        return [int(w[1], 16) for w in words]
    assert all(w[1:] == (["R"] if form == "vans" else ["READ", "0"]) for w in words)
    return [int(w[0], 16) for w in words]


def self_test(folder):
    """Writes a tiny trace in each format and reads it back; raises AssertionError at the first that differs."""
    accesses, region = 1000, 1 << 30
    stream = offsets(accesses, region)
    # The first two by hand: with 2^24 lines a line is the state's upper 24 bits.
    first = (MULTIPLIER + INCREMENT) & MASK
    second = (first * MULTIPLIER + INCREMENT) & MASK
    assert list(stream[:2]) == [(first >> 40) << 6, (second >> 40) << 6], "stream"
    assert all(o < region and o % LINE_BYTES == 0 for o in stream), "stream"
    assert len(set(stream)) > accesses * 0.99, "the stream repeats itself"
    for form, (_, record_bytes) in FORMATS.items():
        path = folder / form
        write(path, form, stream, accesses)
        data = path.read_bytes()
        if record_bytes:
            assert len(data) == accesses * record_bytes, f"{form}: {len(data)} B"
        else:
            assert data.count(b"\n") == accesses and data.endswith(b"\n"), f"{form}: lines"
        assert _decode(form, data) == list(stream), f"{form}: addresses"
        write(path, form, stream, 10)
        assert _decode(form, path.read_bytes()) == list(stream[:10]), f"{form}: a prefix"
