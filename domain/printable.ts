/** Texts from elsewhere, made safe for a terminal: nothing in them moves the cursor, changes colours, or shows text in
 *  another order. */

/** C0 except for tab and line feed, DEL, C1, separators of lines and paragraphs, and characters that change the
 *  direction. */
const UNPRINTABLE =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/g

/** The text with each of these characters escaped as in JSON (`\u001b`): JSON stays the same JSON. A carriage return
 *  before a line feed stays. */
export const printable = (text: string): string =>
  text.replace(UNPRINTABLE, (character, at: number) =>
    character === '\r' && text[at + 1] === '\n'
      ? character
      : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
