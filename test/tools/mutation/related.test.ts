import { expect, test } from 'vitest'
import { testsFor } from '../../../tools/mutation/related.ts'

const imports = {
  of: new Map([
    ['test/domain/quota.test.ts', ['domain/quota.ts']],
    ['test/db/quotas.database.test.ts', ['db/quotas.ts']],
    ['test/domain/other.test.ts', ['domain/quota.ts', 'domain/other.ts']],
    ['test/kit/far.test.ts', ['kit/one.ts']],
    ['kit/one.ts', ['kit/two.ts']],
    ['kit/two.ts', ['domain/quota.ts']],
    ['db/quotas.ts', ['domain/quota.ts']],
  ]),
}
const tests = [...imports.of.keys()].filter((file) => file.startsWith('test/'))

test('the mirrored test is first, then the nearest, and none that is far away', () => {
  expect(testsFor('domain/quota.ts', tests, imports)).toEqual([
    'test/domain/quota.test.ts',
    'test/domain/other.test.ts',
    'test/db/quotas.database.test.ts',
  ])
})

test('a mirrored test needs no import, in every tier', () => {
  expect(testsFor('db/quotas.ts', tests, { of: new Map() })).toEqual(['test/db/quotas.database.test.ts'])
})

test('so many are enough', () => {
  const many = Array.from({ length: 20 }, (_, index) => `test/domain/t${index}.test.ts`)
  expect(testsFor('domain/a.ts', many, { of: new Map(many.map((file) => [file, ['domain/a.ts']])) })).toHaveLength(4)
})
