/** A language for tests: letters with marks, a third longer, in brackets. A text that stays plain is not from the
 *  catalogue; one that is cut off does not fit. */

const MARKED: Readonly<Record<string, string>> = { a: 'á', e: 'é', i: 'í', o: 'ó', u: 'ú', A: 'Á', E: 'É', O: 'Ó' }

export const marked = (text: string): string =>
  text === ''
    ? ''
    : `[${text.replace(/[aeiouAEO]/g, (letter) => MARKED[letter] ?? letter)}${'·'.repeat(Math.ceil(text.length / 3))}]`

/** The same catalogue with every text marked, those of functions too. */
export function pseudo<Catalogue>(texts: Catalogue): Catalogue {
  return mark(texts) as Catalogue // the same shape
}

function mark(value: unknown): unknown {
  if (typeof value === 'string') return marked(value)
  if (typeof value === 'function') return (...inputs: readonly unknown[]) => mark(value(...inputs))
  if (Array.isArray(value)) return value.map(mark)
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, mark(member)]))
  return value
}
