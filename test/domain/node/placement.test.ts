import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Apartness,
  type Candidate,
  canHold,
  remainingRoom,
  largest,
  times,
  type Demand,
  offeredRoom,
  type Place,
  rankNodes,
  sharesDomain,
  SPREADS,
  unmetMembers,
} from '../../../domain/node/placement.ts'

const room = (cores: number, memoryMebibytes = cores * 1_024, storageGibibytes = cores * 10) => ({
  cores,
  memoryMebibytes,
  storageGibibytes,
})
const node = (changes: Partial<Candidate> = {}): Candidate => ({
  node: 'a',
  zone: 'z1',
  rack: 'r1',
  cpuPool: null,
  dedicatedAccountId: null,
  isSchedulable: true,
  total: room(8),
  used: room(0),
  ...changes,
})
const demand = (changes: Partial<Demand> = {}): Demand => ({ accountId: 'mine', zone: 'z1', ...room(2), ...changes })
const names = (nodes: readonly Candidate[]) => nodes.map((candidate) => candidate.node)

describe('a node is not chosen', () => {
  test.each([
    ['in another zone', node({ zone: 'z2' }), demand()],
    ['that takes nothing new', node({ isSchedulable: false }), demand()],
    ['of another pool than the plan asks for', node({ cpuPool: 'amd' }), demand({ cpuPool: 'intel' })],
    ['of no pool when the plan asks for one', node(), demand({ cpuPool: 'intel' })],
    ['dedicated to another account', node({ dedicatedAccountId: 'theirs' }), demand()],
    ['that is excluded', node(), demand({ excludedNodes: ['a'] })],
    ['without enough cores', node({ used: room(7, 0, 0) }), demand()],
    ['without enough memory', node({ used: room(0, 7_000, 0) }), demand()],
    ['without enough storage', node({ used: room(0, 0, 61) }), demand()],
  ])('%s', (_why, candidate, wanted) => expect(rankNodes(wanted, [candidate])).toEqual([]))
})

describe('among nodes that can hold it', () => {
  test('one that is filled exactly is fine', () =>
    expect(names(rankNodes(demand(), [node({ used: room(6) })]))).toEqual(['a']))
  test('the fullest is first', () =>
    expect(
      names(rankNodes(demand(), [node(), node({ node: 'b', used: room(5) }), node({ node: 'c', used: room(3) })])),
    ).toEqual(['b', 'c', 'a']))
  test('what nobody sells on a node neither fills nor empties it', () => {
    const without = node({ node: 'b', total: room(8, 8_192, 0) })
    const wanted = demand({ ...room(2, 2_048, 0) })
    // b: 2 × 0.75 free; a: 2 × 0.75 and a whole disk; c: 2 × 0.75 and half a disk
    expect(names(rankNodes(wanted, [node(), without, node({ node: 'c', used: room(0, 0, 40) })]))).toEqual([
      'b',
      'c',
      'a',
    ])
  })
  test('each of cores, memory and storage counts by its share of the node', () =>
    expect(
      names(
        rankNodes(demand(), [
          node({ node: 'cores', used: room(2, 0, 0) }),
          node({ node: 'memory', used: room(0, 4_096, 0) }),
          node({ node: 'storage', used: room(0, 0, 60) }),
        ]),
      ),
    ).toEqual(['storage', 'memory', 'cores']))
  test("the account's own nodes come before shared ones", () =>
    expect(
      names(rankNodes(demand(), [node({ used: room(6) }), node({ node: 'own', dedicatedAccountId: 'mine' })])),
    ).toEqual(['own', 'a']))
  test('of equally full ones the smallest is first, by cores, then by memory', () =>
    expect(
      names(
        rankNodes(demand(), [
          node({ node: 'a', total: room(16), used: room(8) }),
          node({ node: 'b', total: room(8, 16_384), used: room(4, 8_192) }),
          node({ node: 'c', used: room(4) }),
        ]),
      ),
    ).toEqual(['c', 'b', 'a']))
  test('equal ones are ordered by name', () =>
    expect(names(rankNodes(demand(), [node({ node: 'b' }), node({ node: 'a' })]))).toEqual(['a', 'b']))
})

describe('apart from the members of its group', () => {
  const at = (name: string, rack: string, zone = 'z1'): Place => ({ node: name, rack, zone })
  const nodes = [
    node({ node: 'a', rack: 'r1', used: room(4) }),
    node({ node: 'b', rack: 'r1', used: room(5) }),
    node({ node: 'c', rack: 'r2' }),
  ]
  const ranked = (apartness: Apartness) => names(rankNodes(demand({ apartness }), nodes))
  test.each<[string, Apartness, string[]]>([
    [
      'host, strict: not on the node of a member, rather in another rack',
      { spread: 'host', isStrict: true, members: [at('a', 'r1')] },
      ['c', 'b'],
    ],
    [
      'host, soft: on the node of a member last',
      { spread: 'host', isStrict: false, members: [at('a', 'r1')] },
      ['c', 'b', 'a'],
    ],
    ['rack, strict: not in the rack of a member', { spread: 'rack', isStrict: true, members: [at('a', 'r1')] }, ['c']],
    [
      'rack, soft: in the rack of a member only beside it',
      { spread: 'rack', isStrict: false, members: [at('a', 'r1'), at('c', 'r2')] },
      ['b', 'a', 'c'],
    ],
    [
      'rack, strict: racks of the same name in another zone are others',
      { spread: 'rack', isStrict: true, members: [at('x', 'r1', 'z2')] },
      ['b', 'a', 'c'],
    ],
    ['zone, strict: not in the zone of a member', { spread: 'zone', isStrict: true, members: [at('a', 'r1')] }, []],
    [
      'zone, strict: in a zone without members, as if alone',
      { spread: 'zone', isStrict: true, members: [at('x', 'r1', 'z2')] },
      ['b', 'a', 'c'],
    ],
    [
      'zone, soft: on another node of the zone',
      { spread: 'zone', isStrict: false, members: [at('b', 'r1')] },
      ['c', 'a', 'b'],
    ],
    [
      'zone, soft: where all share a rack, with fewer members in it',
      { spread: 'zone', isStrict: false, members: [at('x', 'r1'), at('y', 'r1'), at('z', 'r2')] },
      ['c', 'b', 'a'],
    ],
    [
      'with fewer members rather than with more',
      { spread: 'host', isStrict: false, members: [at('c', 'r2'), at('c', 'r2'), at('a', 'r1'), at('b', 'r1')] },
      ['b', 'a', 'c'],
    ],
  ])('%s', (_why, apartness, expected) => expect(ranked(apartness)).toEqual(expected))

  test("an account's own node comes before a spread that is only wished for", () => {
    const own = node({ node: 'own', rack: 'r1', dedicatedAccountId: 'mine' })
    expect(
      names(
        rankNodes(demand({ apartness: { spread: 'host', isStrict: false, members: [at('own', 'r1')] } }), [
          own,
          ...nodes,
        ]),
      )[0],
    ).toBe('own')
  })

  test('members that share a domain with an older one are unmet, oldest first', () => {
    const members = [at('a', 'r1'), at('b', 'r1'), at('a', 'r1'), at('c', 'r2'), at('a', 'r1', 'z2')]
    expect([unmetMembers('host', members), unmetMembers('rack', members), unmetMembers('zone', members)]).toEqual([
      [members[2]],
      [members[1], members[2]],
      [members[1], members[2], members[3]],
    ])
  })
})

test('rooms are reckoned in every respect', () => {
  const [one, other] = [room(4, 1_000, 30), room(1, 3_000, 20)]
  expect(times(one, 3)).toEqual(room(12, 3_000, 90))
  expect(largest(one, other)).toEqual(room(4, 3_000, 30))
  expect(remainingRoom(one, other)).toEqual(room(3, -2_000, 10))
})

test('a node offers overcommitted cores and keeps its own memory', () => {
  const host = {
    logicalCpus: 8,
    memoryMebibytes: 16_384,
    storageGibibytes: 100,
    cpuOvercommit: 4,
    reservedMemoryMebibytes: 2_048,
  }
  expect(offeredRoom(host)).toEqual({ cores: 32, memoryMebibytes: 14_336, storageGibibytes: 100 })
  expect(offeredRoom({ ...host, memoryMebibytes: 1_000 }).memoryMebibytes).toBe(0)
})

const anyRoom = fc.record({ cores: fc.nat(16), memoryMebibytes: fc.nat(4_096), storageGibibytes: fc.nat(100) })
const anyNodes = fc.uniqueArray(
  fc.record({
    node: fc.stringMatching(/^[a-f]{1,3}$/),
    zone: fc.constantFrom('z1', 'z2'),
    rack: fc.constant('r'),
    cpuPool: fc.constantFrom(null, 'p'),
    dedicatedAccountId: fc.constantFrom(null, 'mine', 'theirs'),
    isSchedulable: fc.boolean(),
    total: anyRoom,
    used: anyRoom,
  }),
  { selector: (candidate) => candidate.node, maxLength: 12 },
)
const anyDemand = fc.record({
  accountId: fc.constant('mine'),
  zone: fc.constantFrom('z1', 'z2'),
  cpuPool: fc.constantFrom(undefined, 'p'),
  cores: fc.nat(8),
  memoryMebibytes: fc.nat(2_048),
  storageGibibytes: fc.nat(50),
})

describe('for any nodes and demand', () => {
  test('exactly the nodes that can hold it are ranked', () => {
    fc.assert(
      fc.property(anyDemand, anyNodes, (wanted, nodes) => {
        expect(names(rankNodes(wanted, nodes)).toSorted()).toEqual(
          names(nodes.filter((candidate) => canHold(wanted, candidate))).toSorted(),
        )
      }),
    )
  })

  test('the order of the candidates never matters', () => {
    fc.assert(
      fc.property(anyDemand, anyNodes, (wanted, nodes) => {
        expect(rankNodes(wanted, nodes.toReversed())).toEqual(rankNodes(wanted, nodes))
      }),
    )
  })

  test('placing one after another never overfills a node, and refuses only what fits nowhere', () => {
    fc.assert(
      fc.property(fc.array(anyDemand, { maxLength: 30 }), anyNodes, (demands, nodes) => {
        const empty = nodes.map((candidate) => ({ ...candidate, used: room(0) }))
        const world = new Map<string, Candidate>(empty.map((candidate) => [candidate.node, candidate]))
        for (const wanted of demands) {
          const chosen = rankNodes(wanted, [...world.values()])[0]
          if (chosen === undefined) {
            expect([...world.values()].some((candidate) => canHold(wanted, candidate))).toBe(false)
            continue
          }
          const used = {
            cores: chosen.used.cores + wanted.cores,
            memoryMebibytes: chosen.used.memoryMebibytes + wanted.memoryMebibytes,
            storageGibibytes: chosen.used.storageGibibytes + wanted.storageGibibytes,
          }
          expect(
            used.cores <= chosen.total.cores &&
              used.memoryMebibytes <= chosen.total.memoryMebibytes &&
              used.storageGibibytes <= chosen.total.storageGibibytes,
          ).toBe(true)
          world.set(chosen.node, { ...chosen, used })
        }
      }),
    )
  })

  test(
    'one after another, a strict group never shares a domain, a soft one only where it must, and its unmet members ' +
      'are those that do',
    () => {
      const someNodes = fc.uniqueArray(
        fc.record({ node: fc.stringMatching(/^[a-h]$/), rack: fc.constantFrom('r1', 'r2', 'r3') }),
        { selector: (one) => one.node, minLength: 1, maxLength: 8 },
      )
      fc.assert(
        fc.property(
          someNodes,
          fc.constantFrom(...SPREADS),
          fc.boolean(),
          fc.integer({ min: 1, max: 10 }),
          (places, spread, isStrict, count) => {
            const candidates = places.map((place) => node(place))
            const domains = new Set(
              candidates.map(({ rack, node: name }) => (spread === 'host' ? name : spread === 'rack' ? rack : '')),
            )
            const members: Candidate[] = []
            for (let number = 0; number < count; number++) {
              const chosen = rankNodes(demand({ ...room(0), apartness: { spread, isStrict, members } }), candidates)[0]
              if (chosen === undefined) break
              members.push(chosen)
            }
            const unmet = unmetMembers(spread, members)
            expect(unmet).toHaveLength(Math.max(0, members.length - domains.size))
            expect(members).toHaveLength(isStrict ? Math.min(count, domains.size) : count)
            if (isStrict) expect(unmet).toEqual([])
            for (const member of unmet)
              expect(members.some((other) => other === member || sharesDomain(spread, other, member))).toBe(true)
          },
        ),
      )
    },
  )
})
