import { type OutputLine, outputWidth, print, replaceLines } from '../streams.ts';

/** Characters per line, if the output is that wide. */
const WIDTH = 80;
/** In a smaller terminal, the picture would wrap or scroll. */
const NARROWEST = 60;
const LOWEST = 16;
/** Milliseconds between two updates of the picture. */
const UPDATE_EVERY = 100;

/**
 * Prints lines on stdout, and a picture below them. On a terminal the picture stays below the last line and is updated all the time.
 * Otherwise the picture is printed once, at the end.
 */
export class Screen {
  readonly #isLive =
    process.stdout.isTTY &&
    process.env['TERM'] !== 'dumb' &&
    outputWidth() >= NARROWEST &&
    (process.stdout.rows || LOWEST) >= LOWEST;
  #picture: () => readonly OutputLine[] = () => [];
  /** Number of lines of the picture on the terminal. */
  #height = 0;
  #timer: NodeJS.Timeout | undefined;

  /** Characters per line of the picture. */
  readonly width = Math.max(NARROWEST, Math.min(WIDTH, outputWidth()));

  /** Prints a line above the picture. */
  line(line: OutputLine): void {
    if (this.#isLive) this.#update(line);
    else print(line);
  }

  /** Shows what `picture` returns, instead of the picture before. */
  show(picture: () => readonly OutputLine[]): void {
    this.#picture = picture;
    if (!this.#isLive) return;
    this.#timer ??= setInterval(() => this.#update(), UPDATE_EVERY);
    this.#update();
  }

  /** Shows the picture a last time, and ends the updates. */
  finish(): void {
    this.stop();
    if (this.#isLive) this.#update();
    else for (const line of this.#picture()) print(line);
  }

  /** Ends the updates, and leaves the picture as it is. */
  stop(): void {
    clearInterval(this.#timer);
  }

  #update(...above: readonly OutputLine[]): void {
    const picture = this.#picture();
    replaceLines(this.#height, [...above, ...picture]);
    this.#height = picture.length;
  }
}
