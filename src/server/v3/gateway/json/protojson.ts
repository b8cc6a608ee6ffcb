/** Decodes messages as the gateway of etcd 3.6 does, with its errors. */
import { type EtcdV3Refusal, invalid } from '../../errors.ts';
import {
  camelCased,
  type Enumeration,
  type Field,
  type Fields,
  type IntegerType,
  integerOf,
  zeroOf,
} from '../fields.ts';
import { decodeAnyBase64 } from './base64.ts';
import { type JsonMember, JsonParser, type JsonValue, textOf } from './parse.ts';

/** An enumeration's value that etcd does not know. It is left out. */
const UNKNOWN = Symbol('unknown');

/** Decodes a message. */
export class Protojson {
  readonly #text: string;
  readonly #start: number;

  /**
   * @param text the whole text, for errors
   * @param start offset of the message
   */
  constructor(text: string, start: number) {
    this.#text = text;
    this.#start = start;
  }

  /** @throws {EtcdV3Refusal} */
  decode(kind: Fields, value: JsonValue): Record<string, unknown> {
    if (value.kind !== 'object') throw this.#unexpected(value);
    const message: Record<string, unknown> = {};
    for (const [name, field] of Object.entries(kind)) message[name] = zeroOf(field);
    const seen = new Set<string>();
    for (const member of value.members) {
      const [name, field] = Object.entries(kind).find(([own]) => isNamed(own, member)) ?? [];
      if (name === undefined || field === undefined) continue;
      if (seen.has(name)) throw this.#error(member, `duplicate field ${this.#nameIn(member)}`);
      seen.add(name);
      if (member.value.kind === 'null') continue;
      this.#checkOneOf(field, member, seen);
      const decoded = this.#field(field, name, member.value);
      if (decoded !== UNKNOWN) message[name] = decoded;
    }
    return message;
  }

  #checkOneOf(field: Field, member: JsonMember, seen: Set<string>): void {
    if (typeof field === 'string' || !('oneOf' in field)) return;
    const { oneOf } = field;
    if (seen.has(oneOf))
      throw this.#error(member, `error parsing ${this.#nameIn(member)}, oneof ${oneOf} is already set`);
    seen.add(oneOf);
  }

  #field(field: Field, name: string, value: JsonValue): unknown {
    if (typeof field === 'string') return this.#scalar(field, name, value);
    if ('message' in field) return this.decode(field.message(), value);
    if ('oneOf' in field) return this.#field(field.field, name, value);
    if ('enumeration' in field) return this.#enumeration(field, name, value);
    if (value.kind !== 'array') throw this.#unexpected(value);
    return value.items.map((item) => this.#field(field.list, name, item)).filter((item) => item !== UNKNOWN);
  }

  #enumeration({ names }: Enumeration, name: string, value: JsonValue): unknown {
    if (value.kind === 'string') {
      const number = names.indexOf(textOf(value));
      return number < 0 ? UNKNOWN : number;
    }
    const number = value.kind === 'number' ? integerIn(value.raw, 'int32') : undefined;
    if (number === undefined) throw this.#badValue('enum', name, value);
    return number;
  }

  #scalar(type: Exclude<Field, object>, name: string, value: JsonValue): unknown {
    const decoded = scalarOf(type, value);
    if (decoded === undefined) throw this.#badValue(type, name, value);
    return decoded;
  }

  #badValue(type: string, name: string, value: JsonValue): EtcdV3Refusal {
    return this.#error(value, `invalid value for ${type} field ${camelCased(name)}: ${tokenOf(value)}`);
  }

  #unexpected(value: JsonValue): EtcdV3Refusal {
    return this.#error(value, `unexpected token ${tokenOf(value)}`, 'syntax error ');
  }

  /** Returns the name of a member with its quotes. */
  #nameIn({ at }: JsonMember): string {
    const name = new JsonParser(this.#text.slice(at)).next();
    return name ? tokenOf(name) : '';
  }

  #error({ at }: { readonly at: number }, message: string, kind = ''): EtcdV3Refusal {
    const lines = this.#text.slice(this.#start, at).split('\n');
    const column = [...(lines.at(-1) ?? '')].length + 1;
    return invalid(`proto: ${kind}(line ${lines.length}:${column}): ${message}`);
  }
}

const isNamed = (name: string, member: JsonMember): boolean => member.name === name || member.name === camelCased(name);

/** Returns the first token of a value. */
const tokenOf = (value: JsonValue): string =>
  value.kind === 'object' ? '{' : value.kind === 'array' ? '[' : value.raw;

function scalarOf(type: Exclude<Field, object>, value: JsonValue): unknown {
  if (type === 'bool') return value.kind === 'bool' ? value.raw === 'true' : undefined;
  if (type === 'string') return value.kind === 'string' ? textOf(value) : undefined;
  if (type === 'bytes') return value.kind === 'string' ? decodeAnyBase64(textOf(value)) : undefined;
  if (value.kind === 'number') return integerIn(value.raw, type);
  return value.kind === 'string' ? integerIn(textOf(value), type) : undefined;
}

/** Returns the integer that a JSON number is, such as 100 for `1e2`; undefined if it is none, or out of range. */
function integerIn(text: string, type: IntegerType): bigint | number | undefined {
  const [, sign, whole = '', fraction = '', exponent = '0'] =
    /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  if (sign === undefined || exponent.length > 6) return undefined;
  const digits = (whole + fraction).replace(/^0+/, '');
  if (digits === '') return integerOf(type, 0n);
  const length = whole.length + fraction.length - digits.length;
  // Position of the decimal point in the digits.
  const point = whole.length + Number(exponent) - length;
  if (point <= 0 || point > 20 || /[1-9]/.test(digits.slice(point))) return undefined;
  return integerOf(type, BigInt(sign + digits.slice(0, point).padEnd(point, '0')));
}
