import { basisOf } from './basis.ts';
import type { Facts, Finding } from './facts.ts';
import { judgeCluster } from './judge-cluster.ts';
import { isUsable, judgeEndpoint } from './judge-endpoint.ts';

/** What is to be said of all that was measured: each endpoint in turn, then the cluster. */
export function judge(facts: Facts): Finding[] {
  const basis = basisOf(facts);
  const around = { facts, basis, works: facts.endpoints.some(isUsable) };
  return [...facts.endpoints.flatMap((member) => judgeEndpoint(member, around)), ...judgeCluster(facts, basis)];
}

/** Whether locks can be had, and can be relied upon. */
export const isWell = (findings: readonly Finding[]): boolean => findings.every(({ level }) => level !== 'fail');
