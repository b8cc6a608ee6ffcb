"""Contends for a lock by aetcd's Lock: see ../README.md for the commands it reads. Its Lock has one key, the name itself."""
import asyncio
import sys

import aetcd

ENDPOINT, NAME, TTL = sys.argv[1], sys.argv[2], int(sys.argv[3])


async def main():
    host, port = ENDPOINT.removeprefix("http://").split(":")
    async with aetcd.Client(host=host, port=int(port)) as client:
        lock = client.lock(NAME.encode(), ttl=TTL)
        while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
            if line == "hold":
                await lock.acquire(timeout=None)
                print("held", lock.revision, flush=True)
            elif line == "release":
                await lock.release()
                print("released", flush=True)


asyncio.run(main())
