import { expect, it } from 'vitest'
import { defined } from '../../domain/defined.ts'

it('leaves out what is undefined, and nothing else', () => {
  const fields = defined({ a: 1, b: undefined, c: null, d: '', e: 0, f: false })
  expect(Object.entries(fields)).toEqual([
    ['a', 1],
    ['c', null],
    ['d', ''],
    ['e', 0],
    ['f', false],
  ])
})
