/** Decodes messages as the gateways of etcd 3.4 and 3.5 do, with their errors. */
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
import { decodeBase64 } from './base64.ts';
import { type JsonArray, JsonParser, type JsonScalar, type JsonValue, textOf } from './parse.ts';

/** How a version of etcd names an enumeration in errors. */
export interface EnumerationTexts {
  readonly unknown: (raw: string, name: string) => string;
  /** Returns the Go type that a number of this enumeration is decoded to. */
  readonly type: (name: string) => string;
}

/** Decodes messages. Of a field that occurs more than once, the last one counts, and the spelling in camelCase before the other. */
export class Jsonpb {
  readonly #texts: EnumerationTexts;

  constructor(texts: EnumerationTexts) {
    this.#texts = texts;
  }

  /** @throws {EtcdV3Refusal} */
  decode(kind: Fields, value: JsonValue): Record<string, unknown> {
    if (value.kind !== 'object' && value.kind !== 'null') throw unfit(value, 'map[string]json.RawMessage');
    const members = value.kind === 'object' ? value.members : [];
    const given = new Map(members.map((member) => [member.name, member.value]));
    const message: Record<string, unknown> = {};
    /** The field of each group that is set. */
    const set = new Map<string, string>();
    for (const [name, field] of Object.entries(kind)) {
      const found = given.get(camelCased(name)) ?? given.get(name);
      const isGiven = found !== undefined && found.kind !== 'null';
      message[name] = isGiven ? this.#field(field, found) : zeroOf(field);
      if (!isGiven || typeof field === 'string' || !('oneOf' in field)) continue;
      const before = set.get(field.oneOf);
      if (before !== undefined) message[before] = undefined;
      set.set(field.oneOf, name);
    }
    return message;
  }

  #field(field: Field, value: JsonValue): unknown {
    if (typeof field === 'object') {
      if ('message' in field) return this.decode(field.message(), value);
      if ('oneOf' in field) return this.#field(field.field, value);
      if ('enumeration' in field) return this.#enumeration(field, value);
      if (value.kind !== 'array') throw unfit(value, '[]json.RawMessage');
      return value.items.map((item) => this.#field(field.list, item));
    }
    if (field === 'bytes') return bytes(value);
    if (field === 'bool' || field === 'string') return boolOrString(field, value);
    return integer(field, value.kind === 'string' ? unquoted(value) : value, field);
  }

  #enumeration({ enumeration: name, names }: Enumeration, value: JsonValue): number {
    if (value.kind !== 'string') return Number(integer('int32', value, this.#texts.type(name)));
    const number = names.indexOf(value.raw.slice(1, -1));
    if (number < 0) throw invalid(this.#texts.unknown(value.raw, name));
    return number;
  }
}

function boolOrString(type: 'bool' | 'string', value: JsonValue): boolean | string {
  if (value.kind === 'null') return type === 'string' ? '' : false;
  if (value.kind !== type) throw unfit(value, type);
  return type === 'string' ? textOf(value) : value.raw === 'true';
}

/** @param type as errors name it */
function integer(as: IntegerType, value: JsonValue, type: string): bigint | number {
  if (value.kind === 'null') return as.endsWith('64') ? 0n : 0;
  if (value.kind !== 'number') throw unfit(value, type);
  // A longer number is out of range, and would take long to convert.
  const whole = /^-?\d{1,20}$/.test(value.raw) ? integerOf(as, BigInt(value.raw)) : undefined;
  if (whole === undefined) throw invalid(`json: cannot unmarshal number ${value.raw} into Go value of type ${type}`);
  return whole;
}

/** Parses what is between the quotes: the gateway reads numbers in text as JSON. */
const unquoted = ({ raw }: JsonScalar): JsonValue => new JsonParser(raw.slice(1, -1)).single();

/** Bytes are base64, or an array of numbers. */
function bytes(value: JsonValue): string {
  if (value.kind === 'array') return bytesIn(value);
  if (value.kind === 'null') return '';
  if (value.kind !== 'string') throw unfit(value, '[]uint8');
  const decoded = decodeBase64(textOf(value));
  if ('badAt' in decoded) throw invalid(`illegal base64 data at input byte ${decoded.badAt}`);
  return decoded.bytes;
}

const bytesIn = ({ items }: JsonArray): string =>
  items
    .map((item) => {
      const byte = Number(integer('uint32', item, 'uint8'));
      if (byte > 255) throw invalid(`json: cannot unmarshal number ${byte} into Go value of type uint8`);
      return String.fromCharCode(byte);
    })
    .join('');

const unfit = ({ kind }: JsonValue, type: string): EtcdV3Refusal =>
  invalid(`json: cannot unmarshal ${kind} into Go value of type ${type}`);
