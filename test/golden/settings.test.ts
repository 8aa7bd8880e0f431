/** The page of settings is what the processes' schemas make, and no process is left out. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { SETTINGS_PAGE } from '../../tools/generate.ts'
import { PROCESSES, settingsPage } from '../../tools/settings-page.ts'

const ROOT = join(import.meta.dirname, '../..')
const FOLDERS = ['addons', 'agents', 'apiserver', 'controllers', 'db', 'embedded', 'hosting']

test('docs/settings.md is what the schemas make: npm run generate', async () => {
  expect(settingsPage()).toBe(await readFile(join(ROOT, SETTINGS_PAGE), 'utf8'))
})

test('every process that starts with settings is on the page', async () => {
  const files = await Promise.all(
    FOLDERS.map(async (folder) =>
      (await readdir(join(ROOT, folder), { recursive: true }))
        .filter((file) => file.endsWith('.ts'))
        .map((file) => join(ROOT, folder, file)),
    ),
  )
  const sources = await Promise.all(files.flat().map((file) => readFile(file, 'utf8')))
  const read = sources.flatMap((text) =>
    [...text.matchAll(/(?:startProcess\('[a-z-]+', |settingsIn\()(\w+)/g)].map(([, schema = '']) => schema),
  )
  expect(read).toHaveLength(PROCESSES.length)
  const page = await readFile(join(ROOT, 'tools/settings-page.ts'), 'utf8')
  expect(read.filter((schema) => !new RegExp(`schema: ${schema}\\b`).test(page))).toEqual([])
})
