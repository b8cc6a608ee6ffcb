import type { FencingTokens } from '../../src/index.ts';

/** Fencing tokens: those of one kind grow. A client of a bridge to etcd v3 has create revisions, which are below Go's tokens. */
export interface Tokens extends FencingTokens {
  readonly bridge?: bigint;
}

export const KINDS = ['v2', 'v3', 'bridge'] as const satisfies readonly (keyof Tokens)[];

/** How a lock is held. */
export interface Claim {
  readonly lock: string;
  readonly mode: 'exclusive' | 'shared';
  readonly limit?: number | undefined;
  readonly tokens: Tokens;
  /** Its key in the queue; undefined for clients of others, and where a bridge has another name for it. */
  readonly key?: string | undefined;
  /** Name of the cluster of its entry, where there are several. */
  readonly in?: string;
  /** Whether it is lost together with other locks of its call. */
  readonly isOneOfSeveral?: boolean;
  /** Whether the entry may be that of a killed process, which has perhaps held the lock with it: on v2, the token is the same then. */
  readonly isTakenOver?: boolean;
  /** When its call began, in milliseconds of the world, if that waits for this lock only. */
  readonly since?: number | undefined;
  /** Seconds of its TTL, if that stays. */
  readonly ttl?: number | undefined;
  /** Seconds for which the hold may last at most. */
  readonly maxHold?: number | undefined;
  /** Seconds for which the hold keeps others out at least. */
  readonly holdAtLeast?: number | undefined;
  /**
   * For clients of others, which do not notice in time that their entry has gone. Whether it may have gone by now: its TTL has passed since
   * the last append, renewal or keep-alive that a member answered was sent. From then on, etcd may give the lock to the next one, and a late
   * renewal or a late look may give it to this client although another holds it. So an overdue claim proves nothing, and a claim beside an
   * overdue hold is right. That is rare: these clients hold for much less than the TTL after a sign of life, so it takes a process that was
   * stopped, or cut off from its member, for about that long.
   */
  readonly isOverdue?: () => boolean;
}

/** Returns by how much the tokens of one claim are higher than those of another, for each kind that both have. */
export const differencesOf = (one: Tokens, other: Tokens): readonly bigint[] =>
  KINDS.flatMap((kind) => {
    const [here, there] = [one[kind], other[kind]];
    return here === undefined || there === undefined ? [] : [here - there];
  });

/** Returns the claims that may be the earlier one: that with the lower tokens, or both if they have no kind of tokens in common. */
export function earlierOf<C extends Claim>(one: C, other: C): readonly C[] {
  const differences = differencesOf(one.tokens, other.tokens);
  return [
    ...(differences.every((difference) => difference < 0n) ? [one] : []),
    ...(differences.every((difference) => difference > 0n) ? [other] : []),
  ];
}

export function mayHoldTogether(one: Claim, other: Claim, others: readonly Claim[]): boolean {
  if (one.mode === 'shared' && other.mode === 'shared') return true;
  if (one.limit === undefined || one.limit !== other.limit) return false;
  return others.filter(({ limit }) => limit === one.limit).length < one.limit;
}

export function describe({ lock, mode, limit, tokens }: Claim): string {
  const shown = KINDS.filter((kind) => tokens[kind] !== undefined).map((kind) => `${tokens[kind]} of ${kind}`);
  return `${lock} ${mode}${limit === undefined ? '' : ` of ${limit}`} by token ${shown.join(', ')}`;
}
