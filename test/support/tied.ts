import { onPath } from '../../scripts/find.mjs';

/** Returns a command line whose process the kernel kills when this process ends, even if it is killed and no exit hook runs. */
export function tied(command: readonly [string, ...string[]]): [string, ...string[]] {
  const [setpriv] = process.platform === 'linux' ? onPath('setpriv') : [];
  return setpriv === undefined ? [...command] : [setpriv, '--pdeathsig', 'KILL', ...command];
}
