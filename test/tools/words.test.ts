/** The words that people do not read, in pages and in the sentences of the product. */
import { describe, expect, it } from 'vitest'
import { documentFindings, findings } from '../../tools/tidy.ts'

const rulesOfCode = (source: string) => findings('domain/account/quota.ts', source).map(({ rule }) => rule)
const rulesOfPage = (file: string, source: string) => documentFindings(file, source).map(({ rule }) => rule)

describe('a sentence of the product', () => {
  it.each([
    [`throw new Error('The server is not there any more.')`, 'plain English: not "any more" but no longer'],
    [`const note = 'nothing ' + 'leads to it'`, 'plain English: not "leads to" but points to, is assigned to, reaches'],
    ['const note = `${name} shall leave`', 'plain English: not "shall" but must, is to'],
    [
      `const note = 'the agent is told'`,
      'plain English: not "is told" but is configured with, is reported to, receives',
    ],
  ])('%s', (source, rule) => expect(rulesOfCode(source)).toEqual([rule]))

  it.each([
    `import { open } from './door.ts'`,
    `const shall = values.filter((each) => each === 'shall')`,
    `const note = 'The server no longer exists.'`,
    `// a server of its own zone`,
    '// what `shall` means',
  ])('may be beside: %s', (source) => expect(rulesOfCode(source)).toEqual([]))
})

describe('a comment', () => {
  const rulesIn = (file: string, source: string) => findings(file, source).map(({ line, rule }) => [line, rule])
  it.each(['domain/account/quota.ts', 'tools/tidy.ts', 'test/domain/account/quota.test.ts'])('in %s', (file) =>
    expect(rulesIn(file, `\n/** It has a user of its own, and is not there any\n *  more. */\n`)).toEqual([
      [2, 'plain English: not "any more" but no longer'],
      [2, 'plain English: not "of its own" but its own, a separate'],
    ]),
  )
})

describe('a title of a test', () => {
  const rulesIn = (source: string) => findings('test/domain/account/quota.test.ts', source).map(({ rule }) => rule)
  it.each([
    "it('shall be short', check)",
    "test.each(cases)('shall be %s', check)",
    "describe('what shall be', () => {})",
  ])('%s', (source) => expect(rulesIn(source)).toEqual(['plain English: not "shall" but must, is to']))

  it('is not what a test compares', () =>
    expect(rulesIn("expect(await answer('what shall be')).toBe('it shall be')")).toEqual([]))
})

describe('a page', () => {
  it('has the words of the field', () =>
    expect(rulesOfPage('docs/a.md', 'The\ndata lies in a folder.\n')).toEqual([
      'plain English: not "lies in" but is in, is on',
    ]))
  it.each([
    ['docs/a.md', 'The test is in `equal-doors.ts`.\n'],
    ['docs/a.md', '```\nwhat it shall be\n```\n'],
    ['docs/decisions/0001-a.md', 'What it shall be.\n'],
  ])('%s may say %j', (file, source) => expect(rulesOfPage(file, source)).toEqual([]))
})

it('keeps the sentences of the list of changes short', () => {
  const words = (count: number) => Array.from({ length: count }, () => 'w').join(' ')
  const page = `# Changelog\n\n- ${words(25)}. W\n  ${words(24)}.\n- One.\n- ${words(20)}\n  ${words(6)}.\n`
  expect(documentFindings('CHANGELOG.md', page).map(({ line, rule }) => [line, rule])).toEqual([
    [6, 'a sentence has at most 25 words, not 26'],
  ])
})
