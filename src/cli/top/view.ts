import { printable } from '../../base/printable.ts';
import { publishedIn } from '../../recipe/entries/entry-value.ts';
import { type LiveLock, type LiveModel, liveIn, longestWaiter } from '../live/model.ts';
import { timeOfDay } from '../queues/durations.ts';
import { fullOwnerOf } from '../queues/show.ts';
import { type OutputLine, styled } from '../streams.ts';
import { table } from '../table.ts';
import { liveEntryColumns, liveLockColumns } from './columns.ts';

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** A key press, as `node:readline` reports it. */
export interface Key {
  readonly name?: string | undefined;
  readonly ctrl?: boolean | undefined;
  readonly sequence?: string | undefined;
}

type Order = (one: LiveLock, other: LiveLock) => number;

const byName: Order = (one, other) => (one.name < other.name ? -1 : 1);

const by =
  (from: (lock: LiveLock) => number): Order =>
  (one, other) => {
    const [first, second] = [from(one), from(other)];
    return first === second ? byName(one, other) : first < second ? -1 : 1;
  };

/** The orders of the list, by their name on the screen. */
const ORDERS: readonly (readonly [name: string, order: Order])[] = [
  [
    'longest wait',
    by((lock) => {
      const waiter = longestWaiter(lock);
      return waiter?.queuedAt ?? waiter?.seenAt ?? Number.POSITIVE_INFINITY;
    }),
  ],
  ['waiters', by(({ waiters }) => -waiters.length)],
  ['longest hold', by(({ holders: [first] }) => first?.heldAt ?? first?.queuedAt ?? first?.seenAt ?? 0)],
  ['name', byName],
];

const LIST_KEYS = 'up/down: select  enter: open  /: search  s: sort  q: quit';
const LOCK_KEYS = 'up/down: scroll  escape: back  q: quit';
/** Lines beside the rows of a table: title, message, headings, and keys. */
const FRAME = 4;
/** Share of the screen for the history of an open lock. */
const HISTORY_SHARE = 1 / 3;

/** What `top` shows: the list of all locks, or one of them. Does no input or output. */
export class TopView {
  readonly #model: LiveModel;
  readonly #title: string;
  #order = 0;
  #search = '';
  #isSearching = false;
  /** Path of the selected lock, and its last place in the list. */
  #selected: string | undefined;
  #at = 0;
  #isOpen = false;
  /** First row that is shown of the list, and of the queue of the open lock. */
  #first = 0;
  #scrolled = 0;
  #shown: readonly string[] = [];
  /** Number of rows that the screen has. */
  #page = 1;

  constructor(model: LiveModel, title: string) {
    this.#model = model;
    this.#title = title;
  }

  /** Names of the locks on the screen. */
  get shown(): readonly string[] {
    return this.#shown;
  }

  /** Handles a key press. Returns whether the user wants to quit. */
  press({ name = '', ctrl = false, sequence = '' }: Key): boolean {
    if (ctrl) return name === 'c';
    if (this.#isSearching) {
      this.#type(name, sequence);
      return false;
    }
    const steps = { up: -1, k: -1, down: 1, j: 1, pageup: -this.#page, pagedown: this.#page }[name];
    if (steps !== undefined) this.#move(steps);
    else if (name === 'return' || name === 'enter') this.#open();
    else if (name === 'escape' || name === 'backspace') this.#goBack();
    else if (sequence === '/' && !this.#isOpen) this.#isSearching = true;
    else if (name === 's' && !this.#isOpen) this.#order = (this.#order + 1) % ORDERS.length;
    return name === 'q';
  }

  /**
   * Returns the lines of the screen: as many as it has rows.
   * @param at the time, in milliseconds since the epoch
   */
  lines(size: Size, at: number): OutputLine[] {
    const body = this.#isOpen ? this.#lockLines(size, at) : this.#listLines(size, at);
    const room = Math.max(0, size.rows - 1);
    const empty = Array<string>(Math.max(0, room - body.length)).fill('');
    return [...body.slice(0, room), ...empty, line('dim', this.#isOpen ? LOCK_KEYS : LIST_KEYS, size)];
  }

  get #lock(): LiveLock | undefined {
    return this.#isOpen && this.#selected !== undefined ? this.#model.lock(this.#selected) : undefined;
  }

  #type(name: string, sequence: string): void {
    if (name === 'return' || name === 'enter') this.#isSearching = false;
    else if (name === 'escape') {
      this.#isSearching = false;
      this.#search = '';
    } else if (name === 'backspace') this.#search = [...this.#search].slice(0, -1).join('');
    else if (printable(sequence) === sequence) this.#search += sequence;
  }

  #move(steps: number): void {
    if (this.#isOpen) {
      this.#scrolled = Math.max(0, this.#scrolled + steps);
      return;
    }
    const locks = this.#found();
    this.#at = Math.max(0, Math.min(locks.length - 1, this.#place(locks) + steps));
    this.#selected = locks[this.#at]?.path;
  }

  #open(): void {
    const locks = this.#found();
    if (!this.#isOpen) this.#selected = locks[this.#place(locks)]?.path;
    this.#isOpen = this.#selected !== undefined;
    this.#scrolled = 0;
  }

  #goBack(): void {
    if (!this.#isOpen) this.#search = '';
    this.#isOpen = false;
  }

  #found(): LiveLock[] {
    const [, order] = ORDERS[this.#order] ?? ['', byName];
    return this.#model.locks.filter(({ name }) => name.includes(this.#search)).sort(order);
  }

  /** Returns the place of the selected lock; if it is gone, its last place. */
  #place(locks: readonly LiveLock[]): number {
    const at = this.#selected === undefined ? 0 : locks.findIndex(({ path }) => path === this.#selected);
    return at >= 0 ? at : Math.max(0, Math.min(this.#at, locks.length - 1));
  }

  #listLines(size: Size, at: number): OutputLine[] {
    const locks = this.#found();
    this.#at = this.#place(locks);
    this.#page = Math.max(1, size.rows - FRAME);
    this.#first = Math.min(Math.max(this.#first, this.#at - this.#page + 1), this.#at);
    const shown = locks.slice(this.#first, this.#first + this.#page).map((lock) => ({ lock, at }));
    this.#shown = shown.map(({ lock }) => lock.name);
    const more = this.#model.omitted > 0 ? `, and ${this.#model.omitted} that are not shown` : '';
    const contended = locks.filter(({ waiters }) => waiters.length > 0).length;
    const [order] = ORDERS[this.#order] ?? [''];
    const title = `${this.#title}: ${locks.length}, ${contended} with waiters, by ${order}${more}`;
    const isFiltered = this.#isSearching || this.#search !== '';
    const search = isFiltered ? `search: ${this.#search}${this.#isSearching ? '_' : ''}` : '';
    const [head = '', ...rows] = table(liveLockColumns, shown, size.columns);
    const marked = rows.map((row, index) => (this.#first + index === this.#at ? selected(row, size) : row));
    return [
      this.#titleLine(title, size, at),
      this.#message(search, size, at),
      ...(rows.length > 0 ? [head, ...marked] : ['no lock is held']),
    ];
  }

  #lockLines(size: Size, at: number): OutputLine[] {
    const path = this.#selected ?? '';
    const lock = this.#lock;
    this.#shown = lock ? [lock.name] : [];
    const most = Math.max(1, Math.floor(size.rows * HISTORY_SHARE));
    // Two more lines: one above the history, and its heading.
    this.#page = Math.max(1, size.rows - FRAME - most - 2);
    const entries = liveIn(lock);
    this.#scrolled = Math.min(this.#scrolled, Math.max(0, entries.length - this.#page));
    const shown = entries.slice(this.#scrolled, this.#scrolled + this.#page);
    const rows = lock ? shown.map((live, index) => ({ lock, live, position: this.#scrolled + index + 1, at })) : [];
    const published = lock?.holders.map(({ entry }) => publishedIn(entry.value)).find((value) => value !== undefined);
    const history = this.#model.history.filter(({ entry }) => entry.key.slice(0, entry.key.lastIndexOf('/')) === path);
    return [
      this.#titleLine(`${path}: ${lock?.holders.length ?? 0} hold, ${lock?.waiters.length ?? 0} wait`, size, at),
      this.#message(published === undefined ? '' : `the leader publishes: ${published}`, size, at),
      ...(rows.length > 0 ? table(liveEntryColumns, rows, size.columns) : ['the queue is empty']),
      '',
      line('bold', 'SINCE TOP STARTED', size),
      ...history
        .slice(-most)
        .map(({ at: time, kind, entry }) =>
          cut(`${timeOfDay(new Date(time))}  ${kind.padEnd(10)}  ${fullOwnerOf(entry)}`, size.columns),
        ),
    ];
  }

  #titleLine(title: string, size: Size, at: number): OutputLine {
    const time = timeOfDay(new Date(at));
    const room = Math.max(0, size.columns - time.length - 2);
    return line('bold', `${cut(title, room).padEnd(room)}  ${time}`, size);
  }

  /** Returns the outage, if there is one; or else the text. */
  #message(text: string, size: Size, at: number): OutputLine {
    const { outage } = this.#model;
    if (!outage) return cut(text, size.columns);
    const seconds = Math.max(0, Math.round((at - outage.since) / 1000));
    return line('red', `not seen since ${timeOfDay(new Date(outage.since))} (${seconds} s): ${outage.message}`, size);
  }
}

const cut = (text: string, width: number): string => [...printable(text)].slice(0, width).join('');

const line = (style: Parameters<typeof styled>[0], text: string, { columns }: Size): OutputLine => [
  styled(style, cut(text, columns)),
];

const selected = (row: OutputLine, size: Size): OutputLine =>
  typeof row === 'string' ? line('inverse', row.padEnd(size.columns), size) : row;
