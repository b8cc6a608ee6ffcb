/** Encodes answers. */
import { etcdJson } from '../../../v2/wire.ts';
import { OutOfMemory } from '../../served-keys.ts';
import type { Enumeration, Field, Fields, Kind } from './fields.ts';

/** Maximum number of characters of a message: no connection may have more unread. */
const LONGEST_MESSAGE = 128 * 2 ** 20;

/** What is left for a message. */
interface Room {
  characters: number;
}

/**
 * Encodes a message. Fields that are zero, false or empty are left out.
 * @throws {OutOfMemory} as soon as the message is too long
 */
export const encode = <T extends object>(kind: Kind<T>, message: T): string =>
  encodeMessage(kind as Fields, message, { characters: LONGEST_MESSAGE });

function encodeMessage(kind: Fields, message: object, room: Room): string {
  let fields = '';
  for (const [name, field] of Object.entries(kind)) {
    const value = (message as Readonly<Record<string, unknown>>)[name];
    if (isZero(value)) continue;
    fields += `${fields && ','}${within(room, `"${name}":`)}${encodeField(field, value, room)}`;
  }
  return `{${fields}}`;
}

const isZero = (value: unknown): boolean =>
  value === undefined || value === '' || value === 0n || value === 0 || value === false || isEmptyList(value);

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

function encodeField(field: Field, value: unknown, room: Room): string {
  if (typeof field !== 'object' || 'enumeration' in field) return within(room, encodeValue(field, value));
  if ('message' in field) return encodeMessage(field.message(), value as object, room);
  if ('oneOf' in field) return encodeField(field.field, value, room);
  return `[${(value as readonly unknown[]).map((one) => encodeField(field.list, one, room)).join(',')}]`;
}

function encodeValue(type: Enumeration | Extract<Field, string>, value: unknown): string {
  if (typeof type === 'object') return encodeName(type.names, value as number);
  if (type === 'bytes') return `"${Buffer.from(value as string, 'latin1').toString('base64')}"`;
  if (type === 'string') return etcdJson(value as string).trimEnd();
  return type === 'int64' || type === 'uint64' ? `"${value}"` : String(value);
}

const encodeName = (names: readonly string[], value: number): string =>
  names[value] === undefined ? String(value) : `"${names[value]}"`;

/** Returns the text. @throws {OutOfMemory} if the message has no room for it */
function within(room: Room, text: string): string {
  room.characters -= text.length;
  if (room.characters < 0) throw new OutOfMemory();
  return text;
}
