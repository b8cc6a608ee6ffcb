import type { KeysRequest } from '../../../v2/wire.ts';
import type { Target } from '../target.ts';
import type { Pipeline, Received } from './pipeline.ts';

/** A request that is being served. */
export interface Work extends Received {
  /** undefined: it is not a valid URL. */
  readonly target: Target | undefined;
  /** One byte in each code unit. '' for a body that is not read. */
  readonly body: Promise<string>;
  readonly pipeline: Pipeline;
  /** Aborts when the client hangs up. For a request with `wait=true`, also when the server ends it. */
  readonly hangUp: AbortController;
  /** The operation on keys; undefined before it is decoded. */
  call: KeysRequest['call'] | undefined;
}
