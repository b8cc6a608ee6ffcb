/** Why a peer can take less time than this package, by what is measured. */
export const WHY = {
  uncontended: {
    python:
      'It waits for the answer to each of its four requests, but a cycle of it costs less CPU time than one that is cancellable, has deadlines and settles unclear writes.',
    etcd3:
      'Its lock is no queue: one transaction creates a key or fails, and no listing has to be read. Over a slow network its round trips count, of which it has few.',
  },
  handOver: {
    python:
      'Both do the same: a removal, an event, one listing. python-etcd does it on plain blocking sockets, each contender in a thread that does nothing else; here promises and deadlines lie between the event and the listing.',
    etcdctl:
      'A watch of the v3 API is a stream that stands already, so the winner learns of the removal without another request.',
  },
  contenders: {
    python:
      '8 processes, etcd and the proxy, where there is one, share the processors of one machine, so CPU time counts. A process of Node spends more of it per cycle than one of Python.',
  },
  drain: {
    python: 'Requests per hand-over are the same; its contenders spend less CPU time on each of them.',
  },
};

/** Why a goal was not reached. */
export const WHY_NOT = {
  floor:
    'the listing is a request more, though no round trip, and deadlines, the judging of the queue and the settling of unclear writes take CPU time between an answer and the next request, when etcd has nothing to do.',
  peers:
    'each cycle waits for two writes to be synced to the disk, whoever makes it; the more of its time that is, the nearer they are. See the figures with the data of etcd in memory.',
  handOver:
    'both read the queue once; deadlines, the judging of the queue and the settling of unclear writes take CPU time before the removal is sent and between the event and the listing.',
  trips:
    'what has not run for 2 ms is out of the caches of a processor, so that each packet takes longer to send and to take in; see what two bare writes, which are two round trips, come to.',
  drain:
    'every look at the queue has all of its entries in it, which etcd writes out anew each time: the longer the queue, the longer that takes.',
};

export const HOW = `Every figure comes from one run of \`npm run bench\` on one etcd. Contestants take turns in alternating rounds, each
in an order of its own, after some that do not count. In the uncontended cycle and in draining each has a process of its own. A ratio is taken within a round, and what stands here is the median of the rounds, with the lowest and the
highest in parentheses. So ratios hold where a noisy machine moves the times. Per second is one second over the median. p99 is over all samples of all rounds. Where there are two
processors or more, etcd has half of them to itself, but for the 8 contenders: a lock and its etcd seldom share one.

- The **floors** are bare undici requests that no lock on etcd's v2 API can do without.
- Requests, round trips and sockets are counted at a byte-level proxy in a process of its own. A request that arrives before any answer to the
  round trip under way was passed on belongs to that round trip.
- "2 ms added each way" is the same proxy holding every byte back for 2 ms in each direction, without a limit on what is under way.
  In the uncontended cycle it takes its turns in the same rounds as one that holds nothing back.
- **Hand-over** is from the call of \`release()\` to the next contender's \`acquire\` resolved, on one clock. The next one is in etcd's books as
  waiting before the clock starts. python-etcd's is timed in its own process, between two threads.
- \`etcdctl lock\` gives the lock back when its process is asked to end, so its hand-over has that signal, one more read and the pipe of its
  output in it. npm etcd3's lock cannot wait, so it takes part in nothing but the uncontended cycle.`;
