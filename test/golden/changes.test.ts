/** The page of changes is what the registrations of nouns make, and says something of every noun. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { MANAGED } from '../../resources/index.ts'
import { changesPage } from '../../tools/changes-page.ts'
import { CHANGES_PAGE } from '../../tools/generate.ts'

test('docs/changing.md is what the registrations make: npm run generate', async () => {
  const page = await readFile(join(import.meta.dirname, '../..', CHANGES_PAGE), 'utf8')
  expect(changesPage()).toBe(page)
  expect(page.match(/^## /gm)).toHaveLength(MANAGED.length)
})
