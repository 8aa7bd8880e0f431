/** Golden files of refusals: what each interface answers to a change, one line each. */
import { readFile, writeFile } from 'node:fs/promises'
import { expect } from 'vitest'
import { environment } from '../../kit/sys/process.ts'
import type { Reply } from './cloud.ts'

/** A change, and how REST and kubectl are asked for it. */
export type Line = readonly [
  what: string,
  rest: (() => Promise<string>) | undefined,
  kubectl: (() => Promise<string>) | undefined,
]

/** The status, and the words of a refusal with its fields. */
export function wordsOf({ status, body: { reason, detail, errors = [] } }: Reply): string {
  const fields = (errors as readonly { readonly field: string; readonly detail: string }[])
    .map(({ field, detail: why }) => ` [${field}: ${why}]`)
    .join('')
  return status < 300 ? `${status}` : `${status} ${reason ? `${reason}: ` : ''}${detail}${fields}`
}

const nameless = (text: string): string =>
  text.replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<id>')

/** Asks for every change, and compares the answers with the file of `test/golden/`. */
export async function expectGolden(name: string, changes: readonly Line[]): Promise<void> {
  const golden = new URL(`../golden/${name}`, import.meta.url)
  const lines: string[] = []
  for (const [what, rest, kubectl] of changes) {
    lines.push(`${what.trim()}`)
    if (rest !== undefined) lines.push(`  REST     ${nameless(await rest())}`)
    if (kubectl !== undefined) lines.push(`  kubectl  ${nameless(await kubectl())}`)
  }
  const text = `${lines.join('\n')}\n`
  if (environment()['UPDATE'] === '1') await writeFile(golden, text)
  expect(text).toBe(await readFile(golden, 'utf8'))
}
