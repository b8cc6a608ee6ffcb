import { render } from 'preact';
import { printable } from '../src/base/printable.ts';
import { connect, followVisibility } from './connection.ts';
import { followJobs, JobList } from './jobs.tsx';
import { List } from './list.tsx';
import { Outages } from './parts.tsx';
import { OpenLock } from './queue.tsx';
import { forgetRelease, isAsking } from './release.tsx';
import { open, openName, ROWS, rows, tick, view } from './state.ts';

const LOCK = '#/lock/';
const JOBS = '#/jobs';

const VIEWS = [
  ['locks', '#/', 'All locks'],
  ['jobs', JOBS, 'Jobs'],
] as const;

const Views = () => (
  <nav aria-label="views">
    {VIEWS.map(([name, address, title]) => (
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

const Page = () => (
  <>
    <Outages />
    <Views />
    {openName.value !== undefined ? <OpenLock /> : view.value === 'jobs' ? <JobList /> : <List />}
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
  open(nameInAddress(), window.location.hash === JOBS ? 'jobs' : 'locks');
  forgetRelease();
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
  if (key === 'Escape' && openName.value !== undefined && !isAsking()) window.location.hash = '#/';
});
followVisibility();
follow();
setInterval(tick, 1000);
void followJobs();
const root = document.getElementById('page');
if (root) render(<Page />, root);
