/** Suggestions for a typed name that does not exist. */

/** Maximum of names that a refusal lists; more would not help. */
const LISTED_MAXIMUM = 50

/** The name that is closest to the text; undefined when none is close. */
export function closest(text: string, names: readonly string[]): string | undefined {
  const wanted = text.toLowerCase()
  const ranked = names
    .map((name) => ({ name, distance: distanceOf(wanted, name.toLowerCase()) }))
    .filter(({ name, distance }) => distance <= Math.max(1, Math.floor(Math.min(name.length, text.length) / 3)))
    .sort((one, other) => one.distance - other.distance)
  return ranked[0]?.name
}

/** `, did you mean X?` or nothing, for the end of a refusal. */
export function didYouMean(text: string, names: readonly string[]): string {
  const name = closest(text, names)
  return name === undefined ? '' : `; did you mean ${name}?`
}

/** The names in a sentence, bounded. */
export const listed = (names: readonly string[]): string =>
  names.length > LISTED_MAXIMUM ? `${names.slice(0, LISTED_MAXIMUM).join(', ')}, …` : names.join(', ')

/** Why a name of the catalogue is refused, as a phrase that follows the name of a field, with the available names. */
export function noSuch(what: string, text: string, names: readonly string[]): string {
  const suggestion = didYouMean(text, names)
  const others = names.length === 0 ? 'there are none' : `there are ${listed(names)}`
  return `there is no ${what} ${text}${suggestion === '' ? `; ${others}` : `${suggestion} (${others})`}`
}

/** Number of insertions, deletions, replacements and swaps of neighbours between the texts. */
function distanceOf(one: string, other: string): number {
  let [beforeLast, last]: readonly [number[], number[]] = [[], Array.from({ length: other.length + 1 }, (_, at) => at)]
  for (let row = 1; row <= one.length; row += 1) {
    const current = [row]
    for (let column = 1; column <= other.length; column += 1) {
      const isSame = one[row - 1] === other[column - 1]
      const isSwapped =
        row > 1 && column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1]
      current.push(
        Math.min(
          (last[column] ?? 0) + 1,
          (current[column - 1] ?? 0) + 1,
          (last[column - 1] ?? 0) + (isSame ? 0 : 1),
          isSwapped ? (beforeLast[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
        ),
      )
    }
    ;[beforeLast, last] = [last, current]
  }
  return last[other.length] ?? 0
}
