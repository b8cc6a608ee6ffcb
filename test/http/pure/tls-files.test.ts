import { expect, test, vi } from 'vitest';
import { TlsFiles } from '../../../src/http/tls/files.ts';
import { makeAuthority } from '../../support/certificates.ts';
import { useStillClock } from '../../support/still-clock.ts';

test('TLS files are read no more often if somebody listens anew while they are being read', async () => {
  const { ca } = makeAuthority();
  let calls = 0;
  let onCall = (): void => {};
  const files = new TlsFiles({
    ca: () => {
      calls += 1;
      onCall();
      return ca;
    },
  });
  useStillClock();
  /** How often the function is called in five seconds. */
  const callsInAWhile = async (): Promise<number> => {
    const before = calls;
    await vi.advanceTimersByTimeAsync(5000);
    return calls - before;
  };
  let end = files.onChange(() => {});
  await vi.advanceTimersByTimeAsync(1000);
  const usual = await callsInAWhile();
  expect(usual).toBeGreaterThan(0);
  onCall = () => {
    onCall = () => {};
    end();
    end = files.onChange(() => {});
  };
  await vi.advanceTimersByTimeAsync(1000);
  expect(await callsInAWhile()).toBe(usual);
  end();
  expect(await callsInAWhile()).toBe(0);
});
