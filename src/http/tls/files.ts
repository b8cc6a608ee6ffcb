import { readFileSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { detached } from '../../base/async-context.ts';
import { show } from '../../base/checks.ts';
import { errorText } from '../../base/error-text.ts';
import { printable } from '../../base/printable.ts';
import { checkTls, type Pem, type TlsSettings } from './settings.ts';

/** TLS settings that may change: texts, files, or functions that return texts. */
export interface TlsFileOptions extends Omit<TlsSettings, 'ca' | 'cert' | 'key'> {
  /**
   * Certificate authorities to trust instead of Node's defaults. Certificates are always verified. A function is called by the constructor
   * and then twice a second, so let it return what you have in memory; what changes is used as with `caFile`.
   */
  readonly ca?: Pem | (() => Pem);
  /** Client certificate; requires `key`. A function: see `ca`. */
  readonly cert?: Pem | (() => Pem);
  /** Private key of the client certificate; requires `cert`. A function: see `ca`. */
  readonly key?: Pem | (() => Pem);
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

type TextOption = (typeof OPTION_OF)[keyof typeof OPTION_OF];
type Texts = Partial<Record<TextOption, Pem>>;

/** Where one of the settings comes from. */
interface Source {
  readonly option: TextOption;
  /** For messages. */
  readonly name: string;
  /** @throws {RangeError} if it cannot be read */
  readNow(): Pem;
  read(): Promise<Pem>;
  /** Returns a text that differs after a change. */
  print(): Promise<string>;
}

/** Milliseconds between two looks at the files. Watching them would miss the change of a link to their directory. */
const LOOK_EVERY = 500;

/** Whether one of the settings may change. */
export const mayChange = ({ ca, cert, key, caFile, certFile, keyFile }: TlsFileOptions): boolean =>
  [caFile, certFile, keyFile].some((path) => path !== undefined) ||
  [ca, cert, key].some((source) => typeof source === 'function');

/**
 * The TLS settings in files and from functions, as of the last change that can be used. Looks at them while somebody listens for changes.
 */
export class TlsFiles {
  readonly #sources: readonly Source[];
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
    const { ca, cert, key, ...rest } = others;
    const given = { ca, cert, key };
    const files = Object.entries({ caFile, certFile, keyFile }).flatMap(([name, path]) => {
      if (path === undefined) return [];
      const option = OPTION_OF[name as keyof typeof OPTION_OF];
      if (given[option] !== undefined) throw new TypeError(`${option} and ${name} cannot be used together`);
      if (typeof path !== 'string' || path === '') throw new TypeError(`${name} must be a path, got ${show(path)}`);
      return [fileSource(option, path)];
    });
    const functions = (['ca', 'cert', 'key'] as const).flatMap((option) => {
      const source = given[option];
      return typeof source === 'function' ? [functionSource(option, source as () => Pem)] : [];
    });
    const texts = Object.entries(given).filter(([, pem]) => pem !== undefined && typeof pem !== 'function');
    this.#sources = [...files, ...functions];
    this.#others = { ...rest, ...Object.fromEntries(texts) };
    this.#current = this.#checked(Object.fromEntries(this.#sources.map(({ option, readNow }) => [option, readNow()])));
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
    const timer = setTimeout(async () => {
      await this.#look(false);
      // Otherwise nobody listens any more, or somebody does again, and looks already.
      if (this.#timer === timer) this.#lookLater();
    }, LOOK_EVERY).unref();
    this.#timer = timer;
  }

  /** @param now whether to report a failure at once, and not when it is there for the second time: files change one by one */
  async #look(now: boolean): Promise<void> {
    const print = (await Promise.all(this.#sources.map((source) => source.print()))).join();
    if (print === this.#used || print === this.#reported) return;
    try {
      const texts = this.#sources.map(async ({ option, read }) => [option, await read()] as const);
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
      if (!(error instanceof RangeError) || this.#sources.length === 0) throw error;
      const names = this.#sources.map(({ name }) => name).join(', ');
      throw new RangeError(
        `${names}: ${error.message.replace(/ as PEM text \(not the paths? of (a file|files)\)/, '')}`,
      );
    }
  }
}

const fileSource = (option: TextOption, path: string): Source => ({
  option,
  name: show(path),
  readNow: () => textOf(path),
  read: () => readFile(path, 'utf8'),
  print: () => printOf(path),
});

function functionSource(option: TextOption, call: () => Pem): Source {
  const readNow = (): Pem => {
    let pem: Pem | undefined;
    try {
      pem = call();
    } catch (error) {
      throw new RangeError(`the function ${option} threw: ${errorText(error)}`, { cause: error });
    }
    // Without this, an authority that is missing for a moment would mean all that Node.js knows.
    if (pem === undefined) throw new RangeError(`the function ${option} must return PEM text, got undefined`);
    return pem;
  };
  const read = async (): Promise<Pem> => readNow();
  const print = (): Promise<string> => read().then(String, errorText);
  return { option, name: `the function ${option}`, readNow, read, print };
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
