import { readFileSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { detached } from '../../base/async-context.ts';
import { show } from '../../base/checks.ts';
import { errorText } from '../../base/error-text.ts';
import { printable } from '../../base/printable.ts';
import { checkTls, type TlsSettings } from './settings.ts';

/** TLS settings that may be in files, which are read again when they change. */
export interface TlsFileOptions extends TlsSettings {
  /**
   * Path of a file with `ca`. When this file, `certFile` or `keyFile` changes, also as a symbolic link, new connections use it within half a
   * second, and no later request uses an earlier connection. If the new files cannot be used, the client emits a warning with the code
   * `ETCD_LOCK_TLS_FILES`, and keeps the old certificates.
   */
  readonly caFile?: string;
  /** Path of a file with `cert`; requires `keyFile`. See `caFile`. */
  readonly certFile?: string;
  /** Path of a file with `key`; requires `certFile`. See `caFile`. */
  readonly keyFile?: string;
}

const OPTION_OF = { caFile: 'ca', certFile: 'cert', keyFile: 'key' } as const;

type Texts = Partial<Record<'ca' | 'cert' | 'key', string>>;

/** Milliseconds between two looks at the files. Watching them would miss the change of a link to their directory. */
const LOOK_EVERY = 500;

/** The TLS settings in files, as of the last change that can be used. Looks at the files while somebody listens for changes. */
export class TlsFiles {
  readonly #paths: readonly (readonly ['ca' | 'cert' | 'key', string])[];
  readonly #others: TlsSettings;
  readonly #listeners = new Set<() => void>();
  #current: TlsSettings;
  /** What the system said of the files before they were last read: those in use, those that failed, those whose failure was reported. */
  #used = '';
  #failed = '';
  #reported = '';
  #timer: NodeJS.Timeout | undefined;

  /**
   * Reads the files.
   * @throws {TypeError | RangeError} if one of them cannot be read, or the settings are invalid; the message never shows a private key
   */
  constructor({ caFile, certFile, keyFile, ...others }: TlsFileOptions) {
    this.#paths = Object.entries({ caFile, certFile, keyFile }).flatMap(([name, path]) => {
      if (path === undefined) return [];
      const option = OPTION_OF[name as keyof typeof OPTION_OF];
      if (others[option] !== undefined) throw new TypeError(`${option} and ${name} cannot be used together`);
      if (typeof path !== 'string' || path === '') throw new TypeError(`${name} must be a path, got ${show(path)}`);
      return [[option, path] as const];
    });
    this.#others = others;
    this.#current = this.#checked(Object.fromEntries(this.#paths.map(([option, path]) => [option, textOf(path)])));
  }

  get current(): TlsSettings {
    return this.#current;
  }

  /** Calls `listener` after each change of {@link current}. Returns what ends that. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    if (!this.#timer) detached(() => this.#lookLater());
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      clearTimeout(this.#timer);
      this.#timer = undefined;
    };
  }

  /** Reads the files now, even if they seem unchanged. Never rejects: see {@link TlsFileOptions.caFile}. */
  async reload(): Promise<void> {
    this.#used = '';
    this.#reported = '';
    await this.#look(true);
  }

  #lookLater(): void {
    this.#timer = setTimeout(async () => {
      await this.#look(false);
      if (this.#timer) this.#lookLater();
    }, LOOK_EVERY).unref();
  }

  /** @param now whether to report a failure at once, and not when it is there for the second time: files change one by one */
  async #look(now: boolean): Promise<void> {
    const print = (await Promise.all(this.#paths.map(([, path]) => printOf(path)))).join();
    if (print === this.#used || print === this.#reported) return;
    try {
      const texts = this.#paths.map(async ([option, path]) => [option, await readFile(path, 'utf8')] as const);
      const next = this.#checked(Object.fromEntries(await Promise.all(texts)));
      const isChanged = JSON.stringify(next) !== JSON.stringify(this.#current);
      [this.#used, this.#failed, this.#reported] = [print, '', ''];
      this.#current = next;
      if (isChanged) for (const listener of [...this.#listeners]) listener();
    } catch (error) {
      if (now || this.#failed === print) this.#report(error, print);
      this.#failed = print;
    }
  }

  #report(error: unknown, print: string): void {
    this.#reported = print;
    const why = printable(errorText(error));
    process.emitWarning(`the changed TLS files cannot be used, and the old certificates stay in use: ${why}`, {
      code: 'ETCD_LOCK_TLS_FILES',
    });
  }

  #checked(texts: Texts): TlsSettings {
    try {
      return checkTls({ ...this.#others, ...texts });
    } catch (error) {
      if (!(error instanceof RangeError) || this.#paths.length === 0) throw error;
      const names = this.#paths.map(([, path]) => show(path)).join(', ');
      throw new RangeError(
        `${names}: ${error.message.replace(/ as PEM text \(not the paths? of (a file|files)\)/, '')}`,
      );
    }
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new RangeError(`cannot read ${show(path)}: ${(error as NodeJS.ErrnoException).code}`);
  }
}

/** Returns a text that differs after a change of the file, of a link to it, or of a link to its directory. */
async function printOf(path: string): Promise<string> {
  try {
    const { ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return `${ino} ${size} ${mtimeNs} ${ctimeNs}`;
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}
