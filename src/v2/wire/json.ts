export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Parses a JSON object. Returns undefined for any other text. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Encodes JSON as etcd does: characters special in HTML or JavaScript, backspace and form feed become `\u` escapes. Each byte that is
 * not UTF-8 becomes the escape of U+FFFD; `JSON.stringify` escapes it as a lone surrogate.
 */
export const jsonText = (value: unknown): string =>
  JSON.stringify(value).replace(/\\ud[89a-f]..|\\.|[<>&\u2028\u2029]/g, (text) => {
    if (text.startsWith('\\ud')) return '\\ufffd';
    if (text === '\\b') return '\\u0008';
    if (text === '\\f') return '\\u000c';
    return text.startsWith('\\') ? text : `\\u${text.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });

/** Encodes a body exactly as etcd does: with a line break at its end. */
export const etcdJson = (value: unknown): string => `${jsonText(value)}\n`;
