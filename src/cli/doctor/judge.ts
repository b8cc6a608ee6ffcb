import { basisOf } from './basis.ts';
import type { Facts, Finding } from './facts.ts';
import { judgeCluster } from './findings/cluster.ts';
import { isUsable, judgeEndpoint } from './findings/endpoint.ts';
import { judgeStores } from './findings/stores.ts';
import { judgeUpgrade } from './findings/upgrade.ts';

/** Returns the findings for all measurements: first per endpoint, then for the cluster. */
export function judge(facts: Facts): Finding[] {
  const basis = basisOf(facts);
  const { api = 'v2', endpoints } = facts;
  const context = { facts, api, basis, anyUsable: endpoints.some((member) => isUsable(member, api)) };
  return [
    ...endpoints.flatMap((member) => judgeEndpoint(member, context)),
    ...judgeCluster(facts, basis),
    ...judgeStores(facts),
    ...judgeUpgrade(facts),
  ];
}

/** Whether no finding is a failure. */
export const hasNoFailure = (findings: readonly Finding[]): boolean => findings.every(({ level }) => level !== 'fail');
