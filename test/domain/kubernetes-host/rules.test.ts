import { expect, test } from 'vitest'
import { clustersCapacity } from '../../../domain/kubernetes-host/rules.ts'

test.each([
  ['what is free, in whole clusters', { memoryBytes: 10, reservedBytes: 2 }, 1, 3],
  ['nothing is free', { memoryBytes: 10, reservedBytes: 9 }, 3, 3],
  ['more is given than there is, after memory was taken away', { memoryBytes: 5, reservedBytes: 9 }, 3, 3],
])('%s', (_, memory, hosted, expected) => {
  expect(clustersCapacity(memory, hosted, 3)).toBe(expected)
})
