/**
 * Control characters (C0, DEL, C1), format characters (bidi controls, zero-width characters and others), lone surrogates, and line
 * and paragraph separators: a terminal obeys them, or a reader does not see them.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/**
 * Returns untrusted text as one line that is safe on a terminal and in a log: each unprintable character becomes `\uXXXX`, one
 * beyond U+FFFF becomes two of these. This is JSON's own form, so JSON keeps its meaning. A second call changes nothing.
 */
export const printable = (text: string): string => text.replace(UNPRINTABLE, escaped);

function escaped(character: string): string {
  let text = '';
  for (let at = 0; at < character.length; at += 1)
    text += `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`;
  return text;
}
