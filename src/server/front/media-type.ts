/** Whitespace in a header. Go also accepts line breaks, but a header cannot contain them. */
const SPACE = '[ \\t]*';
const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
/** A quoted string. As in Go, a backslash escapes only a delimiter; before any other character, it is an ordinary character. */
const QUOTED = '"(?:\\\\[()<>@,;:\\\\"/[\\]?=]|\\\\(?![()<>@,;:\\\\"/[\\]?=])|[^"\\\\])*"';

const TYPE = new RegExp(`^(?:(${TOKEN})(?:(/)(${TOKEN})?)?)?(.*)$`, 's');
const PARAMETER = new RegExp(`${SPACE};${SPACE}(${TOKEN})${SPACE}=${SPACE}(?:${TOKEN}|${QUOTED})`, 'y');

/** The type in a `Content-Type` header, or the error that Go, and so etcd, reports for the header. */
export interface MediaType {
  readonly type?: string;
  readonly error?: string;
}

/** Parses a `Content-Type` header as Go's `mime.ParseMediaType` does. */
export function parseMediaType(header: string): MediaType {
  const end = header.indexOf(';');
  const type = (end < 0 ? header : header.slice(0, end)).trim().toLowerCase();
  const error = errorInType(type) ?? errorInParameters(end < 0 ? '' : header.slice(end));
  return error === undefined ? { type } : { error: `mime: ${error}` };
}

function errorInType(text: string): string | undefined {
  const [, type, slash, subtype, rest] = TYPE.exec(text) ?? [];
  if (type === undefined) return 'no media type';
  if (slash === undefined) return rest ? 'expected slash after first token' : undefined;
  if (subtype === undefined) return 'expected token after slash';
  return rest ? 'unexpected content after media subtype' : undefined;
}

function errorInParameters(text: string): string | undefined {
  const names = new Set<string>();
  let at = 0;
  for (;;) {
    const rest = text.slice(at).trim();
    if (rest === '' || rest === ';') return undefined;
    PARAMETER.lastIndex = at;
    const [parameter, name = ''] = PARAMETER.exec(text) ?? [];
    if (parameter === undefined) return 'invalid media parameter';
    if (names.has(name.toLowerCase())) return 'duplicate parameter name';
    names.add(name.toLowerCase());
    at += parameter.length;
  }
}
