import { signal } from '@preact/signals';
import type { ShownJob, ShownJobs } from '../src/cli/ui/shapes.ts';
import { Foreign, LockName } from './parts.tsx';
import { view } from './state.ts';

const jobs = signal<ShownJobs | undefined>(undefined);
/** Milliseconds between two reads of the jobs. */
const EVERY = 1000;

/** Reads the jobs while they are shown. */
export async function followJobs(): Promise<void> {
  for (;;) {
    if (view.value === 'jobs' && !document.hidden) {
      const answer = await fetch('api/jobs').catch(() => undefined);
      if (answer?.ok) jobs.value = (await answer.json()) as ShownJobs;
    }
    await new Promise((resolve) => setTimeout(resolve, EVERY));
  }
}

const timeOf = (at: number): string => new Date(at).toISOString().replace('T', ' ').replace(/\.\d+/, '');

const Row = ({ job: { name, lastTick, state, host, missed } }: { readonly job: ShownJob }) => (
  <tr class={`job-${state.replace(' ', '-')}`}>
    <th scope="row">
      <LockName name={name} />
    </th>
    <td data-label="State">{state}</td>
    <td data-label="Last tick">{lastTick === null ? '–' : timeOf(lastTick)}</td>
    <td data-label="Host">{host === null ? '–' : <Foreign text={host} />}</td>
    <td data-label="Missed" class={missed ? 'missed' : ''}>
      {missed ?? 'unknown'}
    </td>
  </tr>
);

/** The jobs that run once per tick. */
export function JobList() {
  const shown = jobs.value;
  return (
    <main>
      <h1 tabIndex={-1}>Jobs once per tick</h1>
      {!shown && <p role="status">loading</p>}
      {shown?.unlisted.map((api) => (
        <p key={api}>
          etcd {api} does not list jobs. Of this store, only those with a schedule are shown: start <code>ui</code> with{' '}
          <code>--once NAME=SCHEDULE</code>.
        </p>
      ))}
      {shown && shown.jobs.length === 0 && <p class="empty">There is no record of a tick.</p>}
      {shown && shown.jobs.length > 0 && (
        <table class="jobs">
          <thead>
            <tr>
              <th scope="col">Job</th>
              <th scope="col">State</th>
              <th scope="col">Last tick</th>
              <th scope="col">Host</th>
              <th scope="col">Missed</th>
            </tr>
          </thead>
          <tbody>
            {shown.jobs.map((job) => (
              <Row key={`${job.api} ${job.name}`} job={job} />
            ))}
          </tbody>
        </table>
      )}
    </main>
  );
}
