// Which lines of src the processes of the simulation have run.
import { readdirSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { root } from './run.mjs';

/** Rooms whose lines the worlds must reach. */
const ROOMS = ['recipe', 'manager', 'v2/locks', 'v3/locks', 'both', 'http/failover'];

/**
 * Returns a table of the share of lines that were reached, and the lines that were not.
 * @param reports directory of the reports that V8 has written
 * @param program file of the bundled program
 */
export function coverageOf(reports, program) {
  const code = readFileSync(program, 'utf8');
  const counts = readdirSync(reports)
    .map((name) =>
      JSON.parse(readFileSync(join(reports, name), 'utf8')).result.find(({ url }) => url.endsWith(program)),
    )
    .filter(Boolean)
    .map((script) => countsIn(script, code.length));
  const lines = reachedLines(code, program, counts);
  const rows = ROOMS.map((room) => {
    const files = [...lines].filter(([file]) => file.startsWith(`src/${room}/`));
    const all = files.flatMap(([, reached]) => [...reached.values()]);
    const missing = files.flatMap(([file, reached]) => {
      const missed = [...reached].filter(([, isReached]) => !isReached).map(([line]) => line);
      return missed.length === 0 ? [] : [`  ${file}: ${missed.sort((one, other) => one - other).join(', ')}`];
    });
    const share = (all.filter(Boolean).length / Math.max(all.length, 1)) * 100;
    return [`${room}: ${share.toFixed(1)} % of ${all.length} lines`, ...missing].join('\n');
  });
  return rows.join('\n');
}

/** Returns how often each character was run: inner ranges come after the outer ones. The program is wrapped in one more function. */
function countsIn({ functions }, length) {
  const shift = WRAPPER.length;
  const counts = new Uint32Array(length).fill(1);
  for (const { ranges } of functions)
    for (const { startOffset, endOffset, count } of ranges)
      counts.fill(count, Math.max(startOffset - shift, 0), Math.min(endOffset - shift, length));
  return counts;
}

/** See `Program` in test/simulation/virtual/program.ts. */
const WRAPPER = '(function (require, module, exports, globalThis) {';

/** Returns for each source file whether each of its lines was reached. */
function reachedLines(code, program, counts) {
  const [, encoded] = /sourceMappingURL=data:[^,]*,(\S+)/.exec(code);
  const map = new SourceMap(JSON.parse(Buffer.from(encoded, 'base64').toString()));
  const lines = new Map();
  let offset = 0;
  for (const [line, text] of code.split('\n').entries()) {
    for (let column = 0; column < text.length; column++) {
      const entry = map.findEntry(line, column);
      if (entry.generatedLine !== line || entry.generatedColumn !== column || !entry.originalSource) continue;
      const file = relative(root, resolve(dirname(program), entry.originalSource));
      const reached = lines.get(file) ?? new Map();
      lines.set(file, reached);
      const isReached = counts.some((each) => each[offset + column] > 0);
      const original = entry.originalLine + 1;
      reached.set(original, reached.get(original) || isReached);
    }
    offset += text.length + 1;
  }
  return lines;
}
