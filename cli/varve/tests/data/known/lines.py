# Memory that is made and used in different lines of Python. Blocks of more than 512 bytes are the C library's.
import sys


def make(mib):
    return bytearray(mib << 20)


def read(table, times):
    place, found, last = 1, 0, len(table) - 1
    for _ in range(times):
        place = (place * 1103515245 + 12345) & last
        found += table[place]
    return found


archive = make(16)  # cold: 16 MiB
archive[:] = b"\1" * len(archive)
table = make(int(sys.argv[1]))  # hot: read at random
print(read(table, int(sys.argv[2])))
held = [bytes(4000) for _ in range(500)]  # cold: 2 MB, in a comprehension
