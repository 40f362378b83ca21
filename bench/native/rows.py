"""Rows and arrays, some of them asked for often: `rows.py MIB`."""
import random
import sys
from array import array

MIB = int(sys.argv[1])
random.seed(1)
rows = {i: {"name": f"row {i}", "values": [i, i + 1, i + 2]} for i in range(MIB * 1200)}
history = [array("d", range(1000)) for _ in range(MIB * 50)]
total = 0
for _ in range(60_000):
    row = rows[min(random.randrange(len(rows)), random.randrange(len(rows)), random.randrange(len(rows)))]
    total += row["values"][1]
print(total, len(history))
