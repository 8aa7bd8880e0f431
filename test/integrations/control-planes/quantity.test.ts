import { expect, test } from 'vitest'
import { parseQuantity } from '../../../integrations/control-planes/quantity.ts'

test.each([
  ['1', 1],
  ['250m', 0.25],
  ['1.5', 1.5],
  ['.5Gi', 2 ** 29],
  ['128Mi', 2 ** 27],
  ['1e3', 1_000],
  ['2E', 2e18],
  ['12k', 12_000],
  ['100n', 1e-7],
])('%s is %d', (text, amount) => {
  expect(parseQuantity(text)).toBeCloseTo(amount, 9)
})

test.each(['', 'x', '1x', '1 Gi', 'Gi'])('%j is none', (text) => {
  expect(() => parseQuantity(text)).toThrow('is no quantity')
})
