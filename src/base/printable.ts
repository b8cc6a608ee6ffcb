/**
 * Characters that a terminal interprets or a reader cannot see: control characters (C0, DEL, C1), format characters (such as bidi
 * controls and zero-width characters), lone surrogates, line and paragraph separators, and what Unicode has reserved for further
 * characters that nobody sees.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u2065\ufff0-\ufff8\u{e0000}-\u{e00ff}\u{e01f0}-\u{e0fff}]/gu;

/**
 * Returns untrusted text as one line that is safe on a terminal and in a log: each unprintable character becomes `\uXXXX`, or
 * two of these if it is beyond U+FFFF. JSON uses the same escapes, so JSON text keeps its meaning. A second call changes nothing.
 */
export const printable = (text: string): string => text.replace(UNPRINTABLE, escaped);

function escaped(character: string): string {
  let text = '';
  for (let at = 0; at < character.length; at += 1)
    text += `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`;
  return text;
}
