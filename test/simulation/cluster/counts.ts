/** How often the members did what is rare, or wrong. */
export const newCounts = () => ({
  /** Answered with a TTL by a leader that was replaced and does not know it. */
  staleKeepAlives: 0,
  staleKeepAlivesOfDeadLeases: 0,
  keepAlivesWithoutQuorum: 0,
  /** Without an answer for 7 s. */
  hungKeepAlives: 0,
  /** Streams that a member has ended because it knew no leader. */
  endedWatches: 0,
  /** Writes that were carried out when their client had hung up. */
  writesAfterHangUp: 0,
  /** Those of them that waited in a stopped member. */
  writesAfterStop: 0,
  /** Plain reads of v2 at a member that lagged behind. */
  staleReads: 0,
  /** Watches of v2 that began too far in the past. */
  clearedWatches: 0,
  /** Other clusters in the place of the one before. */
  replacements: 0,
  compactions: 0,
  /** Watches that were refused, or ended, because their events were compacted. */
  compactedWatches: 0,
  /** Tokens of users that one member does not know any more. */
  forgottenTokens: 0,
  /** Leases that a leader has revoked although they were kept alive. */
  wrongRevocations: 0,
});

export type Counts = ReturnType<typeof newCounts>;
