import { type Span, SpanStatusCode, trace } from '@opentelemetry/api';
import { errorText } from '../base/error-text.ts';
import { EtcdException } from '../errors.ts';
import type { RequestMessages } from '../manager/trace.ts';
import { FAILED } from './counts.ts';
import { observe } from './requests.ts';

/** The name of the meter and of the tracer. */
export const SCOPE = 'etcd-v2-lock';

/** Returns the attribute `error.type` of the semantic conventions: a code, or the class of an error without one. */
export const errorType = (error: unknown): string =>
  error instanceof EtcdException ? error.code : error instanceof Error ? error.name : '_OTHER';

/**
 * Makes a span for each request that begins from now on, from its start to its outcome. Its parent is the span that is active when
 * the request is made.
 * @returns a function that ends this, and the spans of requests that still wait or hold a lock
 */
export function traceRequests(): () => void {
  const tracer = trace.getTracer(SCOPE);
  return observe<Span>({
    begin: ({ name, mode }) =>
      tracer.startSpan('lock', { attributes: { 'etcd_lock.name': name, 'etcd_lock.mode': mode } }),
    on: {
      queued: ({ position }, span) =>
        span.addEvent('queued', position === undefined ? {} : { 'etcd_lock.position': position }),
      requeued: (_, span) => span.addEvent('requeued'),
      held: (_, span) => span.addEvent('held'),
      'renewal-failed': ({ renewal }, span) =>
        span.addEvent('renewal-failed', { 'error.type': errorType(renewal.error) }),
      outcome: finish,
    },
    abandon: (span) => span.end(),
  });
}

function finish({ outcome, lost, error = lost }: RequestMessages['outcome'], span: Span): void {
  span.setAttribute('etcd_lock.outcome', outcome);
  if (FAILED.includes(outcome)) {
    span.setAttribute('error.type', errorType(error));
    span.recordException(error instanceof Error ? error : errorText(error));
    span.setStatus({ code: SpanStatusCode.ERROR, message: errorText(error) });
  }
  span.end();
}
