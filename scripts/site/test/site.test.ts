// Each page of the site, in a browser: on a phone and on a large screen, in light and dark.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, describe, expect, onTestFinished, type TestContext, test } from 'vitest';
import { root } from '../../run.mjs';
import { pages } from '../pages.mjs';
import { startBrowser } from './browser.ts';

const SITE = join(root, 'scripts/site/dist/site');
/** Nothing listens there: the browser gets the files of the site without a server, and nothing else. */
const ORIGIN = 'http://site.test';
const PHONE = 360;
const LARGE = 1440;
/** For a busy machine. */
const PATIENT = { timeout: 30_000 };

const browser = await startBrowser();
afterAll(() => browser.close());

/** Returns the file of the site that a URL names. */
const fileOf = ({ pathname }: URL): string =>
  join(SITE, decodeURIComponent(pathname), pathname.endsWith('/') ? 'index.html' : '');

const urlOf = (path: string): string =>
  `${ORIGIN}/${path.replace(/(?:^|(?<=\/))index\.md$/, '').replace(/\.md$/, '.html')}`;

interface Opened {
  readonly page: Page;
  /** Failed requests, requests to other hosts, errors and warnings. */
  readonly problems: string[];
}

async function open(
  path: string,
  width: number,
  { onTestFinished }: Pick<TestContext, 'onTestFinished'>,
): Promise<Opened> {
  const context = await browser.newContext({ viewport: { width, height: 800 }, colorScheme: 'light' });
  onTestFinished(() => context.close());
  const problems: string[] = [];
  await answerFromSite(context, problems);
  const page = await context.newPage();
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) problems.push(message.text());
  });
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('requestfailed', (request) => problems.push(`${request.url()}: ${request.failure()?.errorText}`));
  await page.goto(urlOf(path), { waitUntil: 'networkidle' });
  return { page, problems };
}

const answerFromSite = (context: BrowserContext, problems: string[]): Promise<unknown> =>
  context.route('**/*', async (route) => {
    const url = new URL(route.request().url());
    const file = fileOf(url);
    if (url.origin === ORIGIN && existsSync(file)) return route.fulfill({ path: file });
    problems.push(`${url} is not on the site`);
    return route.abort();
  });

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

describe.each([PHONE, LARGE])('at a width of %i px', { concurrent: true }, (width) => {
  test.for([...pages])('%s opens, fits and leads somewhere', async ([path, text], { expect, onTestFinished }) => {
    const { page, problems } = await open(path, width, { onTestFinished });
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

test('the search finds a page by a word in its text', async () => {
  const { page, problems } = await open('index.md', LARGE, { onTestFinished });
  await page.locator('.VPNavBarSearchButton, .DocSearch-Button').first().click();
  await page.locator('#localsearch-input').fill('outcomeUnknown');
  await page.locator('.result', { hasText: 'Errors' }).first().click();
  await page.waitForURL(/\/docs\/errors\.html/);
  expect(problems).toEqual([]);
});
