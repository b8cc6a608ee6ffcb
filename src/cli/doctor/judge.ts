import { basisOf } from './basis.ts';
import type { Facts, Finding } from './facts.ts';
import { judgeCluster } from './judge-cluster.ts';
import { isUsable, judgeEndpoint } from './judge-endpoint.ts';

/** Returns the findings for all measurements: first per endpoint, then for the cluster. */
export function judge(facts: Facts): Finding[] {
  const basis = basisOf(facts);
  const context = { facts, basis, anyUsable: facts.endpoints.some(isUsable) };
  return [...facts.endpoints.flatMap((member) => judgeEndpoint(member, context)), ...judgeCluster(facts, basis)];
}

/** Whether locks are possible and safe. */
export const hasNoFailure = (findings: readonly Finding[]): boolean => findings.every(({ level }) => level !== 'fail');
