/** The manifest of a dry run as YAML, for kubectl. Pure. */

/** Words that YAML reads as something else, in any of its versions. */
const OTHER_MEANING = /^(?:y|n|yes|no|on|off|true|false|null|~)$/i
const PLAIN = /^[a-z](?:[\w./-]*[\w/])?$/i

const scalar = (value: unknown): string =>
  typeof value === 'string' && PLAIN.test(value) && !OTHER_MEANING.test(value)
    ? value
    : // texts of JSON are texts of YAML, and are one line: no text ends the document that a shell reads
      JSON.stringify(value)

const isNested = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && Object.keys(value).length > 0

/** Lines of a value, without those that a parent puts before them. */
function lines(value: object): readonly string[] {
  const isList = Array.isArray(value)
  return Object.entries(value).flatMap(([key, member]: [string, unknown]) => {
    const head = isList ? '-' : `${scalar(key)}:`
    if (!isNested(member)) return [`${head} ${scalar(member)}`]
    const nested = lines(member)
    // what belongs to an item of a list begins beside its dash
    return isList ? nested.map((line, at) => (at === 0 ? `- ${line}` : `  ${line}`)) : [head, ...nested.map(indented)]
  })
}
const indented = (line: string): string => `  ${line}`

export const yamlOf = (manifest: object): string => lines(manifest).join('\n')

/** What a shell reads. */
export const applyLine = (manifest: object): string => `kubectl apply -f - <<'EOF'\n${yamlOf(manifest)}\nEOF`
