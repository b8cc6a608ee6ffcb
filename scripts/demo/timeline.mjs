/** Returns a timeline that prints and records events. */
export function openTimeline() {
  const start = performance.now();
  const events = [];
  return {
    add(who, what, more = '') {
      events.push({ who, what });
      const at = ((performance.now() - start) / 1000).toFixed(2).padStart(6);
      console.log(`${at} s  ${who.padEnd(12)} ${what.padEnd(9)}${more && ` ${more}`}`);
    },
    /** Returns the contenders with this event, in its order. */
    order: (what) => events.filter((event) => event.what === what).map(({ who }) => who),
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
