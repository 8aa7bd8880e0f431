/** Notes of fields come from the API in English; other languages translate each one that a form shows. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import bodies from '../../portal/generated/bodies.json' with { type: 'json' }
import operatorBodies from '../../portal/generated/operator-bodies.json' with { type: 'json' }
import { operatorNotes } from '../../portal/operator/texts/de-notes.ts'
import { notes } from '../../portal/texts/de-notes.ts'

const PORTAL = join(import.meta.dirname, '../../portal')

interface Body {
  readonly properties?: Readonly<Record<string, Field>>
}

interface Field extends Body {
  readonly description?: string
  readonly anyOf?: readonly Body[]
}

/** Text of all pages in the folders; those of customers unless others are named. */
async function pages(...names: readonly string[]): Promise<string> {
  const folders = (names.length === 0 ? ['nouns', 'pages'] : names).map((name) => join(PORTAL, name))
  const entries = await Promise.all(folders.map((path) => readdir(path, { recursive: true, withFileTypes: true })))
  const files = entries.flat().filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
  return (await Promise.all(files.map(({ parentPath, name }) => readFile(join(parentPath, name), 'utf8')))).join('\n')
}

/** Descriptions of the fields that some form names, of operations that some page names. */
async function shown(): Promise<ReadonlySet<string>> {
  const text = await pages()
  const fields = new Set(['name', 'title', ...Array.from(text.matchAll(/\bname: '([a-z0-9_]+)'/g), ([, name]) => name)])
  const operations = Object.entries(bodies as Readonly<Record<string, Body>>).filter(([id]) => text.includes(`'${id}'`))
  return new Set(
    operations.flatMap(([, { properties = {} }]) =>
      Object.entries(properties).flatMap(([name, { description }]) =>
        fields.has(name) && description !== undefined ? [description] : [],
      ),
    ),
  )
}

/** Descriptions of the fields of operators that some form of theirs names, also in objects. */
async function shownToOperators(): Promise<ReadonlySet<string>> {
  const text = await pages('operator')
  const names = new Set(Array.from(text.matchAll(/\bname: '([a-z0-9_.]+)'/g), ([, name = '']) => name))
  const found = new Set<string>()
  const look = (properties: Body['properties'] = {}, before = ''): void => {
    for (const [name, { description, ...inner }] of Object.entries(properties)) {
      if (names.has(before + name) && description !== undefined) found.add(description)
      for (const each of [inner, ...(inner.anyOf ?? [])]) look(each.properties, `${before}${name}.`)
    }
  }
  for (const [id, { properties }] of Object.entries(operatorBodies as Readonly<Record<string, Body>>))
    if (text.includes(`'${id}'`)) look(properties)
  return found
}

test('every note of operators has a German one, and every German one belongs to one', async () => {
  const descriptions = await shownToOperators()
  expect(descriptions.size).toBeGreaterThan(0)
  const all = { ...notes, ...operatorNotes }
  expect([...descriptions].filter((description) => !Object.hasOwn(all, description))).toEqual([])
  expect(Object.keys(operatorNotes).filter((description) => !descriptions.has(description))).toEqual([])
})

test('every note has a German one', async () => {
  const descriptions = await shown()
  expect(descriptions.size).toBeGreaterThan(0)
  expect([...descriptions].filter((description) => !Object.hasOwn(notes, description))).toEqual([])
})

test('every German note belongs to one', async () => {
  const descriptions = await shown()
  expect(Object.keys(notes).filter((description) => !descriptions.has(description))).toEqual([])
})
