"""The python-etcd contender: takes turns as turns.mjs does, with the same orders and the same story.

python-etcd renews nothing and never learns of a loss, so a hold counts until its deadline at most: from the moment before
the entry was queued to that + TTL - margin. A lock and a client are used for one turn only: a client that has met a
fault too often has no members left, and a lock whose entry expired would make it again under its old number.
"""
import json
import logging
import os
import random
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import etcd

orders = json.loads(os.environ["CONTENDER"])
who, lock_name, ttl = orders["who"], orders["lock"], orders["ttl"]
hosts = [(url.hostname, url.port) for url in map(urllib.parse.urlparse, orders["endpoints"])]
quitting = threading.Event()
steps = 0

# It logs each failure it meets, with a stack trace.
logging.disable(logging.CRITICAL)


def tell(kind, **more):
    sys.stdout.write(json.dumps(dict(at=time.monotonic() * 1000, who=who, kind=kind, **more)) + "\n")
    sys.stdout.flush()


def wait_for_quit():
    if sys.stdin.readline() == "":
        os._exit(1)  # whoever started this one has died
    quitting.set()


def ask(method, what, **query):
    url = "%s/%s/%s?%s" % (orders["resource"], lock_name, what, urllib.parse.urlencode(query))
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=10) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        if error.code != 409:
            raise
        tell("refused", token=query["token"])


def guarded_step(token, deadline):
    global steps
    steps += 1
    addition = "%s %d" % (who, steps)
    fenced = ask("GET", "fenced", token=token)
    plain = ask("GET", "plain", token=token)
    time.sleep(0.02 + random.random() * 0.23)
    if not orders.get("trusting") and time.monotonic() >= deadline:
        return
    if fenced is not None:
        ask("POST", "fenced", token=token, of=fenced, addition=addition)
    ask("POST", "plain", token=token, of=plain, addition=addition)


def turn():
    start = random.randrange(len(hosts))
    # Each failure takes one from the list for good.
    several = tuple((hosts[start:] + hosts[:start]) * 100)
    client = etcd.Client(host=several, allow_reconnect=True, use_proxies=True, read_timeout=3)
    lock = etcd.Lock(client, lock_name)
    tell("asks", uuid=lock.uuid)
    deadline = time.monotonic() + ttl * 0.9
    try:
        # The timeout is one of each watch, after which it watches again.
        lock.acquire(lock_ttl=ttl, timeout=3)
        token = str(int(lock._sequence))
        tell("held", token=token, until=deadline * 1000)
        if time.monotonic() < deadline:
            guarded_step(token, deadline)
        tell("released", token=token)
    except (etcd.EtcdException, ValueError) as error:
        tell("failed", why=repr(error))
    give_up(lock, deadline)


def give_up(lock, deadline):
    """Removes the entry, as long as there may be one."""
    while True:
        try:
            return lock.release()
        except ValueError:
            return  # never queued
        except etcd.EtcdException:
            if time.monotonic() >= deadline:
                return
            time.sleep(0.2)


threading.Thread(target=wait_for_quit, daemon=True).start()
while not quitting.is_set():
    turn()
    quitting.wait(random.random() * 0.15)
# Without waiting for the thread that reads stdin.
os._exit(0)
