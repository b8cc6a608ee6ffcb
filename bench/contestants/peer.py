"""python-etcd's Lock, controlled by JSON lines and timed in this process, so that the times exclude the pipe.

    peer.py HOST PORT

One command at a time. `queue` starts contenders that wait in threads; `drain` releases the holder before them.
"""
import json
import resource
import sys
import threading
import time
import traceback

import etcd

HOST, PORT = sys.argv[1], int(sys.argv[2])
TTL = 600


def connect():
    return etcd.Client(host=HOST, port=PORT, read_timeout=120)


class Peer:
    def __init__(self):
        self.client = connect()
        self.clients = []

    def cycles(self, name, times):
        took = []
        for _ in range(times):
            start = time.monotonic()
            lock = etcd.Lock(self.client, name)
            lock.acquire(lock_ttl=TTL)
            lock.release()
            took.append((time.monotonic() - start) * 1000)
        return took

    def together(self, name, times, locks):
        """Returns the milliseconds of a cycle, and those of CPU time, of that many threads, each with a client and a lock of its own."""
        while len(self.clients) < locks:
            self.clients.append(connect())

        def cycles(index):
            for _ in range(times):
                lock = etcd.Lock(self.clients[index], "%s-%d" % (name, index))
                lock.acquire(lock_ttl=TTL)
                lock.release()

        before = self.usage()["cpu"]
        start = time.monotonic()
        threads = [threading.Thread(target=cycles, args=(index,)) for index in range(locks)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = (time.monotonic() - start) * 1000
        count = times * locks
        return {"took": took / count, "processor": (self.usage()["cpu"] - before) / count}

    def contend(self, name, seconds):
        end = time.monotonic() + seconds
        done = 0
        while time.monotonic() < end:
            self.cycles(name, 1)
            done += 1
        return done

    def hold(self, name):
        self.holder = etcd.Lock(self.client, name)
        self.holder.acquire(lock_ttl=TTL)
        self.expect()

    def expect(self):
        """Prepares for contenders started by `queue`; they release the lock at once, unless `pass_on` lets one keep it."""
        self.draining = True
        self.served = []
        self.waiters = []

    def queue(self, name):
        """Starts one more contender; the caller checks in etcd that it waits."""
        lock = etcd.Lock(connect(), name)

        def wait():
            lock.acquire(lock_ttl=TTL)
            self.served.append(time.monotonic())
            if self.draining:
                lock.release()

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        self.waiters.append((lock, thread))

    def pass_on(self):
        """Returns milliseconds from the call of release to the acquire of the one waiter, the new holder."""
        self.draining = False
        start = time.monotonic()
        self.holder.release()
        [(lock, thread)] = self.waiters
        thread.join()
        took = (self.served[0] - start) * 1000
        self.holder, self.waiters, self.served = lock, [], []
        return took

    def give_back(self):
        self.holder.release()

    def drain(self):
        """Returns milliseconds from the release until the last waiter has acquired the lock."""
        start = time.monotonic()
        self.holder.release()
        self.join()
        return (self.served[-1] - start) * 1000

    def join(self):
        """Waits for all contenders; returns how many acquired the lock."""
        for _, thread in self.waiters:
            thread.join()
        return len(self.served)

    def usage(self):
        """Returns milliseconds of CPU time and bytes of resident memory so far."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        with open("/proc/self/statm") as statm:
            resident = int(statm.read().split()[1]) * resource.getpagesize()
        return {"cpu": (used.ru_utime + used.ru_stime) * 1000, "resident": resident}


def main():
    peer = Peer()
    for line in sys.stdin:
        command = json.loads(line)
        answer = {"id": command.pop("id")}
        try:
            answer["result"] = getattr(peer, command.pop("op"))(**command)
        except Exception:
            answer["error"] = traceback.format_exc()
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


main()
