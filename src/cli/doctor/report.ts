import { type Line, styled } from '../streams.ts';
import type { Finding } from './facts.ts';
import { isWell } from './judge.ts';

const STYLES = { ok: 'green', warn: 'yellow', fail: 'red' } as const;

/** What was found in plain sentences: by endpoint, of the cluster, and the verdict. */
export function report(findings: readonly Finding[]): Line[] {
  const groups = new Map<string, Finding[]>();
  for (const finding of findings) {
    const heading = finding.endpoint ?? 'all of them';
    groups.set(heading, [...(groups.get(heading) ?? []), finding]);
  }
  const lines = [...groups].flatMap(([heading, found]) => [[styled('bold', heading)], ...found.flatMap(linesOf), '']);
  return [...lines, verdict(findings)];
}

function linesOf({ level, text, advice }: Finding): Line[] {
  const line = ['  ', styled(STYLES[level], level.padEnd(4)), `  ${text}`];
  return advice === undefined ? [line] : [line, `        -> ${advice}`];
}

function verdict(findings: readonly Finding[]): Line {
  const count = (wanted: Finding['level']) => findings.filter(({ level }) => level === wanted).length;
  const warnings = count('warn');
  const also = warnings === 0 ? '' : `; ${things(warnings)} to look at`;
  if (!isWell(findings))
    return [styled('red', `Locks are unsafe or impossible: ${things(count('fail'))} to mend${also}.`)];
  return [styled(warnings === 0 ? 'green' : 'yellow', `Locks can be relied upon${also}.`)];
}

const things = (count: number): string => (count === 1 ? 'one thing' : `${count} things`);
