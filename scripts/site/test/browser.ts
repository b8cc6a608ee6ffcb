import { type Browser, chromium } from 'playwright-core';
import { onPath } from '../../find.mjs';

/** Starts the Chromium of the PATH, without a sandbox: root cannot have one. */
export const startBrowser = (): Promise<Browser> => {
  const [executablePath = 'chromium'] = onPath('chromium');
  return chromium.launch({ executablePath, args: ['--no-sandbox'] });
};
