/** JSON from clients, parsed with a limit on its nesting, so that the recursion of later code is bounded. */

/** Levels of objects and lists in a body. */
export const DEPTH_MAXIMUM = 100

/** The value of the text. Throws a SyntaxError for invalid JSON, a RangeError for JSON that is nested too deep. */
export function parseJson(text: string): unknown {
  if (isDeeper(text, DEPTH_MAXIMUM)) throw new RangeError(`JSON is nested deeper than ${DEPTH_MAXIMUM} levels`)
  return JSON.parse(text)
}

/** The value of the text; undefined for invalid JSON. For texts of bounded length whose value a schema judges. */
export function tryJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Counts brackets outside of strings; other errors in the text do not matter here. */
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
