import { render } from 'preact';
import { printable } from '../src/base/printable.ts';
import { connect, followVisibility } from './connection.ts';
import { List } from './list.tsx';
import { Outages } from './parts.tsx';
import { OpenLock } from './queue.tsx';
import { open, openName, ROWS, rows, tick } from './state.ts';

const LOCK = '#/lock/';

const Page = () => (
  <>
    <Outages />
    {openName.value === undefined ? <List /> : <OpenLock />}
  </>
);

function nameInAddress(): string | undefined {
  const { hash } = window.location;
  try {
    return hash.startsWith(LOCK) ? decodeURIComponent(hash.slice(LOCK.length)) : undefined;
  } catch {
    return undefined;
  }
}

function follow(): void {
  open(nameInAddress());
  rows.value = ROWS;
  document.title = openName.value === undefined ? 'Locks' : `${printable(openName.value)} – Locks`;
  connect();
}

window.addEventListener('hashchange', () => {
  follow();
  // For keyboards and screen readers: they continue at the new content.
  requestAnimationFrame(() => document.querySelector('h1')?.focus());
});
window.addEventListener('keydown', ({ key }) => {
  if (key === 'Escape' && openName.value !== undefined) window.location.hash = '#/';
});
followVisibility();
follow();
setInterval(tick, 1000);
const root = document.getElementById('page');
if (root) render(<Page />, root);
