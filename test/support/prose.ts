// What a reader of a page reads: its sentences, without code, tables' rules and addresses of links.
import type { Page } from './readme.ts';

/** The paragraphs, list items, headings and table cells of a page, each on one line. Quoted code is one word. */
export function passagesOf({ text }: Page): string[] {
  const passages: string[] = [];
  let isOpen = false;
  for (const line of text.replaceAll(/^```[\s\S]*?^```$/gm, '').split('\n')) {
    const content = line.trim();
    const begins = /^(?:#+|[-*]|\d+\.) /.exec(content)?.[0];
    if (content.startsWith('|')) passages.push(...content.split('|').map((cell) => cell.trim()));
    else if (begins !== undefined) passages.push(content.slice(begins.length));
    else if (isOpen && content !== '') passages.push(`${passages.pop()} ${content}`);
    else if (!content.startsWith('[//]:')) passages.push(content);
    isOpen = content !== '' && !/^[|#]/.test(content);
  }
  return passages
    .map((passage) => passage.replaceAll(/\]\([^)]*\)/g, ']').replaceAll(/`[^`]*`/g, 'CODE'))
    .filter((passage) => /\p{L}/u.test(passage));
}

export const sentencesOf = (page: Page): string[] =>
  passagesOf(page).flatMap((passage) => passage.split(/(?<=[.!?]['")*”]*)\s+/u));

export const wordsIn = (sentence: string): number =>
  sentence.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
