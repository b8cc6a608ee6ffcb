/** Milliseconds between two looks of a holder at the time that it has left. */
const LOOK = 300;

/** Looks again and again during the work. */
export async function looking(look: () => void, work: () => Promise<void>): Promise<void> {
  look();
  const looks = setInterval(look, LOOK);
  await work().finally(() => clearInterval(looks));
}
