import { expect, test } from 'vitest'
import { closest, noSuch } from '../../domain/suggestion.ts'

const ZONES = ['eu-1a', 'eu-1b', 'us-1a']

test.each([
  ['eu1a', 'eu-1a'],
  ['EU-1B', 'eu-1b'],
  ['eu-a1', 'eu-1a'],
  ['moon', undefined],
  ['', undefined],
])('%j is closest to %j', (text, expected) => expect(closest(text, ZONES)).toBe(expected))

test('a refusal says what was meant and what there is, and never more than a few names', () => {
  expect(noSuch('zone', 'eu1a', ZONES)).toBe(
    'there is no zone eu1a; did you mean eu-1a? (there are eu-1a, eu-1b, us-1a)',
  )
  expect(noSuch('zone', 'moon', ZONES)).toBe('there is no zone moon; there are eu-1a, eu-1b, us-1a')
  expect(noSuch('zone', 'moon', [])).toBe('there is no zone moon; there are none')
  const many = Array.from({ length: 80 }, (_, at) => `zone-${at}`)
  expect(noSuch('zone', 'moon', many)).toMatch(/zone-49, …$/)
})
