import { hostname } from 'node:os';
import { checkName } from '../recipe/option-checks.ts';

/**
 * Maximum bytes of a label. On etcd v2, the request line of a removal contains the label, with up to five characters per byte, and
 * also the name and the identity; see `MAX_NAME_LENGTH` in v2/paths.ts.
 */
const LONGEST_LABEL = 100;
/** Enough for a colon and any process id. */
const ROOM_FOR_PID = 16;

/** Returns the label of a process: `host:pid`. A long host name is cut off, but not within a character. */
export function labelOf(host: string, pid: number): string {
  const start = Buffer.from(host).subarray(0, LONGEST_LABEL - ROOM_FOR_PID);
  return `${start.toString().replace(/\ufffd$/, '')}:${pid}`;
}

export const DEFAULT_LABEL = labelOf(hostname(), process.pid);

/**
 * Checks a label. Returns the label to write; undefined for `''`, which means none.
 * @throws {TypeError | RangeError} unless the label is a well-formed string of at most {@link LONGEST_LABEL} bytes
 */
export function checkLabel(label: unknown): string | undefined {
  if (label === '') return undefined;
  checkName('label', label, LONGEST_LABEL);
  return label;
}
