import { type OutputLine, styled } from '../streams.ts';
import type { Finding } from './facts.ts';
import { hasNoFailure } from './judge.ts';

const STYLES = { ok: 'green', warn: 'yellow', fail: 'red' } as const;

/** Returns the findings as lines of text: per endpoint, for the cluster, and a summary. */
export function report(findings: readonly Finding[]): OutputLine[] {
  const groups = new Map<string, Finding[]>();
  for (const finding of findings) {
    const heading = finding.endpoint ?? 'cluster';
    const group = groups.get(heading);
    if (group) group.push(finding);
    else groups.set(heading, [finding]);
  }
  const lines = [...groups].flatMap(([heading, found]) => [[styled('bold', heading)], ...found.flatMap(linesOf), '']);
  return [...lines, summary(findings)];
}

/** Returns a finding as lines of text. */
export function linesOf({ level, text, advice }: Finding): OutputLine[] {
  const line = ['  ', styled(STYLES[level], level.padEnd(4)), `  ${text}`];
  return advice === undefined ? [line] : [line, `        -> ${advice}`];
}

function summary(findings: readonly Finding[]): OutputLine {
  const count = (wanted: Finding['level']) => findings.filter(({ level }) => level === wanted).length;
  const warnings = count('warn');
  const suffix = warnings === 0 ? '' : `, ${counted(warnings, 'warning')}`;
  if (!hasNoFailure(findings))
    return [styled('red', `Locks are unsafe or impossible: ${counted(count('fail'), 'failure')}${suffix}.`)];
  return warnings === 0
    ? [styled('green', 'Locks are safe to use.')]
    : [styled('yellow', `No failure found${suffix}.`)];
}

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;
