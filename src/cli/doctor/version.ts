import { decodeVersion, type Version } from '../../v2/wire.ts';
import type { TimedAnswer } from './member.ts';

/** Reads the answer to `GET /version`, which all versions of etcd have, whatever their APIs. */
export function versionOf(answer: TimedAnswer): Version | undefined {
  try {
    return decodeVersion(answer);
  } catch {
    return undefined;
  }
}

/** Returns major, minor and patch number; 0 for what is not known. */
export function numbersOf(version: Version | undefined): readonly [major: number, minor: number, patch: number] {
  const [major = 0, minor = 0, patch = 0] = (version?.server ?? '').split('.').map((part) => Number.parseInt(part, 10));
  return [major || 0, minor || 0, patch || 0];
}

/** Whether a server of this version panics at requests of etcd v2 to other members: it reads them in the log of the cluster. */
export function refusesV2(version: Version | undefined): boolean {
  const [major, minor] = numbersOf(version);
  return major > 3 || (major === 3 && minor >= 6);
}
