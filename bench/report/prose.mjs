/** Why a peer can take less time than this package, by section and peer. */
export const WHY = {
  uncontended: {
    python:
      'It waits for the answer to each of its four requests, but needs less CPU time per cycle than this package, which supports cancellation and deadlines and handles unclear writes.',
    etcd3:
      'Its lock has no queue: one transaction creates a key or fails, and it reads no listing. On a slow network its few round trips are an advantage.',
  },
  handOver: {
    python:
      'Both send the same requests: a removal, an event, one listing. python-etcd uses blocking sockets, with one thread per contender; this package handles promises and deadlines between the event and the listing.',
    etcdctl:
      'A watch of the v3 API is an open stream, so the next holder is notified of the removal without another request.',
  },
  contenders: {
    python:
      '8 processes, etcd and, in some sections, the proxy share the processors of one machine, so CPU time matters. A Node process needs more CPU time per cycle than a Python process.',
  },
  drain: {
    python: 'The number of requests per hand-over is the same; its contenders need less CPU time per request.',
  },
};

/** Why a goal was not reached. */
export const WHY_NOT = {
  floor:
    'the listing is one more request, though not one more round trip. Deadlines, evaluating the queue and handling unclear writes take CPU time between an answer and the next request, while etcd is idle.',
  peers:
    "every contestant waits in each cycle until two writes are synced to the disk; the larger the share of that time, the smaller the difference. See the figures with etcd's data in memory.",
  handOver:
    'both read the queue once; deadlines, evaluating the queue and handling unclear writes take CPU time before the removal is sent and between the event and the listing.',
  trips:
    'code that has not run for 2 ms has been evicted from the processor caches, so each packet takes longer to send and to receive. Compare with two bare writes, which are two round trips.',
  v3Floor:
    'deadlines, cancellation and handling of unclear writes take CPU time between an answer and the next request, while etcd is idle.',
  v3Peers:
    'npm etcd3 needs three raft writes and three round trips, instead of two of each: 1.5 times as many, so that even the floor is only about 1.5 times as fast. The gateway also costs etcd more CPU time than gRPC.',
  drain:
    'each listing contains all entries of the queue, which etcd encodes again each time: the longer the queue, the longer this takes.',
};

export const HOW = `Every figure comes from one run of \`npm run bench\` on one etcd. After warm-up rounds, contestants take turns in each round, in random order. In the uncontended
cycle and in draining, each contestant has its own process. Ratios are calculated within each round; the report shows their median, with the lowest
and the highest in parentheses. This makes ratios less sensitive to a noisy machine than times. "Per second" is one second divided by the median. p99 is
over all samples of all rounds. With two or more processors, etcd has half of them to itself, except with the 8 contenders: in production, a process and
its etcd seldom share a processor.

- The **floors** are the bare undici requests that every lock on etcd's v2 API needs.
- A byte-level proxy in its own process counts requests, round trips and sockets. A request that arrives before the proxy has forwarded the
  first answer of the current round trip belongs to that round trip.
- "2 ms added each way" is the same proxy, which delays every byte by 2 ms in each direction, without a limit on the bytes in flight.
  The uncontended cycle runs in the same rounds through this proxy and through one without delay.
- **Hand-over** is the time from the call of \`release()\` until the next contender's \`acquire\` resolves, on one clock. etcd has registered the
  next contender's watch before the clock starts. python-etcd's hand-over is timed in its own process, between two threads.
- \`etcdctl lock\` releases the lock when its process gets SIGTERM, so its hand-over includes that signal, one more read and the pipe of its
  output. npm etcd3's lock cannot wait, so it takes part in the uncontended cycle only.`;
