import type { EtcdVersion } from '../../version.ts';
import type { Fields, Kind } from './fields.ts';
import { Jsonpb } from './json/jsonpb.ts';
import type { JsonValue } from './json/parse.ts';
import { Protojson } from './json/protojson.ts';

/** A request's message before it is decoded. */
export interface Json {
  readonly value: JsonValue;
  /** The whole body. */
  readonly text: string;
}

/** Returns a message, with the zero value of each field that is left out. @throws {EtcdV3Refusal} as the gateway does */
export type Decode = <T>(kind: Kind<T>, json: Json) => T;

const on34 = new Jsonpb({
  unknown: (raw, name) => `unknown value ${raw} for enum ${name}`,
  type: (name) => name,
});

const on35 = new Jsonpb({
  unknown: (raw, name) => `unknown value ${JSON.stringify(raw)} for enum ${name.replace('_', '.')}`,
  type: () => 'protoreflect.EnumNumber',
});

/** Returns how a version of etcd decodes messages. */
export function decoderOf(version: EtcdVersion): Decode {
  const decode = (kind: Fields, { value, text }: Json) => {
    if (version === '3.6') return new Protojson(text, value.at).decode(kind, value);
    return (version === '3.4' ? on34 : on35).decode(kind, value);
  };
  return decode as unknown as Decode;
}
