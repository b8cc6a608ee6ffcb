"""A python-etcd contender: contender.py HOST PORT LOCK TTL HOLD (TTL and HOLD in seconds)"""
import sys
import time

import etcd

host, port, name, ttl, hold = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), float(sys.argv[5])
lock = etcd.Lock(etcd.Client(host=host, port=port), name)
# A waiting entry is not renewed, so it gets a long TTL; the holder then shortens the TTL.
lock.acquire(lock_ttl=60)
print("held", flush=True)
end = time.monotonic() + hold
while time.monotonic() < end:
    lock.acquire(lock_ttl=ttl)
    time.sleep(ttl / 3)
print("released", flush=True)
lock.release()
