import { expect, test } from 'vitest';
import { EtcdCompareFailed, EtcdInsufficientPermissions } from '../../../src/errors.ts';
import { markUnclear, noAnswer } from '../../../src/http/failover/failures.ts';

const silent = { endpoint: 'http://a:2379', error: noAnswer(1) };

test.each([EtcdCompareFailed, EtcdInsufficientPermissions])(
  'a call that ends with an %o has an unknown outcome if another member may have carried it out',
  (ErrorClass) => {
    const cause = new Error('sealed');
    const refusal = new ErrorClass('refused', { errorCode: 7, cause });
    for (const [failures, underWay] of [
      [[silent], false],
      [[], true],
    ] as const) {
      const error = markUnclear(refusal, failures, underWay);
      expect(error).toBeInstanceOf(ErrorClass);
      expect(error).toMatchObject({ message: 'refused', errorCode: 7, outcomeUnknown: true, failures, cause });
    }
    const refused = { endpoint: 'http://a:2379', error: refusal };
    expect(markUnclear(refusal, [refused], false)).toBe(refusal);
  },
);
