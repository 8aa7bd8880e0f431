import { describe, expect, test } from 'vitest'
import { fullestOf, HA_REASONS, haObstacle, type Host } from '../../../domain/zone/high-availability.ts'
import type { Candidate } from '../../../domain/node/placement.ts'

const host = (node: string, changes: Partial<Host> = {}): Host => ({
  node,
  isReachable: true,
  pools: ['p'],
  isFenceCapable: true,
  ...changes,
})
const candidate = (node: string, usedMebibytes: number, changes: Partial<Candidate> = {}): Candidate => ({
  node,
  zone: 'z',
  rack: 'r',
  cpuPool: null,
  dedicatedAccountId: null,
  isSchedulable: true,
  total: { cores: 8, memoryMebibytes: 1_000, storageGibibytes: 100 },
  used: { cores: 1, memoryMebibytes: usedMebibytes, storageGibibytes: 1 },
  ...changes,
})
const guest = (serverId: string, memoryMebibytes: number, cpuPool?: string) => ({
  serverId,
  accountId: 'a',
  room: { cores: 1, memoryMebibytes, storageGibibytes: 1 },
  cpuPool,
})
const hosts = [host('n1'), host('n2')]
const nodes = [candidate('n1', 600), candidate('n2', 300)]

describe('a zone', () => {
  test('that has a second node, shared storage, ways to fence and room could act', () =>
    expect(haObstacle('z', hosts, nodes, [guest('s', 600)])).toBeUndefined())
  test.each<readonly [string, readonly Host[], readonly Candidate[], keyof typeof HA_REASONS]>([
    ['of one node could not', [host('n1')], [candidate('n1', 600)], 'one_node'],
    ['of whose nodes one answers could not', [host('n1'), host('n2', { isReachable: false })], nodes, 'one_node'],
    [
      'without shared storage could not',
      [host('n1', { pools: [] }), host('n2', { pools: [] })],
      nodes,
      'no_shared_storage',
    ],
    [
      'whose nodes share no storage with each other could not',
      [host('n1', { pools: ['p'] }), host('n2', { pools: ['q'] })],
      nodes,
      'no_shared_storage',
    ],
    [
      'whose shared storage only a lost node reaches too could not',
      [host('n1'), host('n2', { pools: [] }), host('n3', { isReachable: false })],
      nodes,
      'no_shared_storage',
    ],
    [
      'with a node that nobody can fence could not',
      [host('n1'), host('n2', { isFenceCapable: false })],
      nodes,
      'no_fencing',
    ],
    ['without room on the others could not', hosts, [candidate('n1', 600), candidate('n2', 500)], 'no_headroom'],
    [
      'whose other node takes nothing could not',
      hosts,
      [candidate('n1', 600), candidate('n2', 0, { isSchedulable: false })],
      'no_headroom',
    ],
  ])('%s', (_why, some, candidates, reason) =>
    expect(haObstacle('z', some, candidates, [guest('s', 600)])).toBe(HA_REASONS[reason]),
  )

  test('whose fullest node holds a server for which no other has the processors could not', () =>
    expect(haObstacle('z', hosts, nodes, [guest('s', 10, 'amd')])).toBe(HA_REASONS.no_headroom))
  test('whose fullest node holds a server that a strict group keeps from the other could not', () => {
    const group = {
      spread: 'host' as const,
      isStrict: true,
      others: [{ serverId: 't', node: 'n2', zone: 'z', rack: 'r' }],
    }
    expect(haObstacle('z', hosts, nodes, [{ ...guest('s', 10), group }])).toBe(HA_REASONS.no_headroom)
  })
  test('is judged by the node whose loss would ask for the most', () => {
    expect(fullestOf([candidate('b', 5), candidate('a', 5), candidate('c', 1)])).toBe('a')
    expect(fullestOf([])).toBeUndefined()
  })
})
