// Each page of the site, in a browser: on a phone and on a large screen, in light and dark.
import { once } from 'node:events';
import { createReadStream, existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, describe, expect, type TestContext, test } from 'vitest';
import { root } from '../../run.mjs';
import { pages } from '../pages.mjs';
import { startBrowser } from './browser.ts';

const SITE = join(root, 'scripts/site/dist/site');
/** For a busy machine. */
const PATIENT = { timeout: 30_000 };

const TYPES: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };

/** Returns the file of the site that a URL names. */
const fileOf = ({ pathname }: URL): string =>
  join(SITE, decodeURIComponent(pathname), pathname.endsWith('/') ? 'index.html' : '');

const server = createServer((request, response) => {
  const file = fileOf(new URL(request.url ?? '', 'http://site'));
  if (!existsSync(file)) return response.writeHead(404).end();
  response.setHeader('Cache-Control', 'max-age=3600');
  response.setHeader('Content-Type', TYPES[extname(file)] ?? 'application/octet-stream');
  return createReadStream(file).pipe(response);
});
await once(server.listen(0, '127.0.0.1'), 'listening');
const ORIGIN = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const browser = await startBrowser();
const screens = await Promise.all(
  [360, 1440].map(async (width) => ({
    width,
    context: await browser.newContext({ viewport: { width, height: 800 } }),
  })),
);
afterAll(async () => {
  await browser.close();
  server.close();
});

const urlOf = (path: string): string =>
  `${ORIGIN}/${path.replace(/(?:^|(?<=\/))index\.md$/, '').replace(/\.md$/, '.html')}`;

interface Opened {
  readonly page: Page;
  /** Failed requests, requests to other hosts, errors and warnings. */
  readonly problems: string[];
}

async function open(
  path: string,
  context: BrowserContext,
  { onTestFinished }: Pick<TestContext, 'onTestFinished'>,
): Promise<Opened> {
  const page = await context.newPage();
  onTestFinished(() => page.close());
  const problems: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) problems.push(`${message.text()} ${message.location().url}`);
  });
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== ORIGIN) problems.push(`request to ${request.url()}`);
  });
  page.on('requestfailed', (request) => problems.push(`${request.url()}: ${request.failure()?.errorText}`));
  await page.emulateMedia({ colorScheme: 'light' });
  await page.goto(urlOf(path), { waitUntil: 'networkidle' });
  return { page, problems };
}

/** The drawn diagrams. */
const drawings = (page: Page): Promise<string[]> =>
  page.locator('.diagram svg').evaluateAll((all) => all.map(({ outerHTML }) => outerHTML));

/** Whatever is wider than the window, unless it can be scrolled inside the page. */
const tooWide = (page: Page): Promise<string[]> =>
  page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    const scrolls = (element: Element): boolean =>
      ['auto', 'scroll'].includes(getComputedStyle(element).overflowX) ||
      (element.parentElement !== null && scrolls(element.parentElement));
    const wide = [...document.querySelectorAll('.vp-doc *')].filter(
      (element) => element.getBoundingClientRect().right > clientWidth + 1 && !scrolls(element),
    );
    return [
      ...(scrollWidth > clientWidth ? [`the page: ${scrollWidth} px`] : []),
      ...wide.map(({ tagName, textContent }) => `${tagName}: ${textContent}`),
    ];
  });

const brokenLinks = async (page: Page): Promise<string[]> => {
  const links = await page.locator('a[href]').evaluateAll((all) => all.map((link) => (link as HTMLAnchorElement).href));
  return links.filter((link) => {
    const url = new URL(link);
    if (url.origin !== ORIGIN) return url.protocol !== 'https:';
    const anchor = decodeURIComponent(url.hash.slice(1));
    return !existsSync(fileOf(url)) || (anchor !== '' && !anchorsIn(fileOf(url)).has(anchor));
  });
};

const known = new Map<string, Set<string>>();
function anchorsIn(file: string): Set<string> {
  const found =
    known.get(file) ?? new Set([...readFileSync(file, 'utf8').matchAll(/ id="([^"]*)"/g)].map(([, id = '']) => id));
  known.set(file, found);
  return found;
}

const brokenPictures = (page: Page): Promise<string[]> =>
  page.evaluate(() => [...document.images].filter(({ naturalWidth }) => naturalWidth === 0).map(({ src }) => src));

describe.each(screens)('at a width of $width px', { concurrent: true }, ({ context }) => {
  test.for([...pages])('%s opens, fits and leads somewhere', async ([path, text], { expect, onTestFinished }) => {
    const { page, problems } = await open(path, context, { onTestFinished });
    const diagrams = text.match(/^```mermaid$/gm)?.length ?? 0;
    await expect.poll(() => drawings(page), PATIENT).toHaveLength(diagrams);
    expect(await tooWide(page)).toEqual([]);
    const light = await drawings(page);
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.locator('html.dark').waitFor();
    for (const [i, drawing] of light.entries())
      await expect.poll(async () => (await drawings(page))[i], PATIENT).not.toBe(drawing);
    expect(await tooWide(page)).toEqual([]);
    expect(await brokenLinks(page)).toEqual([]);
    expect(await brokenPictures(page)).toEqual([]);
    expect(problems).toEqual([]);
  });
});

test.for(screens)(
  'the search finds a page by a word in its text, at a width of $width px',
  async ({ context }, test) => {
    const { page, problems } = await open('index.md', context, test);
    await page.keyboard.press('Control+k');
    await page.locator('#localsearch-input').fill('outcomeUnknown');
    await page.locator('.result', { hasText: 'Errors' }).first().click();
    await page.waitForURL(/\/docs\/errors\.html/);
    expect(problems).toEqual([]);
  },
);
