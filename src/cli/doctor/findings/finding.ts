import type { About, Finding } from '../facts.ts';

export type MakeFinding = (level: Finding['level'], about: About, text: string, advice?: string) => Finding;

/** Returns a function that makes findings for one member, or for the whole cluster. */
export const findingFor =
  (endpoint?: string): MakeFinding =>
  (level, about, text, advice) => ({
    level,
    about,
    ...(endpoint === undefined ? {} : { endpoint }),
    text,
    ...(advice === undefined ? {} : { advice }),
  });

/** Advice for a member that is slow or fails. */
export const CHECK_HEALTH = 'check the log and the disk of the member, and its connection to the other members';

/** Number of names that a text shows. */
const SHOWN = 5;

/** Returns the first of these texts, and the number of the others. */
export function firstOf(texts: readonly string[]): string {
  const more = texts.length - SHOWN;
  return `${texts.slice(0, SHOWN).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
