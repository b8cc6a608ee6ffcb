import { defineConfig } from 'vitepress';
import { menu } from '../menu.mjs';
import { read } from '../pages.mjs';

const { name, description } = JSON.parse(read('package.json'));

/** Returns the anchor of a section, as GitHub names it. */
const anchorOf = (title) =>
  title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-');

export default defineConfig({
  title: name,
  description,
  // There is no icon. Without this, browsers would ask for favicon.ico.
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  srcDir: 'dist/pages',
  outDir: 'dist/site',
  cacheDir: 'dist/cache',
  router: { prefetchLinks: false },
  themeConfig: {
    sidebar: menu(),
    outline: [2, 3],
    search: { provider: 'local' },
  },
  markdown: {
    // As on GitHub, where addresses such as http://a:2379 are no links.
    linkify: false,
    languageAlias: { crontab: 'sh' },
    anchor: { slugify: anchorOf },
    shikiSetup: (highlighter) => {
      const { codeToHtml } = highlighter;
      // Without a limit: on a busy machine, lines would lose their colors.
      highlighter.codeToHtml = (code, options) => codeToHtml(code, { ...options, tokenizeTimeLimit: 0 });
    },
    config: (md) => {
      const { fence } = md.renderer.rules;
      md.renderer.rules.fence = (tokens, i, ...rest) =>
        tokens[i].info === 'mermaid'
          ? `<Diagram text="${encodeURIComponent(tokens[i].content)}" />`
          : fence(tokens, i, ...rest);
    },
  },
  // Mermaid's parts, which only pages with a diagram load.
  vite: { build: { chunkSizeWarningLimit: 1000 } },
});
