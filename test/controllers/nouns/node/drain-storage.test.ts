import { describe, expect, test } from 'vitest'
import { plan } from '../../../../controllers/nouns/node/plan.ts'
import type { Observed, TenantStorage } from '../../../../controllers/nouns/node/observed.ts'
import type { OperationStanza } from '../../../../resources/kit/shapes.ts'
import type { StorageSpec, StorageStatus } from '../../../../resources/storage/index.ts'
import { actionLines, candidate, guest, node, NOW, observed, stanza } from './worlds.ts'

const draining = (operation: Partial<OperationStanza> = {}, spec: object = {}) =>
  node(
    {
      state: 'draining',
      isCordoned: false,
      isInMaintenance: false,
      operation: {
        id: 'op',
        kind: 'storage.drain_host',
        status: 'running',
        step: 'emptied',
        stepIndex: 1,
        stepCount: 2,
        error: '',
        actor: 'operator',
        createdAt: '',
        deadlineAt: '',
      },
    },
    { isCordoned: true, operation: stanza('storage.drain_host', operation), ...spec },
  )
const world = (changes: Partial<Observed> = {}): Observed =>
  observed({ mirror: candidate({ isSchedulable: false }), ...changes })

/** Of a storage on the node; `turn` when this drain has moved it so often. */
const disk = (
  storageId: string,
  {
    turn,
    isBusy = false,
    isArriving = false,
    state = 'online',
  }: { turn?: number; isBusy?: boolean; isArriving?: boolean; state?: StorageStatus['state'] } = {},
): TenantStorage => {
  const operation =
    turn === undefined && !isBusy
      ? undefined
      : stanza('storage.move', {
          id: 'move',
          arguments: turn === undefined ? {} : { node_operation_id: 'op', node_operation_turn: String(turn) },
        })
  const ended = operation && {
    ...operation,
    status: 'failed' as const,
    step: '',
    stepIndex: 0,
    stepCount: 1,
    error: 'No room.',
    createdAt: '',
  }
  return {
    namespace: 'acct-a',
    storageId,
    sizeGibibytes: 1,
    isArriving,
    storage: {
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: 'Storage',
      metadata: { name: storageId, namespace: 'acct-a', uid: `uid-${storageId}` },
      // what the plan reads of it
      spec: (operation === undefined ? {} : { operation }) as StorageSpec,
      status: { state, ...(ended === undefined || isBusy ? {} : { operation: ended }) },
    },
  }
}
const lines = (changes: Partial<Observed>, root = draining(), now = NOW) =>
  actionLines(plan(root, world(changes), now)).filter((line) => !line.startsWith('state'))
const orders = (changes: Partial<Observed>) =>
  plan(draining(), world(changes), NOW).flatMap((action) =>
    action.do === 'effect' && (action.name === 'orderStorage' || action.name === 'order')
      ? [`${action.input.kind} ${action.input.id}`]
      : [],
  )

describe('emptying the disks of a node', () => {
  test('keeps new ones away first', () =>
    expect(lines({ mirror: candidate(), storages: [disk('a')] })).toEqual([
      'effect mirror false',
      'operation cordoned',
    ]))

  test('moves storages that no server has, two at a time, and servers with theirs', () => {
    expect(orders({ storages: ['a', 'b', 'c'].map((name) => disk(name)), guests: [guest('web', 'started')] })).toEqual([
      'server.migrate web',
      'storage.move a',
      'storage.move b',
    ])
    expect(orders({ storages: [disk('a', { isBusy: true }), disk('b'), disk('c')] })).toEqual(['storage.move b'])
  })

  test('names the node that is left, so that each move knows when it has arrived', () => {
    const [order] = plan(draining(), world({ storages: [disk('a', { turn: 1 })] }), NOW)
    expect(order).toMatchObject({
      name: 'orderStorage',
      input: { arguments: { source_node_id: 'n1', node_operation_id: 'op', node_operation_turn: '2' } },
    })
  })

  test('has succeeded when nothing is left, on the host too', () => {
    expect(lines({ volumeCount: 1 })).toEqual(['operation emptied'])
    expect(lines({})).toEqual(['operation succeeded'])
  })

  test('waits for what is still on its way here', () =>
    expect(lines({ storages: [disk('a', { isArriving: true })] })).toEqual(['operation emptied']))

  test('fails by name when what is left cannot leave', () => {
    const stuck = disk('a', { turn: 3 })
    const said = (changes: Partial<Observed>) => lines(changes).at(-1)
    expect(said({ storages: [stuck] })).toBe('operation failed')
    expect(said({ storages: [disk('a', { state: 'error' })] })).toBe('operation failed')
    expect(said({ storages: [stuck, disk('b', { isBusy: true })] })).toBe('operation emptied')
    expect(said({ storages: [stuck], guests: [guest('web', 'started')] })).toBe('operation emptied')
  })

  test('ends at its deadline, and when it is cancelled or the node is opened again', () => {
    const late = new Date('2026-01-03T00:00:00Z')
    expect(lines({ storages: [disk('a')] }, draining(), late).at(-1)).toBe('operation failed')
    const cancelled = draining({ arguments: { cancel: 'true' } })
    expect(lines({ storages: [disk('a')] }, cancelled)).toEqual(['operation cancelled'])
    expect(lines({ storages: [disk('a')] }, draining({}, { isCordoned: false })).at(-1)).toBe('operation cancelled')
  })
})
