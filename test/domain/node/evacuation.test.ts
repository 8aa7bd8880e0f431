import { describe, expect, test } from 'vitest'
import { findUnplaceable } from '../../../domain/node/evacuation.ts'
import type { Candidate, Room } from '../../../domain/node/placement.ts'

const room = (cores: number): Room => ({ cores, memoryMebibytes: cores * 1_024, storageGibibytes: cores })
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
const guest = (serverId: string, cores: number, cpuPool?: string) => ({
  serverId,
  accountId: 'a',
  room: room(cores),
  cpuPool,
})
const member = (
  serverId: string,
  spread: 'host' | 'rack',
  isStrict: boolean,
  ...others: readonly [string, string][]
) => ({
  ...guest(serverId, 1),
  group: {
    spread,
    isStrict,
    others: others.map(([other, at]) => ({ serverId: other, node: at, rack: 'r', zone: 'z' })),
  },
})
const leaving = { node: 'n1', zone: 'z' }

describe('those who would find no room', () => {
  test.each([
    ['nobody, when there is room', [guest('a', 2), guest('b', 2)], [node('n1', 8), node('n2', 4)], []],
    ['nobody leaves to the node that is left', [guest('a', 1)], [node('n1', 8)], ['a']],
    ['the last to choose, when room is short', [guest('a', 1), guest('b', 3)], [node('n2', 3)], ['a']],
    [
      'of equal memory the one with fewer cores',
      [
        { serverId: 'a', accountId: 'a', room: { cores: 1, memoryMebibytes: 1_024, storageGibibytes: 2 } },
        { serverId: 'b', accountId: 'a', room: { cores: 2, memoryMebibytes: 1_024, storageGibibytes: 1 } },
      ],
      [node('n2', 2)],
      ['a'],
    ],
    [
      'of equal memory and cores the one with less storage',
      [
        { serverId: 'a', accountId: 'a', room: { cores: 1, memoryMebibytes: 1_024, storageGibibytes: 1 } },
        { serverId: 'b', accountId: 'a', room: { cores: 1, memoryMebibytes: 1_024, storageGibibytes: 2 } },
      ],
      [node('n2', 2)],
      ['a'],
    ],
    ['of equals the last by id', [guest('b', 1), guest('c', 1), guest('a', 1)], [node('n2', 2)], ['c']],
    ['in the order of their ids', [guest('b', 2), guest('c', 1), guest('a', 3)], [], ['a', 'b', 'c']],
    ['the large find room on the second node', [guest('a', 3), guest('b', 3)], [node('n2', 4), node('n3', 3)], []],
    ['one in pieces of the room of two nodes', [guest('a', 3)], [node('n2', 2), node('n3', 2)], ['a']],
    ['those of another pool', [guest('a', 1, 'fast')], [node('n2', 8)], ['a']],
    ['those whose nodes are closed', [guest('a', 1)], [node('n2', 8, 0, { isSchedulable: false })], ['a']],
    [
      'those whose nodes are of another account',
      [guest('a', 1)],
      [node('n2', 8, 0, { dedicatedAccountId: 'b' })],
      ['a'],
    ],
    [
      'a member of a strict group that has a server on every other node',
      [member('a', 'host', true, ['b', 'n2'], ['c', 'n3'])],
      [node('n2', 8), node('n3', 8)],
      ['a'],
    ],
    [
      'nobody, when the group is only asked for',
      [member('a', 'host', false, ['b', 'n2'], ['c', 'n3'])],
      [node('n2', 8), node('n3', 8)],
      [],
    ],
    [
      'nobody, when one node has none of the group',
      [member('a', 'host', true, ['b', 'n2'])],
      [node('n2', 8), node('n3', 8)],
      [],
    ],
    [
      'the member of the rack that its group keeps to itself',
      [member('a', 'rack', true, ['b', 'n3'])],
      [node('n2', 8), node('n3', 8)],
      ['a'],
    ],
    [
      'members that leave together stay apart',
      [member('a', 'host', true, ['b', 'n1']), member('b', 'host', true, ['a', 'n1'])],
      [node('n2', 8)],
      ['b'],
    ],
  ] as const)('%s', (_why, guests, nodes, expected) =>
    expect(findUnplaceable(leaving, guests, nodes)).toEqual(expected),
  )
})
