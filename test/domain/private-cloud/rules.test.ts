import { describe, expect, test } from 'vitest'
import {
  AMOUNTS_MAXIMUM,
  AMOUNTS_MINIMUM,
  gigabytesOf,
  NOTES_LENGTH_MAXIMUM,
  PRIVATE_CLOUD_STATES,
  requireAmounts,
  requireEnoughNodes,
  requireStep,
  type SpareNode,
} from '../../../domain/private-cloud/rules.ts'

const refusal = (work: () => void): string => {
  try {
    work()
    return ''
  } catch (error) {
    const { status, message } = error as { status: number; message: string }
    return `${status} ${message}`
  }
}

test.each([
  ['the least', AMOUNTS_MINIMUM, '', /^$/],
  ['the most', AMOUNTS_MAXIMUM, 'x'.repeat(NOTES_LENGTH_MAXIMUM), /^$/],
  ['fewer cores', { ...AMOUNTS_MINIMUM, vcpus: AMOUNTS_MINIMUM.vcpus - 1 }, '', /^422 vcpus/],
  ['more memory', { ...AMOUNTS_MAXIMUM, memoryGibibytes: AMOUNTS_MAXIMUM.memoryGibibytes + 1 }, '', /^422 memory_gib/],
  ['less disk', { ...AMOUNTS_MINIMUM, diskGigabytes: 0 }, '', /^422 disk_gigabytes/],
  ['a book', AMOUNTS_MINIMUM, 'x'.repeat(NOTES_LENGTH_MAXIMUM + 1), /^422 notes/],
])('%s', (_what, amounts, notes, expected) => {
  expect(refusal(() => requireAmounts(amounts, notes))).toMatch(expected)
})

test('a request goes its way and never back', () => {
  const steps = PRIVATE_CLOUD_STATES.flatMap((before) =>
    PRIVATE_CLOUD_STATES.flatMap((after) =>
      after !== 'open' && refusal(() => requireStep(before, after)) === '' ? [`${before} ${after}`] : [],
    ),
  )
  expect(steps).toEqual([
    'open in_review',
    'open declined',
    'open withdrawn',
    'in_review fulfilled',
    'in_review declined',
    'in_review withdrawn',
  ])
})

describe('nodes are given', () => {
  const wanted = { vcpus: 16, memoryGibibytes: 64, diskGigabytes: 500, region: 'eu-1' }
  const node = (of: Partial<SpareNode> = {}): SpareNode => ({
    id: 'n1',
    region: 'eu-1',
    cores: 8,
    memoryMebibytes: 32_768,
    storageGibibytes: 233,
    dedicatedAccountId: null,
    isEmpty: true,
    ...of,
  })
  const two = (of: Partial<SpareNode>) => [node(), node({ id: 'n2', ...of })]

  test.each([
    ['when they are large enough together', two({}), /^$/],
    ['not when one has too few cores', two({ cores: 7 }), /^409 .*vcpus 15 of 16/],
    ['not when one has a MiB too little', two({ memoryMebibytes: 32_767 }), /^409 .*memory_gibibytes 63 of 64/],
    ['not when one has too little disk', two({ storageGibibytes: 232 }), /^409 .*disk_gigabytes 499 of 500/],
    ['not when something is placed there', two({ isEmpty: false }), /^409 .*n2/],
    ['not when one is of an account already', two({ dedicatedAccountId: 'a' }), /^409 .*n2/],
    ['not in another region', two({ region: 'us-1' }), /^400 .*n2/],
  ])('%s', (_what, nodes, expected) => {
    expect(refusal(() => requireEnoughNodes(wanted, nodes))).toMatch(expected)
  })

  test('anywhere when no region was named', () => {
    expect(refusal(() => requireEnoughNodes({ ...wanted, region: null }, two({ region: 'us-1' })))).toBe('')
    expect(gigabytesOf(466)).toBe(500)
  })
})
