"""Runs python-etcd locks on JSON commands, one per line, on stdin and stdout: many locks at once, a thread for each.

    harness.py HOST PORT [CLIENT_OPTIONS_AS_JSON]

    {"id": 1, "op": "lock", "lock": "a", "name": "file1", "uuid": null, "client": {"lock_prefix": "/_locks"}}
    {"id": 2, "op": "acquire", "lock": "a", "args": {"blocking": true, "lock_ttl": 60, "timeout": 0}}
    -> {"id": 2, "ok": true, "result": true}
    -> {"id": 3, "ok": false, "error": {"type": "EtcdLockExpired", "message": "Lock not found"}}
    -> {"event": "released", "id": 4}

Commands of one lock run in the order they were sent; a blocking acquire blocks only its own lock. The process exits
when stdin closes and leaves its keys behind, as a crash would. Logs go to stderr.
"""
import json
import logging
import os
import queue
import sys
import threading
import time

import etcd

HOST, PORT = sys.argv[1], int(sys.argv[2])
CLIENT_OPTIONS = json.loads(sys.argv[3]) if len(sys.argv) > 3 else {}

writing = threading.Lock()


def send(message):
    with writing:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def answer(command, work):
    try:
        send({"id": command["id"], "ok": True, "result": work()})
    except Exception as error:
        described = {"type": type(error).__name__, "message": str(error)}
        send({"id": command["id"], "ok": False, "error": described})


class Worker:
    """One python-etcd Lock, its client, and the thread that may block on it."""

    def __init__(self, name, uuid=None, client=None):
        self.options = dict(CLIENT_OPTIONS, **(client or {}))
        self.client = self.connect()
        self.lock = etcd.Lock(self.client, name)
        if uuid is not None:
            # The setter refuses a uuid that is not in the queue yet.
            self.lock._uuid = uuid
        self.commands = queue.Queue()
        self.let_go = threading.Event()
        threading.Thread(target=self.run, daemon=True).start()

    def connect(self):
        return etcd.Client(host=HOST, port=PORT, **self.options)

    def submit(self, command):
        op = command["op"]
        if op in ("state", "contenders"):
            # Answered at once, even while an acquire blocks this lock's own thread.
            work = getattr(self, "do_" + op)
            threading.Thread(target=answer, args=(command, work), daemon=True).start()
            return
        if op == "hold":
            # One event per hold: a release ends the hold sent before it, even if that hold has not begun.
            self.let_go = command["let_go"] = threading.Event()
        elif op == "release":
            self.let_go.set()
        self.commands.put(command)

    def run(self):
        while True:
            command = self.commands.get()
            args = command.get("args", {})
            if command["op"] == "hold":
                self.hold(command, **args)
            else:
                answer(command, lambda: getattr(self, "do_" + command["op"])(**args))

    def hold(self, command, seconds, **acquire):
        """Answers when acquired, releases after `seconds` or on `release`, then sends the event "released"."""
        answer(command, lambda: self.lock.acquire(**acquire))
        if self.lock.is_taken:
            command["let_go"].wait(seconds)
            try:
                self.lock.release()
            except Exception:
                logging.exception("could not release the lock of a hold")
        send({"event": "released", "id": command["id"]})

    def do_acquire(self, **args):
        return self.lock.acquire(**args)

    def do_release(self):
        self.lock.release()

    def do_isAcquired(self):
        return self.lock.is_acquired

    def do_setUuid(self, uuid):
        self.lock.uuid = uuid

    def do_state(self):
        lock = self.lock
        key = lock.lock_key if lock._sequence else None
        return {"uuid": lock.uuid, "isTaken": lock.is_taken, "lockKey": key}

    def do_contenders(self):
        try:
            leaves = self.connect().read(self.lock.path, recursive=True, quorum=True).leaves
            entries = [{"key": leaf.key, "value": leaf.value} for leaf in leaves if not leaf.dir]
        except etcd.EtcdKeyNotFound:
            entries = []
        return sorted(entries, key=lambda entry: entry["key"])

    def do_cycle(self, times, counter, pause=0, inside=None, counter_port=None, **acquire):
        """Adds 1 to a counter under the lock, `times` times; returns the keys it held, in order."""
        held = []
        self.counting = self.client if counter_port is None else etcd.Client(host=HOST, port=counter_port)
        for _ in range(times):
            self.lock.acquire(**acquire)
            held.append(self.lock.lock_key)
            try:
                self.enter(inside)
                seen = self.count(counter)
                time.sleep(pause)
                self.counting.write(counter, seen + 1)
                self.leave(inside)
            finally:
                self.lock.release()
        return held

    def enter(self, inside):
        """Fails with EtcdAlreadyExist while another holder is inside."""
        if inside is not None:
            self.counting.write(inside, self.lock.lock_key, prevExist=False)

    def leave(self, inside):
        """Fails if another holder has created or removed the key since `enter`."""
        if inside is not None:
            self.counting.delete(inside, prevValue=self.lock.lock_key)

    def count(self, counter):
        try:
            return int(self.counting.read(counter, quorum=True).value)
        except etcd.EtcdKeyNotFound:
            return 0


def main():
    workers = {}
    for line in sys.stdin:
        command = json.loads(line)
        if command["op"] == "exit":
            break
        if command["op"] == "lock":

            def create():
                workers[command["lock"]] = Worker(command["name"], command.get("uuid"), command.get("client"))

            answer(command, create)
        else:
            workers[command["lock"]].submit(command)
    # sys.exit() would wait for threads that block forever.
    os._exit(0)


main()
