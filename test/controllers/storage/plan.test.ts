import { describe, expect, test } from 'vitest'
import type { Observed } from '../../../controllers/storage/observed.ts'
import { present } from '../../../controllers/operation/decision.ts'
import { plan } from '../../../controllers/storage/plan.ts'
import type { StorageObject, VolumeObject } from '../../../controllers/storage/volumes.ts'
import type { Action } from '../../../kit/reconcile/action.ts'
import type { VolumeSpec, VolumeStatus } from '../../../resources/instance/index.ts'
import type { StorageSpec, StorageStatus } from '../../../resources/storage/index.ts'

const storage = (
  spec: Partial<StorageSpec> = {},
  deletionTimestamp?: string,
  status?: StorageStatus,
): StorageObject => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Storage',
  metadata: {
    name: 'web',
    namespace: 'acct-1',
    uid: 's1',
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
  },
  spec: {
    zone: 'z1',
    title: '',
    sizeGibibytes: 3,
    tier: 'standard',
    isBoot: true,
    serverId: 'web',
    source: { kind: 'template', id: 'tiny-linux' },
    labels: {},
    isProtected: false,
    ...spec,
  },
  ...(status === undefined ? {} : { status }),
})
const reference = { storage: { namespace: 'acct-1', name: 'web', uid: 's1' }, sizeGibibytes: 3 }
const volume = (
  status?: VolumeStatus,
  spec: Partial<VolumeSpec> = {},
  node = 'n1',
  deletionTimestamp?: string,
): VolumeObject => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Volume',
  metadata: {
    name: 's1',
    namespace: `node-${node}`,
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
  },
  spec: { ...reference, ...spec },
  ...(status === undefined ? {} : { status }),
})
const observed = (changes: Partial<Observed> = {}): Observed => ({
  node: 'n1',
  zone: 'z1',
  region: 'eu',
  volumes: [],
  usedOn: [],
  isGuestOff: false,
  pools: [],
  isInUse: true,
  ...changes,
})
const READY: VolumeStatus = { state: 'ready', origin: { name: 'tiny-linux', version: 'v1' } }

/** One line for each action; a volume with its node and what is its own. */
const actionLines = (actions: readonly Action[]) =>
  actions.map((action) => {
    if (action.do === 'status')
      return `state ${[action.status['state'], ...present(action.status['stateDetail'])].map(String).join(': ')}`
    if (action.do === 'remove') return `remove ${action.key.namespace}`
    if (action.do === 'change') return `change ${JSON.stringify(action.patch)}`
    if (action.do !== 'ensure') return action.do
    const { source, copyFrom, serve, pool, isRetained, arrivingFor } = action.draft.spec as VolumeSpec
    return [
      `ensure ${action.draft.metadata.namespace}`,
      source && `${source.kind} ${source.name}`,
      copyFrom && `from ${copyFrom.host}:${copyFrom.port}`,
      serve && `serves ${serve.id}`,
      pool && `on ${pool}`,
      isRetained === true && 'retained',
      arrivingFor && `for ${arrivingFor}`,
    ]
      .filter(Boolean)
      .join(' ')
  })
type Row = readonly [string, StorageObject, Observed, readonly string[]]

test.each<Row>([
  ['waits for its server to be placed', storage(), observed({ node: undefined }), ['state creating', 'wait']],
  [
    'becomes a volume on the host of its server',
    storage(),
    observed(),
    ['ensure node-n1 template tiny-linux', 'state creating'],
  ],
  [
    'lies on shared storage where there is some',
    storage(),
    observed({ pools: ['p1'] }),
    ['ensure node-n1 template tiny-linux on p1', 'state creating'],
  ],
  [
    'of a local tier never does',
    storage({ tier: 'local-nvme' }),
    observed({ pools: ['p1'] }),
    ['ensure node-n1 template tiny-linux', 'state creating'],
  ],
  [
    'stays on the disks of its node when that got shared storage later',
    storage({}, undefined, { state: 'creating', nodeName: 'n1' }),
    observed({ pools: ['p1'] }),
    ['ensure node-n1 template tiny-linux', 'state creating'],
  ],
  [
    'is being made while the host works',
    storage(),
    observed({ volumes: [volume()] }),
    ['ensure node-n1', 'state creating'],
  ],
  [
    'is online when the volume is ready',
    storage(),
    observed({ volumes: [volume(READY)] }),
    ['ensure node-n1', 'state online'],
  ],
  [
    'shows why the host could not make it',
    storage(),
    observed({ volumes: [volume({ state: 'error', detail: 'Disk full.' })] }),
    ['ensure node-n1', 'state error: Disk full.'],
  ],
  [
    'of another kind is refused',
    storage({ isBoot: false }),
    observed(),
    ['state error: Only boot storages, which are made with their server, are offered here.'],
  ],
  [
    'that is deleted under its server stays',
    storage({}, 'now'),
    observed({ volumes: [volume(READY)] }),
    ['ensure node-n1', 'state online'],
  ],
  [
    'goes with its server: the volume first',
    storage({}, 'now'),
    observed({ isInUse: false, volumes: [volume(READY)] }),
    ['ensure node-n1', 'remove node-n1', 'state deleting'],
  ],
  ['then itself', storage({}, 'now'), observed({ isInUse: false }), ['finalized']],
  ['that never had a host goes too', storage({}, 'now'), observed({ isInUse: false, node: undefined }), ['finalized']],
])('a storage %s', (_why, object, world, expected) => expect(actionLines(plan(object, world))).toEqual(expected))

test('the volume has what the host must know', () => {
  const ensured = plan(storage(), observed()).find((action) => action.do === 'ensure')
  expect(ensured?.draft).toEqual({
    metadata: { namespace: 'node-n1', name: 's1' },
    spec: { ...reference, source: { kind: 'template', name: 'tiny-linux' } },
  })
})

describe('while its server moves', () => {
  const target = { node: 'n2', zone: 'z1', operationId: 'op-1', pools: [] as readonly string[] }
  const moving = (state: NonNullable<Observed['migration']>['state'], changes: Partial<Observed> = {}) =>
    observed({
      target,
      migration: { operationId: 'op-1', state },
      moveSecretName: 'move-1',
      volumes: [volume(READY)],
      ...changes,
    })
  const shared = (changes: Partial<VolumeSpec> = {}, node = 'n1') => volume(READY, { pool: 'p1', ...changes }, node)
  const mirror = volume(READY, { source: { kind: 'mirror', name: 'op-1' } }, 'n2')
  const copy = volume(READY, { source: { kind: 'copy', name: 'op-1' } }, 'n2')

  test.each<Row>([
    [
      'nothing is made before it is known how it moves',
      storage(),
      moving('reserved'),
      ['ensure node-n1', 'state online'],
    ],
    [
      'nothing is made for a move that is not the one of the room',
      storage(),
      moving('preparing', { migration: { operationId: 'op-0', state: 'preparing' } }),
      ['ensure node-n1', 'state online'],
    ],
    [
      'the target gets an empty disk for the mirror',
      storage(),
      moving('preparing'),
      ['ensure node-n1', 'ensure node-n2 mirror op-1', 'state online'],
    ],
    [
      'the target sees a shared disk as it is, and may not end it',
      storage(),
      moving('preparing', { volumes: [shared()] }),
      ['ensure node-n1 on p1', 'ensure node-n2 on p1 retained for op-1', 'state online'],
    ],
    [
      'a disk is not served while its guest may run',
      storage(),
      moving('detached'),
      ['ensure node-n1', 'ensure node-n2 copy op-1', 'state online'],
    ],
    [
      'the disk of a guest that is off is served',
      storage(),
      moving('detached', { isGuestOff: true }),
      ['ensure node-n1 serves op-1', 'ensure node-n2 copy op-1', 'state online'],
    ],
    [
      'and copied from where it is',
      storage(),
      moving('detached', {
        isGuestOff: true,
        volumes: [volume({ ...READY, serving: { id: 'op-1', host: 'h', port: 9 } })],
      }),
      ['ensure node-n1 serves op-1', 'ensure node-n2 copy op-1 from h:9', 'state online'],
    ],
    [
      'but never from where another move had it',
      storage(),
      moving('detached', {
        isGuestOff: true,
        volumes: [volume({ ...READY, serving: { id: 'op-0', host: 'h', port: 9 } })],
      }),
      ['ensure node-n1 serves op-1', 'ensure node-n2 copy op-1', 'state online'],
    ],
    [
      'a half mirror is thrown away before a copy is made',
      storage(),
      moving('detached', { isGuestOff: true, volumes: [volume(READY), mirror] }),
      ['ensure node-n1 serves op-1', 'remove node-n2', 'state online'],
    ],
    [
      'but not while an instance has it',
      storage(),
      moving('detached', { isGuestOff: true, volumes: [volume(READY), mirror], usedOn: ['n2'] }),
      ['ensure node-n1 serves op-1', 'state online'],
    ],
    [
      'a shared disk is not copied',
      storage(),
      moving('detached', { isGuestOff: true, volumes: [shared()] }),
      ['ensure node-n1 on p1', 'ensure node-n2 on p1 retained for op-1', 'state online'],
    ],
    [
      'what is on its way out of the target has to be gone first',
      storage(),
      moving('preparing', { volumes: [shared(), volume(READY, { pool: 'p1', isRetained: true }, 'n2', 'now')] }),
      ['ensure node-n1 on p1', 'state online'],
    ],
    [
      'what the target has stays while the move is undone',
      storage(),
      moving('aborting', { volumes: [volume(READY), mirror] }),
      ['ensure node-n1', 'state online'],
    ],
    [
      'what the target had goes afterwards',
      storage(),
      observed({ volumes: [volume(READY), mirror] }),
      ['remove node-n2', 'ensure node-n1', 'state online'],
    ],
    [
      'a shared disk is kept when the target loses it',
      storage(),
      observed({ volumes: [shared(), shared({ isRetained: true }, 'n2')] }),
      ['ensure node-n2 on p1 retained', 'remove node-n2', 'ensure node-n1 on p1', 'state online'],
    ],
    [
      'nothing is taken from under an instance',
      storage(),
      observed({ volumes: [volume(READY), mirror], usedOn: ['n2'] }),
      ['ensure node-n1', 'state online'],
    ],
  ])('%s', (_why, object, world, expected) => expect(actionLines(plan(object, world))).toEqual(expected))

  test.each<Row>([
    [
      'the shared data stays when the node before loses it',
      storage(),
      observed({ node: 'n2', volumes: [shared(), shared({ isRetained: true }, 'n2')] }),
      ['ensure node-n1 on p1 retained', 'remove node-n1', 'ensure node-n2 on p1', 'state online'],
    ],
    [
      'the disk before goes once the new one is whole',
      storage(),
      observed({ node: 'n2', volumes: [volume(READY), copy] }),
      ['remove node-n1', 'ensure node-n2 copy op-1', 'state online'],
    ],
    [
      'never before',
      storage(),
      observed({ node: 'n2', volumes: [volume(READY), { ...copy, status: { state: 'creating' } }] }),
      ['ensure node-n2 copy op-1', 'state creating'],
    ],
    [
      'a disk that only another node has is not made a second time',
      storage(),
      observed({ node: 'n2', volumes: [volume(READY)] }),
      ['state error: The disk lies on node n1, which the server is not on.'],
    ],
    [
      'a shared disk that the new node does not show yet is not made a second time',
      storage(),
      observed({ node: 'n2', volumes: [shared()] }),
      ['ensure node-n2 on p1', 'ensure node-n1 on p1 retained', 'remove node-n1', 'state creating'],
    ],
    [
      'deleted in the middle, the data goes with the last volume: the others first',
      storage({}, 'now'),
      observed({ isInUse: false, node: 'n2', volumes: [shared(), shared({ isRetained: true }, 'n2')] }),
      ['ensure node-n1 on p1 retained', 'remove node-n1', 'state deleting'],
    ],
    [
      'and then that of its node, with the data',
      storage({}, 'now'),
      observed({ isInUse: false, node: 'n2', volumes: [shared({ isRetained: true }, 'n2')] }),
      ['ensure node-n2 on p1', 'remove node-n2', 'state deleting'],
    ],
    [
      'deleted after its server, the volume that may end the data waits for one that may not',
      storage({}, 'now'),
      observed({
        isInUse: false,
        node: undefined,
        volumes: [volume(READY, { pool: 'p1', isRetained: true }, 'n1', 'now'), shared({}, 'n2')],
      }),
      ['state deleting'],
    ],
    [
      'and ends them then',
      storage({}, 'now'),
      observed({ isInUse: false, node: undefined, volumes: [shared({}, 'n2')] }),
      ['ensure node-n2 on p1', 'remove node-n2', 'state deleting'],
    ],
  ])('after it moved, %s', (_why, object, world, expected) =>
    expect(actionLines(plan(object, world))).toEqual(expected),
  )

  const away = { ...target, zone: 'z2', pools: ['p2'] }
  const leaving = (changes: Partial<Observed> = {}) =>
    moving('detached', { target: away, isGuestOff: true, volumes: [shared()], ...changes })
  const served = volume({ ...READY, serving: { id: 'op-1', host: 'h', port: 9 } }, { pool: 'p1' })
  const copied = volume(
    READY,
    { source: { kind: 'copy', name: 'op-1' }, pool: 'p2', origin: { name: 'tiny-linux', version: 'v1' } },
    'n2',
  )
  const isThere = (changes: Partial<Observed> = {}) =>
    observed({ node: 'n2', zone: 'z2', volumes: [shared(), copied], ...changes })
  const moved = storage({ zone: 'z2' })

  test.each<Row>([
    [
      'a disk on shared storage is copied to that of the other zone',
      storage(),
      leaving(),
      ['ensure node-n1 serves op-1 on p1', 'ensure node-n2 copy op-1 on p2', 'state online'],
    ],
    [
      'from where it is served',
      storage(),
      leaving({ volumes: [served] }),
      ['ensure node-n1 serves op-1 on p1', 'ensure node-n2 copy op-1 from h:9 on p2', 'state online'],
    ],
    [
      'or to the disks of the node where the zone has none',
      storage(),
      leaving({ target: { ...away, pools: [] } }),
      ['ensure node-n1 serves op-1 on p1', 'ensure node-n2 copy op-1', 'state online'],
    ],
    [
      'one on the disks of its node as well',
      storage(),
      leaving({ volumes: [volume(READY)] }),
      ['ensure node-n1 serves op-1', 'ensure node-n2 copy op-1 on p2', 'state online'],
    ],
    [
      'shared storage that both zones reach is not copied onto itself',
      storage(),
      leaving({ target: { ...away, pools: ['p1'] } }),
      ['ensure node-n1 on p1', 'ensure node-n2 on p1 retained for op-1', 'state online'],
    ],
    [
      'nothing is copied to where an older copy is on its way out',
      storage(),
      leaving({ volumes: [shared(), volume(READY, { pool: 'p2' }, 'n3', 'now')] }),
      ['ensure node-n1 serves op-1 on p1', 'state online'],
    ],
    [
      'what was copied goes when the server stays',
      storage(),
      observed({ volumes: [shared(), copied] }),
      ['remove node-n2', 'ensure node-n1 on p1', 'state online'],
    ],
    [
      'the storage is of the other zone once its server is there',
      storage(),
      isThere(),
      ['change {"spec":{"zone":"z2"}}', 'wait'],
    ],
    [
      'the data before goes with the node before, and the copy is at home',
      moved,
      isThere(),
      ['remove node-n1', 'ensure node-n2 on p2', 'state online'],
    ],
    [
      'never before the copy is whole',
      moved,
      isThere({ volumes: [shared(), { ...copied, status: { state: 'creating' } }] }),
      ['ensure node-n2 copy op-1 on p2', 'state creating'],
    ],
    [
      'deleted on the way, both data go',
      storage({}, 'now'),
      observed({ isInUse: false, volumes: [shared(), copied] }),
      ['remove node-n2', 'state deleting'],
    ],
  ])('to another zone, %s', (_why, object, world, expected) =>
    expect(actionLines(plan(object, world))).toEqual(expected),
  )

  const given = (changes: Partial<Observed>) =>
    observed({ isInUse: false, lostNodes: ['n1'], successorNode: 'n2', ...changes })
  const { status: _status, ...justMade } = shared({ isRetained: true }, 'n2')
  const going = volume(READY, { pool: 'p1' }, 'n1', 'now')

  test.each<Row>([
    [
      'another node that reaches the data is told of them',
      storage({}, 'now'),
      given({ volumes: [shared()] }),
      ['ensure node-n2 on p1 retained', 'state deleting', 'wait'],
    ],
    [
      'also when the lost one was to end them',
      storage({}, 'now'),
      given({ volumes: [going] }),
      ['ensure node-n2 on p1 retained', 'state deleting', 'wait'],
    ],
    [
      'it is waited for where there is none',
      storage({}, 'now'),
      given({ successorNode: undefined, volumes: [shared()] }),
      ['state deleting', 'wait'],
    ],
    [
      'but not when its server is given up by force',
      storage({}, 'now'),
      given({ successorNode: undefined, isReleased: true, volumes: [shared()] }),
      ['remove node-n1', 'state deleting', 'wait'],
    ],
    [
      'the lost one keeps its volume until the other has seen its own',
      storage({}, 'now'),
      given({ volumes: [shared(), justMade] }),
      ['state deleting', 'wait'],
    ],
    [
      'then it lets the data go',
      storage({}, 'now'),
      given({ volumes: [shared(), shared({ isRetained: true }, 'n2')] }),
      ['ensure node-n1 on p1 retained', 'remove node-n1', 'state deleting', 'wait'],
    ],
    [
      'which goes by itself where it was on its way',
      storage({}, 'now'),
      given({ volumes: [going, shared({ isRetained: true }, 'n2')] }),
      ['state deleting', 'wait'],
    ],
    [
      'and the other ends them',
      storage({}, 'now'),
      given({ volumes: [shared({ isRetained: true }, 'n2')] }),
      ['ensure node-n2 on p1', 'remove node-n2', 'state deleting'],
    ],
    [
      'a disk that lies on the lost host alone is left to it',
      storage({}, 'now'),
      given({ volumes: [volume(READY)] }),
      ['ensure node-n1', 'remove node-n1', 'state deleting'],
    ],
  ])('deleted after its node was lost, %s', (_why, object, world, expected) =>
    expect(actionLines(plan(object, world))).toEqual(expected),
  )
})
