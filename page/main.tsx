import { render } from 'preact';
import { printable } from '../src/base/printable.ts';
import { connect, followVisibility } from './connection.ts';
import { ElectionList } from './elections.tsx';
import { followJobs, JobList } from './jobs.tsx';
import { List } from './list.tsx';
import { Outages } from './parts.tsx';
import { OpenLock } from './queue.tsx';
import { forgetRelease, isAsking } from './release.tsx';
import { Checks, loadChecks, loadMove, Move } from './reports.tsx';
import { open, openName, ROWS, rows, stores, tick, view } from './state.ts';

const LOCK = '#/lock/';

const VIEWS = [
  { name: 'locks', address: '#/', title: 'All locks', Content: List },
  { name: 'elections', address: '#/elections', title: 'Elections', Content: ElectionList },
  { name: 'jobs', address: '#/jobs', title: 'Jobs', Content: JobList },
  { name: 'checks', address: '#/checks', title: 'Checks', Content: Checks },
  { name: 'move', address: '#/move', title: 'Move', Content: Move },
] as const;

const Views = () => (
  <nav aria-label="views">
    {VIEWS.filter(({ name }) => name !== 'move' || stores.value.length > 1).map(({ name, address, title }) => (
      <a
        key={name}
        href={address}
        aria-current={openName.value === undefined && view.value === name ? 'page' : undefined}
      >
        {title}
      </a>
    ))}
  </nav>
);

function Page() {
  const { Content } = VIEWS.find(({ name }) => name === view.value) ?? VIEWS[0];
  return (
    <>
      <Outages />
      <Views />
      {openName.value === undefined ? <Content /> : <OpenLock />}
    </>
  );
}

function nameInAddress(): string | undefined {
  const { hash } = window.location;
  try {
    return hash.startsWith(LOCK) ? decodeURIComponent(hash.slice(LOCK.length)) : undefined;
  } catch {
    return undefined;
  }
}

function follow(): void {
  const list = VIEWS.find(({ address }) => address === window.location.hash) ?? VIEWS[0];
  open(nameInAddress(), list.name);
  forgetRelease();
  rows.value = ROWS;
  const isFirst = openName.value === undefined && list === VIEWS[0];
  document.title = isFirst ? 'Locks' : `${printable(openName.value ?? list.title)} – Locks`;
  connect();
  if (view.value === 'checks') loadChecks();
  if (view.value === 'move') loadMove();
}

window.addEventListener('hashchange', () => {
  follow();
  // For keyboards and screen readers: they continue at the new content.
  requestAnimationFrame(() => document.querySelector('h1')?.focus());
});
window.addEventListener('keydown', ({ key }) => {
  if (key === 'Escape' && openName.value !== undefined && !isAsking()) window.location.hash = '#/';
});
followVisibility();
follow();
setInterval(tick, 1000);
void followJobs();
const root = document.getElementById('page');
if (root) render(<Page />, root);
