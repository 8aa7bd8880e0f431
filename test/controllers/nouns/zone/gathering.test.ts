import { expect, test } from 'vitest'
import { gather } from '../../../../controllers/nouns/zone/gathering.ts'
import type { MisplacedData, Observed, StorageObject } from '../../../../controllers/nouns/zone/observed.ts'
import { defined } from '../../../../domain/defined.ts'
import type { ServerSpec, ServerStatus } from '../../../../resources/server/index.ts'
import type { OperationProgress, OperationStanza } from '../../../../resources/kit/shapes.ts'
import type { StorageSpec, StorageStatus } from '../../../../resources/storage/index.ts'
import { candidate, stanza } from '../node/worlds.ts'

const NOW = new Date('2026-01-01T12:00:00Z')
const MINUTE_MILLISECONDS = 60_000

const endedAt = (operation: OperationStanza, minutesAgo: number, status: OperationProgress['status'] = 'failed') => ({
  ...operation,
  status,
  step: 'reserved',
  stepIndex: 0,
  stepCount: 3,
  error: '',
  createdAt: '',
  finishedAt: new Date(NOW.getTime() - minutesAgo * MINUTE_MILLISECONDS).toISOString(),
})
const own = (turn: number) =>
  stanza('storage.move', { id: 'move', actor: 'system:zones', arguments: { turn: String(turn) } })

const disk = (
  name: string,
  operation?: OperationStanza,
  status: Partial<StorageStatus> = {},
  deletionTimestamp?: string,
): StorageObject => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Storage',
  metadata: { name, namespace: 'acct-a', ...defined({ deletionTimestamp }) },
  // what the plan reads of it
  spec: { tier: 'standard', ...defined({ operation }) } as StorageSpec,
  status: { state: 'online', nodeName: 'n1', ...status },
})
const alone = (storage: StorageObject): MisplacedData => ({
  node: 'n1',
  isNodeBusy: false,
  namespace: 'acct-a',
  accountId: 'a',
  storages: [storage],
  room: { cores: 0, memoryMebibytes: 0, storageGibibytes: 10 },
})
const ofServer = (
  storages: readonly StorageObject[],
  { state = 'started', operation }: { state?: ServerStatus['state']; operation?: OperationStanza } = {},
): MisplacedData => ({
  ...alone(disk('')),
  serverId: 'web',
  room: { cores: 1, memoryMebibytes: 512, storageGibibytes: 10 },
  storages,
  server: {
    apiVersion: 'svccloud.dev/v1alpha1',
    kind: 'Server',
    metadata: { name: 'web', namespace: 'acct-a' },
    // what the plan reads of it
    spec: (operation === undefined ? {} : { operation }) as ServerSpec,
    status: { state },
  },
})

const host = (node: string, pools: readonly string[] = ['p1'], isReachable = true) => ({
  node,
  isReachable,
  isFenceCapable: false,
  pools,
})
const world = (misplaced: readonly MisplacedData[], changes: Partial<Observed> = {}): Observed => ({
  nodes: [candidate(), candidate({ node: 'n2' })],
  plans: [],
  hosts: [host('n1'), host('n2')],
  guests: [],
  hasBackups: false,
  builtTemplates: [],
  misplaced,
  ...changes,
})
const zone = {
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Zone',
  metadata: { name: 'z1' },
  spec: { displayName: 'Z', region: 'r', isClosed: false, capabilities: [] },
}
const begun = (misplaced: readonly MisplacedData[], changes: Partial<Observed> = {}) =>
  gather({ zone, observed: world(misplaced, changes), now: NOW }).flatMap((action) =>
    action.do === 'effect' && action.name === 'orderStorage' ? [action.input] : [],
  )
const names = (misplaced: readonly MisplacedData[], changes: Partial<Observed> = {}) =>
  begun(misplaced, changes).map(({ id }) => id)

test('storages of tier standard go to shared storage while their guests run', () =>
  expect(begun([alone(disk('a'))])).toEqual([
    {
      namespace: 'acct-a',
      id: 'a',
      kind: 'storage.move',
      actor: 'system:zones',
      arguments: { source_node_id: 'n1', tier: 'standard', mode: 'live', turn: '1' },
    },
  ]))

test('few at a time, those that are on their way among them', () => {
  const many = ['a', 'b', 'c'].map((name) => alone(disk(name)))
  expect(names(many)).toEqual(['a', 'b'])
  expect(names(many, { gathered: 1 })).toEqual(['a'])
  expect(names(many, { gathered: 2 })).toEqual([])
  expect(names(many, { gathered: 3 })).toEqual([])
})

test('a server takes all of its storages along at once', () =>
  expect(names([ofServer([disk('boot'), disk('data')]), alone(disk('other'))])).toEqual(['boot', 'other']))

test.each<readonly [string, MisplacedData]>([
  ['an operation of the storage', alone(disk('a', stanza('storage.move', { actor: 'operator' })))],
  ['an operation of one of the server’s storages', ofServer([disk('a'), disk('b', stanza('storage.resize'))])],
  ['an operation of the server', ofServer([disk('a')], { operation: stanza('server.migrate') })],
  ['the deletion of the server', ofServer([disk('a')], { operation: stanza('server.delete') })],
  ['a server that is neither started nor stopped', ofServer([disk('a')], { state: 'error' })],
  ['a server that is not known yet', { ...ofServer([disk('a')]), server: undefined }],
  ['an operation of the node', { ...alone(disk('a')), isNodeBusy: true }],
  ['a restore', alone(disk('a', undefined, { state: 'restoring' }))],
  ['the deletion of the storage', alone(disk('a', undefined, {}, 'now'))],
])('it waits for %s', (_what, one) => expect(names([one])).toEqual([]))

test.each<readonly [string, Observed['hosts'][number]]>([
  ['reach shared storage', host('n1', [])],
  ['answer', host('n1', ['p1'], false)],
])('it stays on hosts that do not %s', (_what, own) =>
  expect(names([alone(disk('a'))], { hosts: [own, host('n2'), host('n3')] })).toEqual([]),
)

test('stopped servers are moved as well', () =>
  expect(names([ofServer([disk('a')], { state: 'stopped' })])).toEqual(['a']))

test.each<readonly [string, Partial<Observed>]>([
  ['reaches shared storage', { hosts: [host('n1'), host('n2', [])] }],
  ['answers', { hosts: [host('n1'), host('n2', ['p1'], false)] }],
  ['takes servers', { nodes: [candidate(), candidate({ node: 'n2', isSchedulable: false })] }],
  [
    'has room',
    { nodes: [candidate({ node: 'n2', total: { cores: 16, memoryMebibytes: 6_144, storageGibibytes: 9 } })] },
  ],
])('nothing is begun while no other host %s', (_what, changes) => {
  expect(names([ofServer([disk('a')]), alone(disk('b'))], changes)).toEqual([])
})

test('what could not be moved is tried again ever later, and once a day in the end', () => {
  const after = (turn: number, minutes: number) =>
    begun([alone(disk('a', own(turn), { operation: endedAt(own(turn), minutes) }))]).map(
      ({ arguments: { turn: next } }) => next,
    )
  expect([after(1, 9), after(1, 10)]).toEqual([[], ['2']])
  expect([after(2, 19), after(2, 20)]).toEqual([[], ['3']])
  expect([after(3, 39), after(3, 40)]).toEqual([[], ['4']])
  expect([after(30, 1_439), after(30, 1_440)]).toEqual([[], ['31']])
})

test('it waits as well when a move has ended well and the data are not there all the same', () => {
  const ended = (status: OperationProgress['status']) =>
    names([alone(disk('a', own(1), { operation: endedAt(own(1), 1, status) }))])
  expect([ended('succeeded'), ended('cancelled')]).toEqual([[], []])
})

test('one try of a server counts for all of its storages', () => {
  const tried = (minutes: number) =>
    begun([ofServer([disk('a'), disk('b', own(2), { operation: endedAt(own(2), minutes) })])]).map(
      ({ id, arguments: { turn } }) => `${id} ${turn}`,
    )
  expect([tried(19), tried(20)]).toEqual([[], ['a 3']])
})

test('what an operator or a customer did to it since is no try', () => {
  const moved = stanza('storage.move', { id: 'other', actor: 'operator' })
  expect(names([alone(disk('a', moved, { operation: endedAt(moved, 0) }))])).toEqual(['a'])
})
