import { describe, expect, test } from 'vitest'
import { largestNodes, summariseCapacity } from '../../../domain/zone/capacity.ts'
import type { Candidate, Room } from '../../../domain/node/placement.ts'

const room = (cores: number): Room => ({ cores, memoryMebibytes: cores * 1_024, storageGibibytes: cores * 10 })
const node = (name: string, total: number, used = 0, changes: Partial<Candidate> = {}): Candidate => ({
  node: name,
  zone: 'z',
  rack: 'r',
  cpuPool: null,
  dedicatedAccountId: null,
  isSchedulable: true,
  total: room(total),
  used: room(used),
  ...changes,
})
const plans = [
  { name: 'small', ...room(1) },
  { name: 'large', ...room(4) },
  { name: 'fast', ...room(8), cpuPool: 'fast' },
]
const nobody = () => []
const guests =
  (...cores: number[]) =>
  (name: string) =>
    name === 'n1' ? cores.map((each, index) => ({ serverId: `s${index}`, accountId: 'a', room: room(each) })) : []
const headroom = (nodes: readonly Candidate[], guestsOf: Parameters<typeof summariseCapacity>[2]) =>
  summariseCapacity(nodes, plans, guestsOf).map(({ hasHaHeadroom }) => hasHaHeadroom)

/** On n1, kept apart from one that is on n2. */
const apart = (isStrict: boolean) => (name: string) =>
  name === 'n1'
    ? [
        {
          serverId: 's',
          accountId: 'a',
          room: room(1),
          group: { spread: 'host' as const, isStrict, others: [{ serverId: 't', node: 'n2', zone: 'z', rack: 'r' }] },
        },
      ]
    : []

describe('capacity', () => {
  test('is summed by zone and pool, in the order of their names', () => {
    const nodes = [
      node('n3', 8, 0, { zone: 'y', cpuPool: 'fast' }),
      node('n1', 4, 1),
      node('n2', 8, 2),
      node('n4', 2, 0, { zone: 'y' }),
    ]
    expect(
      summariseCapacity(nodes, plans, nobody).map(
        ({ zone, cpuPool, nodeCount, vcpus, vcpusUsed, memoryMebibytes, memoryUsedMebibytes }) => [
          zone,
          cpuPool,
          nodeCount,
          vcpus,
          vcpusUsed,
          memoryMebibytes,
          memoryUsedMebibytes,
        ],
      ),
    ).toEqual([
      ['y', null, 1, 2, 0, 2_048, 0],
      ['y', 'fast', 1, 8, 0, 8_192, 0],
      ['z', null, 2, 12, 3, 12_288, 3_072],
    ])
  })
  test.each([
    ['the largest plan that fits one node', [node('n1', 4), node('n2', 2)], 'large'],
    ['never one that only fits two', [node('n1', 3), node('n2', 3)], 'small'],
    ['none when all is full', [node('n1', 4, 4)], null],
    ['none on closed nodes', [node('n1', 4, 0, { isSchedulable: false })], null],
    ['that of the pool', [node('n1', 8, 0, { cpuPool: 'fast' })], 'fast'],
  ] as const)('names %s', (_why, nodes, plan) =>
    expect(summariseCapacity(nodes, plans, nobody)[0]?.largestPlaceablePlan).toBe(plan),
  )

  test.each([
    ['of most memory', { cores: 1, memoryMebibytes: 2_048, storageGibibytes: 1 }],
    ['then of most cores', { cores: 3, memoryMebibytes: 1_024, storageGibibytes: 1 }],
    ['then of most storage', { cores: 2, memoryMebibytes: 1_024, storageGibibytes: 30 }],
  ])('the largest plan is the one %s', (_what, size) => {
    const offered = [
      { name: 'a', cores: 2, memoryMebibytes: 1_024, storageGibibytes: 20 },
      { name: 'wanted', ...size },
      { name: 'b', cores: 2, memoryMebibytes: 1_024, storageGibibytes: 20 },
    ]
    expect(summariseCapacity([node('n1', 8)], offered, nobody)[0]?.largestPlaceablePlan).toBe('wanted')
  })
  test('of plans of one size the first by name is named', () => {
    const offered = ['c', 'a', 'b'].map((name) => ({ name, ...room(2) }))
    expect(summariseCapacity([node('n1', 8)], offered, nobody)[0]?.largestPlaceablePlan).toBe('a')
  })
  test('of nodes of one size and load the first by name is reckoned with', () =>
    expect(largestNodes([node('n2', 4, 1), node('n1', 4, 1), node('n3', 4, 1)])).toEqual(['n1']))

  test('reckons with the loss of the largest node of each zone and pool, of equals the fullest', () =>
    expect(
      largestNodes([
        node('n1', 4, 1),
        node('n2', 4, 2),
        node('n3', 2, 2),
        node('n4', 1, 0, { cpuPool: 'fast' }),
        node('n5', 1, 0, { zone: 'y' }),
      ]),
    ).toEqual(['n2', 'n4', 'n5']))
  test.each([
    ['one node alone has none', [node('n1', 4)], guests(1), [false]],
    ['two nodes, and room for the guests of the largest', [node('n1', 4, 2), node('n2', 3)], guests(1, 1), [true]],
    ['no room for one of them', [node('n1', 4, 4), node('n2', 3)], guests(2, 2), [false]],
    ['room in pieces that no guest fits', [node('n1', 4, 3), node('n2', 2), node('n3', 2)], guests(3), [false]],
    ['a closed node is no room', [node('n1', 4, 1), node('n2', 4, 0, { isSchedulable: false })], guests(1), [false]],
    ['nodes that a strict group forbids are no room', [node('n1', 4, 1), node('n2', 3)], apart(true), [false]],
    ['a soft group forbids nothing', [node('n1', 4, 1), node('n2', 3)], apart(false), [true]],
    ['the smaller node counts for nothing', [node('n1', 2, 2), node('n2', 8)], guests(2), [true]],
  ] as const)('headroom: %s', (_why, nodes, guestsOf, expected) => expect(headroom(nodes, guestsOf)).toEqual(expected))
})
