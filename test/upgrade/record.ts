/** Writes `test/upgrade/statements.jsonl`: what a release asks of its database. At the tag of the release, and with the
 *  files that say most:
 *
 *    SVCCLOUD_TEST_STATEMENTS=/tmp/recorded npx vitest run --project database test/db test/apiserver test/controllers
 *    node test/upgrade/record.ts /tmp/recorded */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Statements that differ in the number of their rows or parameters only are one. */
const shapeOf = (statement: string): string => {
  const plain = statement.replace(/\s+/g, ' ').replace(/\$\d+/g, '$')
  return plain.replace(/(\((?:\$|default|, |::[a-z]+(?:\[\])?)+\))(, \1)+/g, '$1').replace(/\$(, \$)+/g, '$')
}
const ASKED = /^(select|insert|update|delete|with)\b/i
/** What many ask is read at once, by statements that are made of these later. */
const isPart = (statement: string): boolean => / "wanted"\./.test(statement) && !/as "wanted"/.test(statement)
const CHARACTERS_MAXIMUM = 4_000

const [file = ''] = process.argv.slice(2)
const lines = (await readFile(file, 'utf8')).split('\n').filter((line) => line !== '')
const shapes = new Map<string, string>()
for (const line of lines) {
  const statement = (JSON.parse(line) as string).replace(/--.*$/gm, '').replace(/\s+/g, ' ').trim()
  const shape = shapeOf(statement)
  const known = shapes.get(shape)
  if (!ASKED.test(statement) || isPart(statement) || statement.length > CHARACTERS_MAXIMUM) continue
  if (known === undefined || statement.length < known.length) shapes.set(shape, statement)
}
const statements = [...shapes.values()].toSorted().map((statement) => JSON.stringify(statement))
await writeFile(join(import.meta.dirname, 'statements.jsonl'), `${statements.join('\n')}\n`)
