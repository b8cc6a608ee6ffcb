/** A simulated process of this package. Bundled, with `client/transport.ts` in the place of the real transport. */
export type { ProgramOptions } from './program.ts';
export { runProgram } from './session.ts';
export { useNetwork } from './transport.ts';
