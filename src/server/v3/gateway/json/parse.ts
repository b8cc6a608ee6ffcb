import { invalid } from '../../errors.ts';

/** A JSON value. etcd's errors contain parts of its text, and its place. */
export type JsonValue = JsonObject | JsonArray | JsonScalar;

interface Placed {
  /** Offset in the text. */
  readonly at: number;
}

export interface JsonObject extends Placed {
  readonly kind: 'object';
  /** A name may occur more than once. */
  readonly members: readonly JsonMember[];
}

export interface JsonMember extends Placed {
  readonly name: string;
  readonly value: JsonValue;
}

export interface JsonArray extends Placed {
  readonly kind: 'array';
  readonly items: readonly JsonValue[];
}

export interface JsonScalar extends Placed {
  readonly kind: 'string' | 'number' | 'bool' | 'null';
  /** As it stands in the text, with the quotes of a string. */
  readonly raw: string;
}

/** Maximum depth of arrays and objects in a request. No request of etcd's API needs a tenth of it. */
const DEEPEST = 1000;

const SPACE = /[ \t\r\n]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const LITERALS: Readonly<Record<string, JsonScalar['kind']>> = { true: 'bool', false: 'bool', null: 'null' };

/** Returns the characters of a string. */
export const textOf = ({ raw }: JsonScalar): string => JSON.parse(raw);

/** Reads JSON values one after the other. Its errors are those of Go's parser. */
export class JsonParser {
  readonly #text: string;
  /** Whether the text is one value, and not a stream of them: Go ends it with a space, and has other errors. */
  #isWhole = false;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Returns the next value; undefined at the end of the text. @throws {EtcdV3Refusal} */
  next(): JsonValue | undefined {
    this.#skipSpace();
    return this.#at < this.#text.length ? this.#value(0) : undefined;
  }

  /** Returns the only value in the text. @throws {EtcdV3Refusal} */
  single(): JsonValue {
    this.#isWhole = true;
    const value = this.#value(0);
    this.#skipSpace();
    if (this.#at < this.#text.length) throw this.#unexpected('after top-level value');
    return value;
  }

  #value(depth: number): JsonValue {
    this.#skipSpace();
    const at = this.#at;
    const first = this.#text[at];
    if (first === '{' || first === '[') {
      if (depth >= DEEPEST) throw invalid('exceeded max depth');
      this.#at += 1;
      return first === '{'
        ? { kind: 'object', at, members: this.#members(depth + 1) }
        : { kind: 'array', at, items: this.#items(depth + 1) };
    }
    if (first === '"') return { kind: 'string', at, raw: this.#string() };
    if (first !== undefined && /[-\d]/.test(first)) return { kind: 'number', at, raw: this.#number() };
    return this.#literal();
  }

  #items(depth: number): readonly JsonValue[] {
    const items: JsonValue[] = [];
    if (this.#takes(']')) return items;
    do items.push(this.#value(depth));
    while (this.#takes(','));
    if (!this.#takes(']')) throw this.#unexpected('after array element');
    return items;
  }

  #members(depth: number): readonly JsonMember[] {
    const members: JsonMember[] = [];
    if (this.#takes('}')) return members;
    do members.push(this.#member(depth));
    while (this.#takes(','));
    if (!this.#takes('}')) throw this.#unexpected('after object key:value pair');
    return members;
  }

  #member(depth: number): JsonMember {
    this.#skipSpace();
    const at = this.#at;
    if (this.#text[at] !== '"') throw this.#unexpected('looking for beginning of object key string');
    const name: string = JSON.parse(this.#string());
    if (!this.#takes(':')) throw this.#unexpected('after object key');
    return { name, at, value: this.#value(depth) };
  }

  #string(): string {
    const start = this.#at;
    this.#at += 1;
    for (; this.#text[this.#at] !== '"'; this.#at += 1) {
      // The end of the text is NaN.
      if (!(this.#text.charCodeAt(this.#at) >= 0x20)) throw this.#unexpected('in string literal');
      if (this.#text[this.#at] === '\\') this.#escape();
    }
    this.#at += 1;
    return this.#text.slice(start, this.#at);
  }

  /** Moves to the last character of an escape sequence. */
  #escape(): void {
    this.#at += 1;
    const kind = this.#text[this.#at] ?? '';
    if (!'"\\/bfnrtu'.includes(kind) || kind === '') throw this.#unexpectedInside('in string escape code');
    if (kind !== 'u') return;
    for (let i = 0; i < 4; i += 1) {
      this.#at += 1;
      if (!/^[\da-fA-F]$/.test(this.#text[this.#at] ?? ''))
        throw this.#unexpectedInside('in \\u hexadecimal character escape');
    }
  }

  #number(): string {
    NUMBER.lastIndex = this.#at;
    const [raw = this.#text.charAt(this.#at)] = NUMBER.exec(this.#text) ?? [];
    this.#at += raw.length;
    const rest = /^(?:[eE][+-]?|\.)/.exec(this.#text.slice(this.#at, this.#at + 2))?.[0];
    if (raw === '-') throw this.#unexpectedInside('in numeric literal');
    if (rest === undefined || (rest === '.' && /[.eE]/.test(raw)) || (rest !== '.' && /[eE]/.test(raw))) return raw;
    this.#at += rest.length;
    throw this.#unexpectedInside(
      rest === '.' ? 'after decimal point in numeric literal' : 'in exponent of numeric literal',
    );
  }

  #literal(): JsonScalar {
    const at = this.#at;
    const [raw, kind] = Object.entries(LITERALS).find(([name]) => name[0] === this.#text[at]) ?? [];
    if (raw === undefined || kind === undefined) throw this.#unexpected('looking for beginning of value');
    for (const char of raw) {
      if (this.#text[this.#at] !== char) throw this.#unexpectedInside(`in literal ${raw} (expecting '${char}')`);
      this.#at += 1;
    }
    return { kind, at, raw };
  }

  #takes(char: string): boolean {
    this.#skipSpace();
    if (this.#text[this.#at] !== char) return false;
    this.#at += 1;
    return true;
  }

  #skipSpace(): void {
    SPACE.lastIndex = this.#at;
    SPACE.test(this.#text);
    this.#at = SPACE.lastIndex;
  }

  /** Where a space may be. */
  #unexpected(where: string): Error {
    const ended = this.#isWhole ? 'unexpected end of JSON input' : 'unexpected EOF';
    return invalid(this.#at < this.#text.length ? this.#character(where) : ended);
  }

  #unexpectedInside(where: string): Error {
    return this.#isWhole ? invalid(this.#character(where)) : this.#unexpected(where);
  }

  #character(where: string): string {
    return `invalid character ${quoted(this.#text[this.#at] ?? ' ')} ${where}`;
  }
}

/** Quotes a character as Go does: of one that has several bytes, the first. */
function quoted(char: string): string {
  if (char === "'") return "'\\''";
  if (char === '"') return `'"'`;
  const byte = Buffer.from(char)[0] ?? 0;
  const text = JSON.stringify(String.fromCharCode(byte)).slice(1, -1);
  return `'${text.replace(/^\\u00([01].)$/, '\\x$1')}'`;
}
