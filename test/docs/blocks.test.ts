/** Every block of the documentation says what it is, and every command is run by a test or says why not. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { blocksOf, CUSTOMER_GUIDES, OPERATOR_GUIDES, OTHER_GUIDES, ROOT } from './blocks.ts'

const LANGUAGES = ['sh', 'ts', 'json', 'yaml', 'text']
const REASON_WORDS_MINIMUM = 3

const pages = [
  'README.md',
  'CONTRIBUTING.md',
  ...(await readdir(join(ROOT, 'docs')))
    .filter((name) => name.endsWith('.md') && name !== 'cli-reference.md')
    .map((name) => `docs/${name}`),
].sort()
const blocks = (await Promise.all(pages.map(blocksOf))).flat()

test('every block names its language', () => {
  expect(blocks.length).toBeGreaterThan(30)
  expect(
    blocks
      .filter(({ language }) => !LANGUAGES.includes(language))
      .map(({ page, line, language }) => `${page}:${line} ${language}`),
  ).toEqual([])
})

test('every command is on a page that a test runs, or says why it is not run', () => {
  const run: readonly string[] = [...CUSTOMER_GUIDES, ...OPERATOR_GUIDES, ...OTHER_GUIDES]
  const commands = blocks.filter(({ language }) => language === 'sh')
  const reasons = commands
    .filter(({ reason }) => reason !== undefined)
    .map(({ page, line, reason = '' }) => ({ place: `${page}:${line}`, reason }))
  expect(
    commands
      .filter(({ page, reason }) => reason === undefined && !run.includes(page))
      .map(({ page, line }) => `${page}:${line}`),
  ).toEqual([])
  expect(reasons.filter(({ reason }) => reason.split(' ').length < REASON_WORDS_MINIMUM)).toEqual([])
  for (const { place, reason } of reasons) console.info(`not run: ${place}: ${reason}`)
})
