/** What a job is told that its keeper is told. */
export const RELAYED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;

export type Relayed = (typeof RELAYED)[number];
