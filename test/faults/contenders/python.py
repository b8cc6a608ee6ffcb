"""The python-etcd contender: runs the loop of turns.mjs, with the same orders and the same events.

python-etcd does not renew and never notices a loss, so a hold counts until its deadline at most: the time before the append
+ TTL - margin. Each turn has its own lock and client: a client has no members left after too many faults, and a lock
re-creates an expired entry under its old number.
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

# python-etcd logs each failure with a stack trace.
logging.disable(logging.CRITICAL)


def tell(kind, **more):
    sys.stdout.write(json.dumps(dict(at=time.monotonic() * 1000, who=who, kind=kind, **more)) + "\n")
    sys.stdout.flush()


def wait_for_quit():
    if sys.stdin.readline() == "":
        os._exit(1)  # the parent process has died
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
    # python-etcd removes a host from its list for good after each failure.
    several = tuple((hosts[start:] + hosts[:start]) * 100)
    client = etcd.Client(host=several, allow_reconnect=True, use_proxies=True, read_timeout=3)
    lock = etcd.Lock(client, lock_name)
    tell("asks", uuid=lock.uuid)
    deadline = time.monotonic() + ttl * 0.9
    try:
        # The timeout limits each watch, not the call: python-etcd then watches again.
        lock.acquire(lock_ttl=ttl, timeout=3)
        token = str(fencing_token(client, lock))
        tell("held", token=token, until=deadline * 1000)
        if time.monotonic() < deadline:
            guarded_step(token, deadline)
        tell("released", token=token)
    except (etcd.EtcdException, ValueError) as error:
        tell("failed", why=repr(error))
    give_up(lock, deadline)


def fencing_token(client, lock):
    """Through a bridge to etcd v3, the revision of a read during the hold: other clients have such tokens, too."""
    if orders["api"] == "v2":
        return int(lock._sequence)
    return client.read(lock.path, recursive=True).etcd_index


def give_up(lock, deadline):
    """Retries the release until it succeeds, there is no entry, or the deadline has passed."""
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
# Exits without waiting for the thread that reads stdin.
os._exit(0)
