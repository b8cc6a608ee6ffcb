// The pages are short, and written for a reader in a hurry: see "How to write" in CONTRIBUTING.md.
import { describe, expect, test } from 'vitest';
import { passagesOf, sentencesOf, wordsIn } from '../support/prose.ts';
import { pages } from '../support/readme.ts';

/** Words that are not the field's own, with what to write instead. */
const BANNED: readonly (readonly [word: RegExp, instead: string])[] = [
  [/\b(?:tells?|told|telling)\b/i, 'notify, report, show, distinguish'],
  [/\b(?:go|goes|going|went) on\b/i, 'continue'],
  [/\bmend(?:s|ed|ing)?\b/i, 'repair, fix'],
  [/\b(?:come|comes|came|coming) to\b/i, 'reach, get'],
  [/\bmeanwhile\b/i, 'in that time'],
  [/\bways? out\b/i, 'exit path'],
  [/\bwhole seconds until others\b/i, 'lease in seconds'],
  [/\bwhat cannot be used\b/i, 'invalid'],
  [/\bnot be used\b/i, 'invalid'],
  [/\bthrows? (?:it|them) out\b/i, 'evict'],
  [/\b(?:is|are) ours\b/i, "the command's"],
  [/\b(?:has|have) died silently\b/i, 'a dead connection'],
  [/\bwhat (?:became|becomes) of\b/i, 'the outcome of'],
  [/\b(?:a|the|one|another|each) look\b|\blooks? at the queue\b/i, 'read'],
  [/\bplaces? in (?:a|the|its) queue\b/i, 'entry, position'],
  [/\bfrom which on\b/i, 'above'],
  [/\bif these are\b/i, 'if they are'],
];

/** The pages in docs/design/ may be as long as an argument needs. */
const limited = pages.filter(({ file }) => !file.startsWith('docs/design/'));

test.each(limited)('$file has at most 200 lines, or 120 if it is the README', ({ file, text }) => {
  expect(text.trimEnd().split('\n').length).toBeLessThanOrEqual(file === 'README.md' ? 120 : 200);
});

describe.each(pages)('$file', (page) => {
  test('has no sentence above 30 words', () => {
    expect(sentencesOf(page).filter((sentence) => wordsIn(sentence) > 30)).toEqual([]);
  });

  test("uses the field's words", () => {
    const found = passagesOf(page).flatMap((passage) =>
      BANNED.filter(([word]) => word.test(passage)).map(([, instead]) => ({ passage, instead })),
    );
    expect(found).toEqual([]);
  });
});

test('a sentence ends at its full stop, whatever begins the next one, and quoted code is one word', () => {
  const page = {
    file: '',
    text: '# One\n\nTwo `a b c`\nmore. etcd is three.\n- four | five\n\n| six | seven. |\n',
    blocks: [],
    links: [],
    anchors: [],
  };
  expect(sentencesOf(page)).toEqual(['One', 'Two CODE more.', 'etcd is three.', 'four | five', 'six', 'seven.']);
  expect(sentencesOf(page).map(wordsIn)).toEqual([1, 3, 3, 2, 1, 1]);
});
