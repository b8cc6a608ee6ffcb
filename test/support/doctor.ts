import type { EndpointFacts, Finding } from '../../src/cli/doctor/facts.ts';
import { runCli } from './cli.ts';

export interface Diagnosis {
  readonly code: number | null;
  readonly stderr: string;
  readonly ok: boolean;
  readonly api: string;
  readonly basis: { readonly ttl: number; readonly margin: number };
  /** Names of the locks in each store. */
  readonly stores: Readonly<Record<string, readonly string[]>>;
  readonly endpoints: readonly EndpointFacts[];
  readonly findings: readonly Finding[];
}

/** Runs `doctor --json` on these endpoints. */
export async function diagnose(
  endpoints: string | readonly string[],
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<Diagnosis> {
  const urls = [endpoints].flat().join(',');
  const { code, stdout, stderr } = await runCli(['doctor', '--json', '--endpoints', urls, ...args], env);
  return { code, stderr, ...JSON.parse(stdout) };
}

/** The findings whose level is not `ok`. */
export const troubles = ({ findings }: Pick<Diagnosis, 'findings'>): Finding[] =>
  findings.filter(({ level }) => level !== 'ok');

/** The problems other than the one that many versions have with leases. */
export const ownTroubles = (diagnosis: Pick<Diagnosis, 'findings'>): Finding[] =>
  troubles(diagnosis).filter(({ about }) => about !== 'version');
