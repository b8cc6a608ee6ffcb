import { emitKeypressEvents } from 'node:readline';
import { Command } from 'commander';
import type { EtcdClient } from '../../client.ts';
import { connectionOf, storeOptions } from '../connection.ts';
import { checked, ExitCode } from '../exit-codes.ts';
import { ASKING, explain } from '../help.ts';
import { keepLive } from '../live/feed.ts';
import { LiveModel, liveIn } from '../live/model.ts';
import { timeOfDay } from '../queues/durations.ts';
import { fullOwnerOf } from '../queues/show.ts';
import { withClient } from '../session.ts';
import { untilSignalled } from '../signals.ts';
import { complain, drawScreen, enterScreen, leaveScreen, print } from '../streams.ts';
import { aboutColumns, type Column, Lines } from '../table.ts';
import { ABOUT_TOP_TIMES, liveEntryColumns, liveLockColumns } from '../top/columns.ts';
import { type Key, TopView } from '../top/view.ts';

const ABOUT = `
On a terminal, top shows all locks that are held, and updates them:
  up, down     select a lock
  enter        open it: its queue, whom each entry waits for, and what has happened since top started
  escape       back to the list
  /            show only locks whose name contains a text
  s            sort by the longest wait, the number of waiters, the longest hold, or the name
  q            quit

Off a terminal, top prints the present entries and one line per event, until interrupted.

top lists all queues once, and follows them with one watch. After an outage it lists them again. At most 10,000 locks are shown.

${ABOUT_TOP_TIMES}

${aboutColumns(liveLockColumns)}

${aboutColumns(liveEntryColumns, 'Columns of an open lock')}`;

/** Milliseconds between two updates of the screen. */
const UPDATE_EVERY = 1000;
/** Milliseconds to wait for further changes before the screen is updated. */
const SOON = 50;

/** `etcd-v2-lock top`: shows all locks, live. */
export function topCommand(): Command {
  const command = new Command('top')
    .description('Show all locks with their queues, live, until "q" is pressed.')
    .argument('[prefix]', 'only locks whose name begins with this prefix')
    .addHelpText('after', ABOUT)
    .action(withClient((client, command) => top(client, command.args[0] ?? '', command)));
  return explain(command, {
    exitReasons: [...ASKING, 'signalled'],
    examples: [
      ['etcd-v2-lock top', 'show all locks'],
      ['etcd-v2-lock top jobs/ | tee log', 'print what happens to the locks below "jobs"'],
    ],
  });
}

async function top(client: EtcdClient, prefix: string, command: Command): Promise<number> {
  checked(() => client.surveyor.checkPrefix(prefix));
  const { api = 'v2' } = storeOptions(connectionOf(command));
  const model = new LiveModel({ api, prefix });
  const isLive = process.stdout.isTTY && process.stdin.isTTY && process.env['TERM'] !== 'dumb';
  return untilSignalled((signal) => {
    const end = new AbortController();
    signal.addEventListener('abort', () => end.abort(), { once: true });
    const show = isLive ? onScreen(model, api, () => end.abort()) : inLines(model);
    return follow(client, model, prefix, { ...show, signal: end.signal });
  });
}

interface Show {
  /** Shows the model after a change. */
  readonly onChange: () => void;
  readonly shown?: () => readonly string[];
  readonly stop?: () => void;
}

async function follow(
  { surveyor }: EtcdClient,
  model: LiveModel,
  prefix: string,
  { stop, signal, ...show }: Show & { readonly signal: AbortSignal },
): Promise<number> {
  try {
    await keepLive(surveyor, model, { prefix, signal, ...show });
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    stop?.();
  }
  return ExitCode.ok;
}

/** Shows the model on the terminal, from the first listing on. */
function onScreen(model: LiveModel, api: string, quit: () => void): Show {
  const { stdin, stdout } = process;
  const view = new TopView(model, `locks on etcd ${api}`);
  let timer: NodeJS.Timeout | undefined;
  let soon: NodeJS.Timeout | undefined;
  const draw = (): void => {
    clearTimeout(soon);
    soon = undefined;
    drawScreen(view.lines({ columns: stdout.columns || 80, rows: stdout.rows || 24 }, Date.now()));
  };
  const onKey = (_: string | undefined, key: Key): void => {
    if (view.press(key)) quit();
    else draw();
  };
  const start = (): void => {
    enterScreen();
    // Also if an error ends the process.
    process.once('exit', leaveScreen);
    emitKeypressEvents(stdin);
    stdin.setRawMode(true);
    stdin.on('keypress', onKey);
    stdin.resume();
    stdout.on('resize', draw);
    timer = setInterval(draw, UPDATE_EVERY);
  };
  return {
    onChange: () => {
      if (timer === undefined) start();
      soon ??= setTimeout(draw, SOON);
    },
    shown: () => view.shown,
    stop: () => {
      if (timer === undefined) return;
      clearInterval(timer);
      clearTimeout(soon);
      stdout.off('resize', draw);
      stdin.off('keypress', onKey);
      stdin.setRawMode(false);
      stdin.pause();
      stdin.unref();
      process.off('exit', leaveScreen);
      leaveScreen();
    },
  };
}

interface EventRow {
  readonly at: number;
  readonly event: string;
  readonly name: string;
  readonly client: string;
}

const EVENT_COLUMNS: readonly Column<EventRow>[] = [
  { heading: 'TIME', about: 'local time', cell: ({ at }) => timeOfDay(new Date(at)) },
  { heading: 'EVENT', about: 'what happened', cell: ({ event }) => event.padEnd(10) },
  { heading: 'NAME', about: 'name of the lock', cell: ({ name }) => name, yields: 2, last: true },
  { heading: 'CLIENT', about: 'client of the entry', cell: ({ client }) => client, yields: 1 },
];

/** Prints the entries of the first listing, then one line per event. */
function inLines(model: LiveModel): Show {
  const lines = new Lines(EVENT_COLUMNS);
  let printed: number | undefined;
  let isOut = false;
  const printRow = (row: EventRow): void => print(lines.line(row));
  return {
    onChange: () => {
      if (model.outage && !isOut) complain(`cannot follow the locks, retrying: ${model.outage.message}`);
      if (!model.outage && isOut) complain('following the locks again');
      isOut = model.outage !== undefined;
      if (printed === undefined) {
        const rows = model.locks.flatMap((lock) =>
          liveIn(lock).map(({ entry }, place): EventRow => {
            const event = place < lock.holders.length ? 'holds' : 'waits';
            return { at: Date.now(), event, name: lock.name, client: fullOwnerOf(entry) };
          }),
        );
        print(lines.head(rows));
        for (const row of rows) printRow(row);
      }
      const events = model.recorded - (printed ?? 0);
      printed = model.recorded;
      for (const { at, kind, entry } of events === 0 ? [] : model.history.slice(-events))
        printRow({ at, event: kind, name: entry.name, client: fullOwnerOf(entry) });
    },
  };
}
