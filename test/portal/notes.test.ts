/** Notes of fields come from the API in English; other languages translate each one that a form shows. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import bodies from '../../portal/generated/bodies.json' with { type: 'json' }
import { notes } from '../../portal/texts/de-notes.ts'

const PORTAL = join(import.meta.dirname, '../../portal')

interface Body {
  readonly properties?: Readonly<Record<string, { readonly description?: string }>>
}

/** Text of all pages of customers. */
async function pages(): Promise<string> {
  const folders = ['nouns', 'pages'].map((name) => join(PORTAL, name))
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

test('every note has a German one', async () => {
  const descriptions = await shown()
  expect(descriptions.size).toBeGreaterThan(0)
  expect([...descriptions].filter((description) => !Object.hasOwn(notes, description))).toEqual([])
})

test('every German note belongs to one', async () => {
  const descriptions = await shown()
  expect(Object.keys(notes).filter((description) => !descriptions.has(description))).toEqual([])
})
