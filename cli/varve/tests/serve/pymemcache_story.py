"""What pymemcache asks of a server, each with the answer that it must get. Arguments: the port."""

import sys
import time

from pymemcache.client.base import Client, PooledClient
from pymemcache.client.hash import HashClient

address = ("127.0.0.1", int(sys.argv[1]))
client = Client(address, timeout=10)


def same(found, expected):
    assert found == expected, f"{found!r}, expected {expected!r}"


same(client.flush_all(), True)
same(client.get("nothing"), None)
same(client.set("a", b"1", noreply=False), True)
same(client.get("a"), b"1")
same(client.add("a", b"2", noreply=False), False)
same(client.add("b", b"2", noreply=False), True)
same(client.replace("c", b"3", noreply=False), False)
same(client.replace("b", b"3", noreply=False), True)
same(client.append("b", b"4", noreply=False), True)
same(client.prepend("b", b"2", noreply=False), True)
same(client.get("b"), b"234")
same(client.incr("b", 6), 240)
same(client.decr("b", 1000), 0)
same(client.incr("none", 1), None)

value, unique = client.gets("a")
same(value, b"1")
same(client.cas("a", b"5", unique, noreply=False), True)
same(client.cas("a", b"6", unique, noreply=False), False)
same(client.cas("none", b"6", unique, noreply=False), None)

same(client.touch("a", 100, noreply=False), True)
same(client.touch("none", 100, noreply=False), False)
if hasattr(client, "gat"):
    # Since version 4.
    same(client.gat("a", 100), b"5")
    same(client.gats("a", 100)[0], b"5")
same(client.delete("a", noreply=False), True)
same(client.delete("a", noreply=False), False)

many = {f"many{i}": bytes([i % 256]) * i for i in range(500)}
same(client.set_many(many), [])
same(client.get_many(many), many)
same(len(client.gets_many(many)), len(many))
same(client.delete_many(many), True)
same(client.get_many(many), {})

large = bytes(range(256)) * 4096
same(client.set("large", large, noreply=False), True)
same(client.get("large"), large)
try:
    client.set("larger", large + b"x", noreply=False)
    raise AssertionError("a value above the limit was taken")
except Exception as e:
    assert "too large" in str(e), repr(e)
same(client.get("larger"), None)

# Most clients want no answer to a store, and read none: an error would be taken for the answer to what comes next.
client.set("larger", large + b"x", noreply=True)
same(client.get("larger"), None)
same(client.get("large"), large)

# Without answers, and then one that waits for all before.
for i in range(1000):
    client.set(f"quiet{i}", str(i), noreply=True)
same(client.get("quiet999"), b"999")

same(client.set("short", b"x", expire=1, noreply=False), True)
same(client.get("short"), b"x")
time.sleep(2.1)
same(client.get("short"), None)

stats = client.stats()
assert stats[b"curr_items"] >= 1000, stats
assert b"varve" in client.version()
assert client.stats("settings")[b"item_size_max"] == 1 << 20

pool = PooledClient(address, max_pool_size=4)
same(pool.set("pooled", b"y", noreply=False), True)
ring = HashClient([address])
same(ring.get("pooled"), b"y")
client.quit()
print("done")
