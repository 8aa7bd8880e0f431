/** What REST refuses, as lines of a table: status, reason, field and sentence. */
import type { Person, Reply } from './cloud.ts'

/** What is asked for, in words, and how. Ids in paths and bodies are the names of the test. */
export type Asked = readonly [what: string, method: string, path: string, body?: object]

export const refusalOf = ({ status, body }: Reply): string => {
  const fields = ((body['errors'] ?? []) as readonly { readonly field: string }[]).map(({ field }) => `(${field})`)
  const detail: unknown = body['detail']
  return [status, body['reason'], ...fields, detail].filter((part) => part !== undefined).join(' ')
}

/** `ids` are those of the names. */
export const naming = (ids: Readonly<Record<string, string>>) => ({
  path: (path: string): string => path.replaceAll(/:(\w+)/g, (_match, name: string) => ids[name] ?? name),
  body: (body: object): object =>
    JSON.parse(JSON.stringify(body), (key, value) =>
      typeof value === 'string' && key !== 'name' ? (ids[value] ?? value) : value,
    ),
  /** The names instead of the ids. */
  plain: (text: string): string =>
    Object.entries(ids).reduce((known, [name, id]) => (id === '' ? known : known.replaceAll(id, `:${name}`)), text),
})

/** Asks for all of it in order. Answers what is said of each. */
export async function refusals(
  person: Person,
  ids: Readonly<Record<string, string>>,
  asked: readonly Asked[],
): Promise<readonly string[]> {
  const { path, body, plain } = naming(ids)
  const lines: string[] = []
  for (const [what, method, at, sent] of asked) {
    const reply = await person.send(method, path(at), sent === undefined ? {} : { body: body(sent) })
    lines.push(plain(`${what}: ${refusalOf(reply)}`))
  }
  return lines
}
