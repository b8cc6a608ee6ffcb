export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The object a text stands for; undefined where it stands for none. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * JSON to the letter as etcd writes it: what could hurt inside HTML, and two control characters, as `\u` escapes. So is
 * U+FFFD for each byte that is not UTF-8, of which `JSON.stringify` makes the escape of a lone surrogate.
 */
export const etcdJson = (value: unknown): string =>
  `${JSON.stringify(value).replace(/\\ud[89a-f]..|\\.|[<>&\u2028\u2029]/g, (text) => {
    if (text.startsWith('\\ud')) return '\\ufffd';
    if (text === '\\b') return '\\u0008';
    if (text === '\\f') return '\\u000c';
    return text.startsWith('\\') ? text : `\\u${text.charCodeAt(0).toString(16).padStart(4, '0')}`;
  })}\n`;
