import { onPath } from '../find.mjs';

const NEEDS = [
  { program: 'go', from: 'Go 1.26 or later, from https://go.dev/dl/' },
  { program: 'mvn', from: 'Maven and a JDK 17 or later, with apt-get install maven default-jdk-headless' },
  { program: 'pip', from: 'pip and venv, with apt-get install python3-pip python3-venv' },
];

/** @throws {Error} that says what to install, if a program that builds the peers is missing */
export function ensureBuilders() {
  const missing = NEEDS.filter(({ program }) => onPath(program).length === 0);
  if (missing.length === 0) return;
  throw new Error(missing.map(({ program, from }) => `${program} not found: install ${from}`).join('\n'));
}
