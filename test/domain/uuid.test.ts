import { expect, test } from 'vitest'
import { isUuid } from '../../domain/uuid.ts'

test.each([
  ['00000000-0000-4000-8000-00000000000a', true],
  ['00000000-0000-4000-8000-00000000000A', true],
  ['00000000-0000-4000-8000-00000000000', false],
  ['00000000-0000-4000-8000-00000000000ab', false],
  ['g0000000-0000-4000-8000-000000000000', false],
  ['00000000000040008000000000000000', false],
  ['', false],
])('%j is a UUID: %s', (text, expected) => expect(isUuid(text)).toBe(expected))
