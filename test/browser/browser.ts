import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, expect, onTestFinished } from 'vitest';
import { onPath } from '../../scripts/find.mjs';

/** Starts the Chromium of the PATH, without a sandbox: root cannot have one. */
const [executablePath = 'chromium'] = onPath('chromium');
const browser: Browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
afterAll(() => browser.close());

export interface Look {
  readonly width?: number;
  readonly height?: number;
  readonly scheme?: 'light' | 'dark';
}

/**
 * Opens a page until the end of the test, which fails if the page logs anything, has an error, or asks another host.
 * @param expected what the page may log
 */
export async function openPage(
  url: string,
  { width = 1280, height = 800, scheme = 'light' }: Look = {},
  expected = /^$/,
): Promise<Page> {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: scheme });
  const problems: string[] = [];
  page.on('console', (message) => {
    if (!expected.test(message.text())) problems.push(message.text());
  });
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('request', (request) => {
    if (new URL(request.url()).host !== new URL(page.url()).host && !request.isNavigationRequest())
      problems.push(`request for ${request.url()}`);
  });
  onTestFinished(async () => {
    await page.close();
    expect(problems).toEqual([]);
  });
  await page.goto(url);
  return page;
}
