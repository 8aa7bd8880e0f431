import { expect, test } from 'vitest'
import { mutantsOf } from '../../../tools/mutation/operators.ts'
import { mutantKey, mergeScores, type Outcome, scoreOfFile } from '../../../tools/mutation/score.ts'

const SOURCE = 'export const a = 1\nexport const b = 2\n'
const mutants = mutantsOf('a.ts', SOURCE)
const judged = (...outcomes: readonly Outcome[]) =>
  outcomes.map((outcome, index) => ({ mutant: mutants[index]!, key: `${index}`, outcome })) // two literals, two mutants

test('what hangs is noticed, what no test reaches is not', () => {
  expect(scoreOfFile(SOURCE, 2, judged('killed', 'timeout'))).toEqual({
    mutants: 2,
    judged: 2,
    killed: 2,
    survivors: [],
  })
  expect(scoreOfFile(SOURCE, 2, judged('untested', 'survived'))).toEqual({
    mutants: 2,
    judged: 2,
    killed: 0,
    survivors: [
      { line: 1, operator: 'number', source: 'export const a = 1', from: '1', to: '2' },
      { line: 2, operator: 'number', source: 'export const b = 2', from: '2', to: '3' },
    ],
  })
})

test('a run takes the place of what was known of its files, and files that are no more go', () => {
  const file = (killed: number) => ({ mutants: 10, judged: 5, killed, survivors: [] })
  const before = mergeScores(
    undefined,
    { 'b.ts': file(1), 'gone.ts': file(1), 'a.ts': file(1) },
    { seed: 1, exists: () => true },
  )
  expect([before.percent, before.killed, before.judged, before.mutants]).toEqual([20, 3, 15, 30])
  const after = mergeScores(before, { 'b.ts': file(4) }, { seed: 2, exists: (name) => name !== 'gone.ts' })
  expect(after).toEqual({
    seed: 2,
    percent: 50,
    mutants: 20,
    judged: 10,
    killed: 5,
    files: { 'a.ts': file(1), 'b.ts': file(4) },
  })
  expect(Object.keys(after.files)).toEqual(['a.ts', 'b.ts'])
  expect(mergeScores(undefined, {}, { seed: 1, exists: () => true }).percent).toBe(0)
})

test('a mutant is known again until its source or its tests change', () => {
  const [mutant] = mutants
  const key = mutantKey(mutant!, SOURCE, 'tests') // there are two
  expect(mutantKey({ ...mutant! }, SOURCE, 'tests')).toBe(key)
  for (const other of [
    mutantKey(mutants[1]!, SOURCE, 'tests'),
    mutantKey(mutant!, `${SOURCE} `, 'tests'),
    mutantKey(mutant!, SOURCE, ''),
  ])
    expect(other).not.toBe(key)
})
