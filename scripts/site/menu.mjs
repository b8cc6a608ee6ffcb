// The menu of the site: the pages to which the README leads, in its order, each with those below it.
import { fileOf, pages, pathOf, read } from './pages.mjs';

const README = read('README.md');

/** Returns the groups of VitePress' sidebar. @throws {Error} if a page is in none of them */
export function menu() {
  const topics = section('Documentation').matchAll(/^- ([^:]+): (.*)$/gm);
  const groups = [
    { text: 'Start', items: itemsIn(section('Which of these are you?')) },
    ...[...topics].map(([, text, links]) => ({ text, items: itemsIn(links) })),
    { text: 'Examples', collapsed: true, items: itemsBelow('examples/') },
  ];
  const items = groups.flatMap((group) => group.items).flatMap((item) => [item, ...(item.items ?? [])]);
  const links = ['/index.md', ...items.map(({ link }) => link)];
  const missing = [...pages.keys()].filter((path) => !links.includes(`/${path}`));
  if (missing.length > 0) throw new Error(`README.md leads to no page of these: ${missing.join(', ')}`);
  return groups;
}

function itemsIn(text) {
  const targets = [...text.matchAll(/\]\(([^)]*)\)/g)].map(([, target]) => target);
  return targets.map((target) => {
    const path = pathOf(fileOf(target, 'README.md'));
    const items = itemsBelow(path.replace(/(?:\/README)?\.md$/, '/'));
    return { ...itemOf(path), ...(items.length === 0 ? {} : { collapsed: true, items }) };
  });
}

function itemsBelow(folder) {
  return [...pages.keys()].filter((path) => path.startsWith(folder) && !path.endsWith('/README.md')).map(itemOf);
}

function itemOf(path) {
  const [, title] = /^# (.*)$/m.exec(pages.get(path) ?? '') ?? [];
  if (title === undefined) throw new Error(`${path}, to which README.md leads, does not exist or has no title`);
  const text = title.replace(/^Start: (.)/, (_, first) => first.toUpperCase());
  return { text, link: `/${path}` };
}

function section(title) {
  const [, text] = README.split(`\n## ${title}\n`);
  if (text === undefined) throw new Error(`README.md has no section "${title}"`);
  return text.split('\n## ')[0];
}
