import { expect, it } from 'vitest'
import { choose, formatRecord, PARTS, parseRecord, type Record, updated } from '../../../tools/test/record.ts'

const RECORD: Record = new Map([
  ['test/a.test.ts', [{ digest: 'a1', commit: 'c1', seconds: 12 }]],
  [
    'test/b.test.ts',
    [
      { digest: 'b1', commit: 'c1' },
      { digest: 'b2', commit: 'c2' },
    ],
  ],
])
const FILES = new Set(['test/a.test.ts', 'test/b.test.ts', 'test/c.test.ts'])

it('is written and read, a line for each file and digest in a fixed order', () => {
  const text = formatRecord(RECORD)
  expect(text.split('\n').slice(1)).toEqual([
    'test/a.test.ts a1 c1 12',
    'test/b.test.ts b1 c1',
    'test/b.test.ts b2 c2',
    '',
  ])
  expect(parseRecord(text)).toEqual(RECORD)
  expect(formatRecord(new Map([...RECORD].toReversed()))).toBe(text)
})

it('takes no line for one that is none', () =>
  expect(parseRecord('<<<<<<< main\ntest/a.test.ts a1 c1\ntest/a.test.ts\nnonsense here and there\n')).toEqual(
    new Map([['test/a.test.ts', [{ digest: 'a1', commit: 'c1' }]]]),
  ))

it.each([
  ['notes a green file', { file: 'test/c.test.ts', digest: 'd', isGreen: true, seconds: 7 }, ['test/c.test.ts', ['d']]],
  [
    'keeps nothing older of it',
    { file: 'test/b.test.ts', digest: 'b3', isGreen: true, seconds: 7 },
    ['test/b.test.ts', ['b3']],
  ],
  [
    'forgets a red file that was green',
    { file: 'test/a.test.ts', digest: 'a1', isGreen: false, seconds: 7 },
    ['test/a.test.ts', undefined],
  ],
  [
    'keeps what was green with others',
    { file: 'test/b.test.ts', digest: 'b2', isGreen: false, seconds: 7 },
    ['test/b.test.ts', ['b1']],
  ],
])('%s', (_what, shown, [file, digests]) => {
  const next = updated(RECORD, [shown], 'c9', FILES)
  expect(next.get(String(file))?.map(({ digest }) => digest)).toEqual(digests)
})

it('leaves out deleted files', () =>
  expect([...updated(RECORD, [], 'c9', new Set(['test/b.test.ts'])).keys()]).toEqual(['test/b.test.ts']))

const given = (file: string, digest: string, nameHash = '00000001') => ({ file, digest, nameHash })
/** Of other thirds than the names above. */
const COMMIT = '00000000ffff'

it.each([
  ['a file that was never green', given('test/c.test.ts', 'c1'), true, /not known to have been green/],
  ['a file with other inputs', given('test/a.test.ts', 'a2'), true, /\(a2\) have changed since it was green at c1/],
  ['no file with the same', given('test/a.test.ts', 'a1'), false, /\(a1\) are as they were when it was green at c1$/],
  ['no file that another branch saw green', given('test/b.test.ts', 'b1'), false, /green at c1$/],
  ['a file with the same of this third', given('test/a.test.ts', 'a1', '00000003'), true, /of the third that runs/],
])('runs %s, and says why', (_what, file, isRun, reason) =>
  expect(choose([file], RECORD, COMMIT)).toEqual([
    expect.objectContaining({ file: file.file, isRun, reason: expect.stringMatching(reason) }),
  ]),
)

it('runs every file once by commits of all thirds', () => {
  const files = Array.from({ length: 30 }, (_, index) => {
    const nameHash = (index * 7919).toString(16).padStart(8, '0')
    return given(`test/${index}.test.ts`, 'd', nameHash)
  })
  const record = new Map(files.map(({ file }) => [file, [{ digest: 'd', commit: 'c' }]]))
  const runs = Array.from({ length: PARTS }, (_, part) =>
    choose(files, record, `0000000${part}`)
      .filter(({ isRun }) => isRun)
      .map(({ file }) => file),
  )
  expect(runs.flat().toSorted()).toEqual(files.map(({ file }) => file).toSorted())
  for (const run of runs) expect(run.length).toBe(10)
})

it('knows how long a file took, also with other inputs, and takes the changed ones first', () => {
  const files = [
    given('test/a.test.ts', 'a1', '00000003'),
    given('test/a.test.ts', 'a2'),
    given('test/b.test.ts', 'b3'),
  ]
  const choices = choose(files, RECORD, COMMIT)
  expect(choices.map(({ seconds }) => seconds)).toEqual([12, 12, undefined])
  const order = choices.toSorted((a, b) => a.turn.localeCompare(b.turn))
  expect(order.at(-1)?.file).toBe('test/a.test.ts')
  expect(order.at(-1)?.reason).toMatch('are as they were')
})

it('gives files another order with another commit', () => {
  const files = Array.from({ length: 9 }, (_, index) => given(`test/${index}.test.ts`, 'd', `0000000${index}`))
  const orders = ['c1', 'c2', 'c3'].map((commit) =>
    choose(files, new Map(), commit)
      .toSorted((a, b) => a.turn.localeCompare(b.turn))
      .map(({ file }) => file)
      .join(' '),
  )
  expect(new Set(orders).size).toBe(3)
})
