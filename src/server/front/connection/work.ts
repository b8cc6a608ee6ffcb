import type { KeysRequest } from '../../../v2/wire.ts';
import type { Pipeline, Received } from './pipeline.ts';

/** A request that is being served. */
export interface Work extends Received {
  readonly form: Promise<string>;
  readonly pipeline: Pipeline;
  /** Aborts when the client hangs up. For a request with `wait=true`, also when the server ends it. */
  readonly hangUp: AbortController;
  /** The operation on keys; undefined before it is decoded. */
  call: KeysRequest['call'] | undefined;
}
