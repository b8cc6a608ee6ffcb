"""A python-etcd contender: contender.py HOST PORT LOCK TTL HOLD"""
import sys
import time

import etcd

host, port, name, ttl, hold = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), float(sys.argv[5])
lock = etcd.Lock(etcd.Client(host=host, port=port), name)
# Nothing renews it while it waits, so it queues with a long TTL and shortens that once it holds.
lock.acquire(lock_ttl=60)
print("held", flush=True)
end = time.monotonic() + hold
while time.monotonic() < end:
    lock.acquire(lock_ttl=ttl)
    time.sleep(ttl / 3)
print("released", flush=True)
lock.release()
