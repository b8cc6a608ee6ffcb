/** Characters of the longest bar. */
const WIDTH = 60;

/** Returns a timeline that prints and records events. */
export function openTimeline() {
  const start = performance.now();
  const events = [];
  const seconds = () => (performance.now() - start) / 1000;
  return {
    add(who, what, more = '') {
      const at = seconds();
      events.push({ who, what, at });
      console.log(`${at.toFixed(2).padStart(6)} s  ${who.padEnd(12)} ${what.padEnd(9)}${more && ` ${more}`}`);
    },
    /** Returns the contenders with this event, in its order. */
    order: (what) => events.filter((event) => event.what === what).map(({ who }) => who),
    /** Prints a bar per contender: when it waited and when it held the lock. */
    printBars() {
      const end = Math.max(...events.map(({ at }) => at));
      const column = (at) => Math.round((at / end) * WIDTH);
      for (const who of new Set(events.map((event) => event.who))) {
        const at = (wanted) => column(events.find((event) => event.who === who && event.what === wanted)?.at ?? end);
        const [enqueued, held, released] = [at('enqueued'), at('held'), at('released')];
        const bar = ' '.repeat(enqueued) + '·'.repeat(held - enqueued) + '█'.repeat(released - held);
        console.log(`${who.padEnd(12)} |${bar.padEnd(WIDTH)}|`);
      }
      console.log(`${''.padEnd(12)}  · waits, █ holds; ${end.toFixed(1)} s in all`);
    },
    neverTwoAtOnce() {
      let holder;
      for (const { who, what } of events) {
        if (what === 'held' && holder !== undefined) return false;
        if (what === 'held') holder = who;
        if (what === 'released') holder = undefined;
      }
      return true;
    },
  };
}
