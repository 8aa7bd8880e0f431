/** What programs know of nouns that they keep as they are written down: how a change of it looks in review. */
import { readFile, writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { environment } from '../../kit/sys/process.ts'
import { MANAGED, ROUTES } from '../../resources/index.ts'
import { definitionsText } from '../../tools/definitions.ts'

const file = new URL('definitions.json', import.meta.url)

test('the definitions are those that were reviewed', async () => {
  const text = definitionsText(MANAGED, ROUTES)
  if (environment()['UPDATE'] === '1') await writeFile(file, text)
  expect(text, 'the definitions have changed: read the difference, then run with UPDATE=1').toBe(
    await readFile(file, 'utf8'),
  )
})
