/** JSON of clients: parsed within a bound on its nesting, so that nothing behind it has to walk without end. */

/** Levels of objects and lists in a body. */
export const DEPTH_MAXIMUM = 100

/** The value of the text. Throws a SyntaxError for what is no JSON, a RangeError for JSON that is nested too deep. */
export function parseJson(text: string): unknown {
  if (isDeeper(text, DEPTH_MAXIMUM)) throw new RangeError(`JSON is nested deeper than ${DEPTH_MAXIMUM} levels`)
  return JSON.parse(text)
}

/** Counts brackets outside of strings; what else is wrong with the text does not matter. */
function isDeeper(text: string, maximum: number): boolean {
  let depth = 0
  let isInString = false
  for (let index = 0; index < text.length; index += 1) {
    const letter = text[index]
    if (isInString) {
      if (letter === '\\') index += 1
      else if (letter === '"') isInString = false
    } else if (letter === '"') isInString = true
    else if (letter === '{' || letter === '[') {
      depth += 1
      if (depth > maximum) return true
    } else if (letter === '}' || letter === ']') depth -= 1
  }
  return false
}
