/** The views that examine the cluster when somebody asks for it. */
import { type Signal, signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import type { ShownChecks, ShownClients, ShownFinding, ShownMove } from '../src/cli/ui/shapes.ts';
import { Foreign, LockName } from './parts.tsx';
import { timeText } from './words.ts';

interface State<T> {
  readonly isLoading: boolean;
  readonly report: T | undefined;
  /** Why there is no newer report. */
  readonly problem: string | undefined;
}

/** A report of the server, which makes one at most once per minute. */
class Report<T extends Pick<ShownMove, 'madeAt' | 'took'>> {
  readonly state: Signal<State<T>> = signal({ isLoading: false, report: undefined, problem: undefined });
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async load(): Promise<void> {
    if (this.state.value.isLoading) return;
    const before = this.state.value.report;
    this.state.value = { isLoading: true, report: before, problem: undefined };
    try {
      const answer = await fetch(this.#path);
      const next = answer.ok
        ? { report: (await answer.json()) as T }
        : { report: before, problem: await answer.text() };
      this.state.value = { problem: undefined, ...next, isLoading: false };
    } catch {
      this.state.value = { isLoading: false, report: before, problem: 'The server of this page has not answered.' };
    }
  }
}

const checks = new Report<ShownChecks>('api/checks');
const move = new Report<ShownMove>('api/move');

export const loadChecks = (): void => void checks.load();
export const loadMove = (): void => void move.load();

const countText = (findings: readonly ShownFinding[]): string => {
  const count = (wanted: ShownFinding['level']): number => findings.filter(({ level }) => level === wanted).length;
  const [failures, warnings] = [count('fail'), count('warn')];
  const counted = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? '' : 's'}`;
  return `${failures === 0 ? 'no failure found' : counted(failures, 'failure')}, ${counted(warnings, 'warning')}`;
};

const Findings = ({ findings }: { readonly findings: readonly ShownFinding[] }) => (
  <ul class="findings">
    {findings.map(({ level, text, advice }) => (
      <li key={text} class={`finding finding-${level}`}>
        <span class="level">{level}</span>
        <span>
          <Foreign text={text} />
          {advice !== null && (
            <span class="detail">
              <Foreign text={advice} />
            </span>
          )}
        </span>
      </li>
    ))}
  </ul>
);

function Examined<T extends Pick<ShownMove, 'madeAt' | 'took'>>({
  of,
  title,
  about,
  waiting,
  children,
}: {
  readonly of: Report<T>;
  readonly title: string;
  readonly about: string;
  readonly waiting: string;
  readonly children: (report: T) => ComponentChildren;
}) {
  const { isLoading, report, problem } = of.state.value;
  return (
    <main>
      <h1 tabIndex={-1}>{title}</h1>
      <p>{about}</p>
      <p role="status">
        {isLoading && waiting}
        {problem !== undefined && <Foreign text={problem.trimEnd()} />}
        {!isLoading && report && `Checked at ${timeText(report.madeAt)}, in ${report.took.toFixed(1)} s`}
      </p>
      <button type="button" class="small" aria-disabled={isLoading} onClick={() => void of.load()}>
        Check again
      </button>
      {report && children(report)}
    </main>
  );
}

/** The findings of `doctor`. */
export const Checks = () => (
  <Examined
    of={checks}
    title="Checks of the cluster"
    about={
      'These are the checks of "etcd-v2-lock doctor", except that no test key is created: on etcd v2, the order of key names is not checked, ' +
      'and clocks are compared to the second only.'
    }
    waiting="checking each member"
  >
    {({ stores }) =>
      stores.map(({ api, findings }) => (
        <section key={api} aria-label={`etcd ${api}`}>
          <h2>
            etcd {api}: {countText(findings)}
          </h2>
          {[...new Set(findings.map(({ endpoint }) => endpoint))].map((endpoint) => (
            <section key={endpoint} aria-label={endpoint ?? 'cluster'}>
              <h3>
                <Foreign text={endpoint ?? 'cluster'} />
              </h3>
              <Findings findings={findings.filter((finding) => finding.endpoint === endpoint)} />
            </section>
          ))}
        </section>
      ))
    }
  </Examined>
);

const KINDS = [
  ['v2', 'v2: holds on v2 alone'],
  ['either', 'v2 or both: entry on v2'],
  ['both', 'both: entry in both stores, or a bridge to both'],
  ['v3', 'v3: entry on v3 alone'],
] as const;

const Clients = ({ clients }: { readonly clients: ShownClients }) =>
  KINDS.map(([kind, title]) => {
    const { count, uses } = clients[kind];
    return (
      <section key={kind} aria-label={title}>
        <h2>
          {title} ({count} {count === 1 ? 'client' : 'clients'})
        </h2>
        <ul>
          {uses.map(({ lock, client }) => (
            <li key={`${lock} ${client}`}>
              <Foreign text={client} />, for <LockName name={lock} />
            </li>
          ))}
        </ul>
      </section>
    );
  });

/** The findings of `doctor --moving`. */
export const Move = () => (
  <Examined
    of={move}
    title="Move from v2 to v3"
    about={
      'This is what "etcd-v2-lock doctor --moving" reports. It counts the clients that had an entry while it watched both stores. An idle client ' +
      'has no entry, and is not seen.'
    }
    waiting="watching both stores, for 5 to 25 seconds"
  >
    {({ clients, findings }) => (
      <>
        <Findings findings={findings} />
        {clients && <Clients clients={clients} />}
      </>
    )}
  </Examined>
);
