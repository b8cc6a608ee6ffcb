"""Calls every key operation of python-etcd's Client and prints the results, one JSON line per step.

    client.py HOST PORT DIRECTORY [STEP_TO_LEAVE_OUT ...]
"""
import json
import re
import sys
import threading

import etcd

HOST, PORT, DIR = sys.argv[1], int(sys.argv[2]), sys.argv[3]
LEFT_OUT = sys.argv[4:]
client = etcd.Client(host=HOST, port=PORT)
start = None


def described(result):
    """The fields of a result, with indexes relative to the first one and without times."""
    global start
    start = start or result.createdIndex
    children = sorted(described(child)["key"] for child in result.children if child is not result and child.key)
    return {
        "action": result.action,
        "key": re.sub(r"\d{20}", "N", (result.key or "").replace(DIR, "")),
        "value": result.value,
        "dir": result.dir,
        "ttl": result.ttl is not None,
        "created": result.createdIndex - start,
        "modified": result.modifiedIndex - start,
        "new": result.newKey,
        "children": children,
        "previous": getattr(getattr(result, "_prev_node", None), "value", None),
    }


def step(name, work):
    if name in LEFT_OUT:
        return
    try:
        result = work()
        line = described(result) if isinstance(result, etcd.EtcdResult) else result
    except etcd.EtcdException as error:
        line = {"error": type(error).__name__, "code": error.payload.get("errorCode") if error.payload else None}
    print(json.dumps([name, line], sort_keys=True), flush=True)


def key(name):
    return DIR + "/" + name


def later(work):
    threading.Timer(0.3, work).start()


def watched(**options):
    later(lambda: client.write(key("w/a"), "seen"))
    return client.watch(key("w"), recursive=True, timeout=10, **options)


def eternally():
    later(lambda: [client.write(key("e"), value) for value in ("1", "2", "3")])
    events = client.eternal_watch(key("e"))
    return [next(events).value for _ in range(3)]


def from_the_past():
    first = client.write(key("p"), "1")
    client.write(key("p"), "2")
    return client.watch(key("p"), index=first.modifiedIndex, timeout=10)


def changed_by_hand():
    result = client.read(key("hand"))
    result.value = "by hand"
    return client.update(result)


def expired():
    client.write(key("short"), "1", ttl=1)
    event = client.watch(key("short"), timeout=10)
    return event.action


step("write", lambda: client.write(key("a"), "1"))
step("write again", lambda: client.write(key("a"), "ü <&>"))
step("read", lambda: client.read(key("a")))
step("get", lambda: client.get(key("a")))
step("set with a TTL", lambda: client.set(key("a"), "2", ttl=60))
step("refresh", lambda: client.refresh(key("a"), ttl=70))
step("write with prevExist=true", lambda: client.write(key("a"), "3", prevExist=True))
step("write with prevExist=false", lambda: client.write(key("a"), "4", prevExist=False))
step("test and set", lambda: client.test_and_set(key("a"), "5", "3"))
step("test and set with a wrong value", lambda: client.test_and_set(key("a"), "6", "3"))
step("write with a wrong index", lambda: client.write(key("a"), "6", prevIndex=1))
step("contains", lambda: [key("a") in client, key("none") in client])
step("read a missing key", lambda: client.read(key("none/at/all")))
step("read below a file", lambda: client.read(key("a/b")))
step("make a directory", lambda: client.write(key("d"), None, dir=True))
step("make a directory again", lambda: client.write(key("d"), None, dir=True))
step("write to a directory", lambda: client.write(key("d"), "1"))
step("append", lambda: client.write(key("q"), "first", append=True).value)
step("append again", lambda: client.write(key("q"), "second", append=True, ttl=60).value)
step("queue", lambda: [leaf.value for leaf in client.read(key("q"), recursive=True, sorted=True).leaves])
step("list", lambda: client.read(DIR, recursive=True, sorted=True))
step("quorum", lambda: client.read(key("a"), quorum=True))
step("delete a directory as a file", lambda: client.delete(key("q")))
step("delete a full directory", lambda: client.delete(key("q"), dir=True))
step("delete a directory recursively", lambda: client.delete(key("q"), recursive=True))
step("delete an empty directory", lambda: client.delete(key("d"), dir=True))
step("delete with a wrong value", lambda: client.delete(key("a"), prevValue="x"))
step("delete with the right value", lambda: client.delete(key("a"), prevValue="5"))
step("delete a deleted key", lambda: client.delete(key("a")))
step("pop", lambda: [client.write(key("b"), "last").value, client.pop(key("b")).value])
step("update", lambda: [client.write(key("hand"), "1").value, changed_by_hand().value])
step("write to the root", lambda: client.write("/", "1"))
step("watch", lambda: watched())
step("watch from a past index", from_the_past)
step("watch forever", eternally)
step("watch an expiry", expired)
step("watch a key that never changes", lambda: client.watch(key("never"), timeout=1))
step("machines", lambda: [client.base_uri in client.machines, len(client.machines)])
step("members", lambda: [sorted(member) for member in client.members.values()])
step("leader", lambda: client.leader["id"] in client.members)
step("leader stats", lambda: client.leader_stats["leader"] in client.members)
step("store stats", lambda: sorted(client.store_stats))
step("stats", lambda: [client.stats["state"], sorted(client.stats)])
step("version", lambda: [client.version, client.cluster_version])
step("reconnect", lambda: etcd.Client(host=HOST, port=PORT, allow_reconnect=True).write(key("r"), "1").value)
