import { describe, expect, test } from 'vitest'
import type { Observed } from '../../../../controllers/nouns/storage/observed.ts'
import { present } from '../../../../controllers/kit/operation/decision.ts'
import { plan as planAt } from '../../../../controllers/nouns/storage/plan.ts'
import type { StorageObject, VolumeObject } from '../../../../controllers/nouns/storage/volumes.ts'
import { defined } from '../../../../domain/defined.ts'
import type { KubeObject } from '../../../../kit/kube/object.ts'
import type { Action } from '../../../../kit/reconcile/action.ts'
import type { VolumeSpec, VolumeStatus } from '../../../../resources/instance/index.ts'
import type { ServerSpec, ServerStatus } from '../../../../resources/server/index.ts'
import type { OperationProgress, OperationStanza } from '../../../../resources/kit/shapes.ts'
import type { StorageSpec, StorageStatus } from '../../../../resources/storage/index.ts'
import { planOutcome } from '../../plan-outcome.ts'

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
    ...defined({ deletionTimestamp }),
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
  ...defined({ status }),
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
    ...defined({ deletionTimestamp }),
  },
  spec: { ...reference, ...spec },
  ...defined({ status }),
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

const plan = (object: StorageObject, world: Observed) => planAt(object, world, new Date(0))

/** One line for each action; a volume with its node and what is its own. */
const actionLines = (actions: readonly Action[]) =>
  actions.map((action) => {
    if (action.do === 'status')
      return `state ${[action.status['state'], ...present(action.status['stateDetail'])].map(String).join(': ')}`
    if (action.do === 'remove') return `remove ${action.key.namespace}`
    if (action.do === 'change') return `change ${JSON.stringify(action.patch)}`
    if (action.do !== 'ensure') return action.do
    const { source, copyFrom, serve, pool, isRetained, isCurrent, arrivingFor } = action.draft.spec as VolumeSpec
    return [
      `ensure ${action.draft.metadata.namespace}`,
      source && `${source.kind} ${source.name}`,
      copyFrom && `from ${copyFrom.host}:${copyFrom.port}`,
      serve && `serves ${serve.id}`,
      pool && `on ${pool}`,
      isRetained === true && 'retained',
      isCurrent === true && 'current',
      arrivingFor && `for ${arrivingFor}`,
    ]
      .filter(Boolean)
      .join(' ')
  })
type Row = readonly [string, StorageObject, Observed, readonly string[]]

test.each<Row>([
  [
    'tells what the host does while it makes the disk',
    storage({}, undefined, { state: 'creating', nodeName: 'n1' }),
    observed({ volumes: [volume({ state: 'creating', detail: 'Template tiny-linux is being built.' })] }),
    ['ensure node-n1', 'state creating: Template tiny-linux is being built.'],
  ],
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
    metadata: { namespace: 'node-n1', name: 's1', finalizers: ['svccloud.dev/agent'] },
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
      'what lies on the target since an earlier move is let go with the data kept',
      storage(),
      moving('preparing', { volumes: [shared(), shared({ source: { kind: 'template', name: 'tiny-linux' } }, 'n2')] }),
      ['ensure node-n1 on p1', 'ensure node-n2 template tiny-linux on p1 retained', 'remove node-n2', 'state online'],
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
      ['remove node-n1', 'ensure node-n2 copy op-1 current', 'state online'],
    ],
    [
      'never before',
      storage(),
      observed({ node: 'n2', volumes: [volume(READY), { ...copy, status: { state: 'creating' } }] }),
      ['ensure node-n2 copy op-1 current', 'state creating'],
    ],
    [
      'a disk that only another node has is not made a second time',
      storage(),
      observed({ node: 'n2', volumes: [volume(READY)] }),
      ['state error: The disk is on node n1, which the server is not on.'],
    ],
    [
      'a shared disk that the new node does not show yet is not made a second time',
      storage(),
      observed({ node: 'n2', volumes: [shared()] }),
      ['ensure node-n2 on p1', 'ensure node-n1 on p1 retained', 'remove node-n1', 'state creating'],
    ],
    [
      'deleted in the middle, the data shall go with the volume of its node',
      storage({}, 'now'),
      observed({ isInUse: false, node: 'n2', volumes: [shared(), shared({ isRetained: true }, 'n2')] }),
      ['ensure node-n2 on p1', 'state deleting'],
    ],
    [
      'which goes last: the others first',
      storage({}, 'now'),
      observed({ isInUse: false, node: 'n2', volumes: [shared(), shared({}, 'n2')] }),
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
      ['remove node-n1', 'ensure node-n2 on p2 current', 'state online'],
    ],
    [
      'never before the copy is whole',
      moved,
      isThere({ volumes: [shared(), { ...copied, status: { state: 'creating' } }] }),
      ['ensure node-n2 copy op-1 on p2 current', 'state creating'],
    ],
    [
      'deleted on the way, both data go',
      storage({}, 'now'),
      observed({ isInUse: false, volumes: [shared(), copied] }),
      ['ensure node-n2 on p2 current', 'remove node-n2', 'state deleting'],
    ],
  ])('to another zone, %s', (_why, object, world, expected) =>
    expect(actionLines(plan(object, world))).toEqual(expected),
  )

  const lostBoots = [{ node: 'n1', bootId: 'b1' }]
  const ensured = (actions: readonly Action[]) =>
    actions.flatMap((action) =>
      action.do === 'ensure'
        ? [[action.draft.metadata.namespace, (action.draft.spec as VolumeSpec).takesOverFrom]] // a Volume's
        : [],
    )
  test('a node that gets the disk of a lost one learns which boot has stopped, before that one releases it', () => {
    const world = (...volumes: readonly VolumeObject[]) =>
      observed({ node: 'n2', lostNodes: ['n1'], lostBoots, volumes })
    const lost = shared()
    expect(ensured(plan(storage(), world(lost)))[0]).toEqual(['node-n2', lostBoots])
    const arrived = shared({}, 'n2')
    expect(actionLines(plan(storage(), world(lost, arrived)))).not.toContain('remove node-n1')
    expect(ensured(plan(storage(), world(lost, arrived)))).toEqual([['node-n2', lostBoots]])
    const proven = shared({ takesOverFrom: lostBoots }, 'n2')
    expect(actionLines(plan(storage(), world(lost, proven)))).toContain('remove node-n1')
    expect(ensured(plan(storage(), observed({ node: 'n2', volumes: [proven] })))).toEqual([['node-n2', lostBoots]])
  })

  const given = (changes: Partial<Observed>) =>
    observed({ isInUse: false, lostNodes: ['n1'], successorNode: 'n2', ...changes })
  const { status: _status, ...justMade } = shared({ isRetained: true }, 'n2')
  const going = volume(READY, { pool: 'p1' }, 'n1', 'now')
  const withdrawn = volume(READY, { pool: 'p1', isRetained: true }, 'n1', 'now')

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
      'it no more than lets them go when its node is back meanwhile: the other ends them',
      storage({}, 'now'),
      given({ lostNodes: [], volumes: [withdrawn, shared({ isRetained: true }, 'n2')] }),
      ['state deleting'],
    ],
    [
      'it is to end them again first when its node is back before it has gone',
      storage({}, 'now'),
      given({ lostNodes: [], volumes: [shared({ isRetained: true }), shared({ isRetained: true }, 'n2')] }),
      ['ensure node-n1 on p1', 'state deleting'],
    ],
    [
      'where both let them go, a third is told of them',
      storage({}, 'now'),
      given({
        lostNodes: [],
        successorNode: 'n3',
        volumes: [withdrawn, volume(READY, { pool: 'p1', isRetained: true }, 'n2', 'now')],
      }),
      ['ensure node-n3 on p1 retained', 'state deleting', 'wait'],
    ],
    [
      'the other stays for them also when its node seems to be back, and may have been released before',
      storage({}, 'now'),
      given({ lostNodes: [], volumes: [going, shared({ isRetained: true }, 'n2')] }),
      ['state deleting'],
    ],
    [
      'once it has gone',
      storage({}, 'now'),
      given({ lostNodes: [], volumes: [shared({ isRetained: true }, 'n2')] }),
      ['ensure node-n2 on p1', 'remove node-n2', 'state deleting'],
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

describe('a boot storage that was made just now', () => {
  const NEW = new Date(60_000)
  const made = (changes: Partial<StorageSpec> = {}, status?: StorageStatus): StorageObject => {
    const object = storage(changes, undefined, status)
    return { ...object, metadata: { ...object.metadata, creationTimestamp: NEW.toISOString() } }
  }
  const lines = (object: StorageObject, world: Observed, seconds = 0) =>
    actionLines(planAt(object, world, new Date(NEW.getTime() + seconds * 1_000)))
  const known = (status?: VolumeStatus) => observed({ volumes: [volume(status)] })

  test('says nothing before its host does', () => {
    expect(lines(made(), observed())).toEqual(['ensure node-n1 template tiny-linux', 'wait'])
    expect(lines(made(), known(), 59)).toEqual(['ensure node-n1', 'wait'])
  })
  test('says that it is being made when that takes long, or the clocks differ', () => {
    expect(lines(made(), known(), 60)).toEqual(['ensure node-n1', 'state creating'])
    expect(lines(made(), known(), -1)).toEqual(['ensure node-n1', 'state creating'])
  })
  test('says what the host says', () => {
    expect(lines(made(), known({ state: 'creating', detail: 'Being built.' }))).toContain(
      'state creating: Being built.',
    )
    expect(lines(made(), known(READY))).toContain('state online')
  })
  test('keeps reporting what it reported', () =>
    expect(lines(made({}, { state: 'creating' }), known())).toContain('state creating'))
})

describe('a storage that is no boot storage', () => {
  const claimOf = (phase: 'detached' | 'arriving' | 'attached' | 'leaving', isForced = false) => ({
    accountId: 'a',
    storageId: 'web',
    zone: 'z1',
    sizeGibibytes: 3,
    phase,
    node: phase === 'attached' ? undefined : 'n1',
    serverId: phase === 'detached' ? undefined : 'web',
    isForced,
  })
  const data = (
    kind: 'storage.create' | 'storage.attach' | 'storage.detach' | 'storage.resize' | 'storage.delete' | 'storage.move',
    spec: Partial<StorageSpec> = {},
    deletionTimestamp?: string,
  ): StorageObject => {
    const { serverId: _serverId, source: _source, ...rest } = storage().spec
    const operation = {
      id: 'op-1',
      kind,
      requestedAt: '2026-01-01T00:00:00Z',
      deadlineAt: '2026-01-01T00:10:00Z',
      actor: 'user:1',
      requestId: 'r-1',
      arguments: { force: 'false' },
    }
    const object = storage({}, deletionTimestamp, { state: 'online', nodeName: 'n1', sizeGibibytes: 3 })
    return { ...object, spec: { ...rest, isBoot: false, operation, ...spec } }
  }
  const ended = (kind: OperationProgress['kind']): OperationProgress => ({
    id: 'op-1',
    kind,
    status: 'succeeded',
    step: 'released',
    stepIndex: 2,
    stepCount: 2,
    error: '',
    actor: 'user:1',
    createdAt: '2026-01-01T00:00:00Z',
    deadlineAt: '2026-01-01T00:10:00Z',
  })
  const world = (changes: Partial<Observed>): Observed =>
    observed({ accountId: 'a', serverNode: 'n1', isServerGone: false, volumes: [volume(READY)], ...changes })
  const steps = (actions: readonly Action[]) =>
    actions.flatMap((action) =>
      action.do === 'effect'
        ? [
            action.name === 'claim'
              ? `claim ${String((action.input as { readonly change: string }).change)}`
              : action.name,
          ]
        : action.do === 'operation'
          ? [[action.step, action.outcome].filter(Boolean).join(' ')]
          : action.do === 'finalized'
            ? ['finalized']
            : action.do === 'change'
              ? [`change ${JSON.stringify(action.patch)}`]
              : [],
    )
  const NOW = new Date('2026-01-01T00:01:00Z')
  const serving = volume(READY, { serve: { id: 'op-1', secretName: 'copy-s1' } })
  const arriving = volume(undefined, { source: { kind: 'copy', name: 'op-1' } }, 'n2')
  const LATE = new Date('2026-01-01T00:10:01Z')
  const FROM_BACKUP = { kind: 'backup', id: 'b1' } as const
  const cancelled = (state: 'creating' | 'online'): StorageObject => {
    const object = data('storage.create', { source: FROM_BACKUP })
    const { operation } = object.spec
    if (operation === undefined) throw new Error('there is no operation')
    return {
      ...object,
      spec: { ...object.spec, operation: { ...operation, arguments: { cancel: 'true' } } },
      status: { ...object.status, state },
    }
  }
  /** Of its newest generation. */
  const withCondition = (object: StorageObject, granted: 'True' | 'False', message = ''): StorageObject => ({
    ...object,
    metadata: { ...object.metadata, generation: 1 },
    status: {
      ...object.status,
      state: 'creating',
      conditions: [
        { type: 'KeyShared', status: granted, reason: 'R', message, observedGeneration: 1, lastTransitionTime: '' },
      ],
    },
  })

  test.each<readonly [string, StorageObject, Partial<Observed>, readonly string[]]>([
    ['takes quota and room first', data('storage.create'), { volumes: [] }, ['claim create', 'claimed']],
    ['is then made on its host', data('storage.create'), { claim: claimOf('detached'), volumes: [] }, ['made']],
    [
      'that is made from a backup takes room on a host that reaches those',
      data('storage.create', { source: FROM_BACKUP }),
      { volumes: [] },
      ['claim create', 'claimed'],
    ],
    [
      'gives its host the key of the backup first',
      data('storage.create', { source: FROM_BACKUP }),
      { claim: claimOf('detached'), volumes: [], isBackupOnline: true },
      ['shareBackupKey', 'made'],
    ],
    [
      'fails at once when there is no key',
      withCondition(data('storage.create', { source: FROM_BACKUP }), 'False', 'There are no sealing keys.'),
      { claim: claimOf('detached'), volumes: [], isBackupOnline: true },
      ['made failed'],
    ],
    [
      'fails at once when the backup is gone',
      withCondition(data('storage.create', { source: FROM_BACKUP }), 'True'),
      { claim: claimOf('detached'), volumes: [] },
      ['made failed'],
    ],
    [
      'whose creation is cancelled has what its host made removed first',
      cancelled('creating'),
      { claim: claimOf('detached'), volumes: [volume()] },
      ['made'],
    ],
    [
      'and is over when nothing of it is left, and its source is free',
      cancelled('creating'),
      { claim: claimOf('detached'), volumes: [], holdsSource: true },
      ['releaseSource', 'made cancelled'],
    ],
    ['also before it took anything', cancelled('creating'), { volumes: [] }, ['made cancelled']],
    ['too late when it is made', cancelled('online'), { claim: claimOf('detached') }, ['attached succeeded']],
    ['is made when the host has it', data('storage.create'), { claim: claimOf('detached') }, ['attached succeeded']],
    [
      'is given to the server of its creation when it is made',
      data('storage.create', { serverId: 'web' }),
      { claim: claimOf('detached') },
      ['claim attach', 'attached'],
    ],
    [
      "on the host of the server is the server's at once",
      data('storage.attach', { serverId: 'web' }),
      { claim: claimOf('arriving') },
      ['land', 'brought'],
    ],
    [
      'on another host is copied first',
      data('storage.attach', { serverId: 'web' }),
      { claim: claimOf('arriving'), serverNode: 'n2', volumes: [serving, arriving] },
      ['shareKey', 'brought'],
    ],
    [
      'shares no key before the copy has a volume on both hosts',
      data('storage.attach', { serverId: 'web' }),
      { claim: claimOf('arriving'), serverNode: 'n2', volumes: [serving] },
      ['brought'],
    ],
    [
      'shares no key before the host of the data is to serve them',
      data('storage.attach', { serverId: 'web' }),
      { claim: claimOf('arriving'), serverNode: 'n2', volumes: [volume(READY), arriving] },
      ['brought'],
    ],
    [
      'shares no key with the volume of an older copy',
      data('storage.attach', { serverId: 'web' }),
      {
        claim: claimOf('arriving'),
        serverNode: 'n2',
        volumes: [serving, volume(undefined, { source: { kind: 'copy', name: 'op-0' } }, 'n2')],
      },
      ['brought'],
    ],
    [
      'is attached when the guest has the disk, and not before',
      data('storage.attach', { serverId: 'web' }),
      { claim: claimOf('attached'), guest: 'unknown' },
      ['attached'],
    ],
    [
      'is attached when the guest has the disk',
      data('storage.attach', { serverId: 'web' }),
      { claim: claimOf('attached'), guest: 'has' },
      ['attached succeeded'],
    ],
    [
      'cannot be attached to a server that is gone',
      data('storage.attach', { serverId: 'web' }),
      { claim: claimOf('detached'), isServerGone: true },
      ['change {"spec":{"serverId":null}}', 'claimed failed'],
    ],
    [
      'is released by the server first',
      data('storage.detach'),
      { claim: claimOf('attached') },
      ['release', 'released'],
    ],
    [
      'stays with its server until the guest has released it',
      data('storage.detach'),
      { claim: claimOf('leaving'), guest: 'unknown' },
      ['detached'],
    ],
    [
      'leaves it when the guest has released it',
      data('storage.detach'),
      { claim: claimOf('leaving'), guest: 'has_not' },
      ['detach', 'detached'],
    ],
    ['is detached then', data('storage.detach'), { claim: claimOf('detached') }, ['detached succeeded']],
    [
      'grows when there is room',
      data('storage.resize', { sizeGibibytes: 4 }),
      { claim: claimOf('detached'), heldGibibytes: 3 },
      ['claim resize', 'claimed'],
    ],
    [
      'has grown when the host has let it grow',
      data('storage.resize', { sizeGibibytes: 4 }),
      {
        claim: claimOf('detached'),
        heldGibibytes: 4,
        volumes: [volume({ ...READY, sizeGibibytes: 4 }, { sizeGibibytes: 4 })],
      },
      ['grown succeeded'],
    ],
    [
      'is deleted on its host first',
      data('storage.delete', {}, 'now'),
      { claim: claimOf('detached'), isInUse: false },
      ['removed'],
    ],
    [
      'gives back what it held when nothing of it is left',
      data('storage.delete', {}, 'now'),
      { claim: claimOf('detached'), isInUse: false, volumes: [] },
      ['giveBack', 'released succeeded', 'finalized'],
    ],
    [
      'is released when only that was left to do',
      {
        ...data('storage.delete', {}, 'now'),
        status: { state: 'deleting', operation: ended('storage.delete') },
      },
      { isInUse: false, volumes: [] },
      ['finalized'],
    ],
  ])('%s', (_why, object, changes, expected) => expect(steps(planAt(object, world(changes), NOW))).toEqual(expected))

  test('leaves its missing server once the deletion of that was ordered', () => {
    const attached = data('storage.attach', { serverId: 'web' })
    const status = { ...attached.status, state: 'online', operation: ended('storage.attach') }
    const object = { ...attached, status } as StorageObject // has a status
    const missing = { claim: claimOf('detached'), isServerGone: true }
    const changes = (seen: Partial<Observed>) =>
      steps(planAt(object, world(seen), NOW)).filter((step) => step.startsWith('change'))
    expect(changes({ ...missing, isServerRemovalOrdered: false })).toEqual([])
    expect(changes({ ...missing, isServerRemovalOrdered: true })).toEqual(['change {"spec":{"serverId":null}}'])
  })

  test('that is made from a backup is filled from it once its host has the key', () => {
    const object = withCondition(data('storage.create', { source: FROM_BACKUP }), 'True')
    const surroundings = world({ claim: claimOf('detached'), volumes: [], isBackupOnline: true })
    expect(actionLines(planAt(object, surroundings, NOW))).toEqual([
      'effect',
      'ensure node-n1 backup b1',
      'operation',
      'state creating',
    ])
  })

  describe('that is moved', () => {
    const moved = (given: Record<string, string> = {}, changes: Partial<StorageSpec> = {}): StorageObject => {
      const object = data('storage.move')
      const operation = object.spec.operation && {
        ...object.spec.operation,
        arguments: { source_node_id: 'n1', ...given },
      }
      return { ...object, spec: { ...object.spec, operation, ...changes } }
    }
    const attached = { claim: claimOf('attached') }
    const bound = { claim: { ...claimOf('detached'), targetNode: 'n2' } }
    const landed = { claim: { ...claimOf('detached'), node: 'n2' }, node: 'n2' }
    const target = { node: 'n2', zone: 'z1', operationId: 'op-1', pools: [] as readonly string[] }
    const copied = volume(READY, { source: { kind: 'copy', name: 'op-1' } }, 'n2')
    const webServer = (
      changes: { readonly state?: ServerStatus['state']; readonly operation?: OperationStanza } = {},
      progress?: OperationProgress,
    ): KubeObject<ServerSpec, ServerStatus> => ({
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: 'Server',
      metadata: { name: 'web', namespace: 'acct-1', uid: 'uid-web' },
      // what the plan reads of it
      spec: (changes.operation === undefined ? {} : { operation: changes.operation }) as ServerSpec,
      status: { state: changes.state ?? 'started', ...defined({ operation: progress }) },
    })
    const deleted = (server: ReturnType<typeof webServer>): ReturnType<typeof webServer> => ({
      ...server,
      metadata: { ...server.metadata, deletionTimestamp: '2026-01-01T00:00:30Z' },
    })
    const along: OperationStanza = {
      id: 'op-9',
      kind: 'server.migrate',
      requestedAt: '2026-01-01T00:00:00Z',
      deadlineAt: '2026-01-01T01:00:00Z',
      actor: 'system:storages',
      requestId: 'op-9',
      arguments: { storage_operation_id: 'op-1' },
    }
    const over = (status: 'succeeded' | 'failed'): OperationProgress => ({
      ...ended('server.migrate'),
      id: 'op-9',
      status,
      error: status === 'failed' ? 'No room.' : '',
    })

    test.each<readonly [string, StorageObject, Partial<Observed>, readonly string[]]>([
      ['holds room there first', moved(), { claim: claimOf('detached') }, ['reserveMove', 'reserved']],
      [
        'holds room on the node that is named, not where an earlier move would have gone',
        moved({ target_node_id: 'n3' }),
        bound,
        ['reserveMove', 'reserved'],
      ],
      ['is served before it is copied', moved(), { ...bound, target }, ['brought']],
      [
        'is copied with a key of its own',
        moved(),
        { ...bound, target, volumes: [serving, arriving] },
        ['shareKey', 'brought'],
      ],
      [
        'is there when all of it is',
        moved(),
        { ...bound, target, volumes: [serving, copied] },
        ['landMove', 'brought'],
      ],
      [
        'is not there by what an older copy has left',
        moved(),
        { ...bound, target, volumes: [serving, volume(READY, { source: { kind: 'copy', name: 'op-0' } }, 'n2')] },
        ['brought'],
      ],
      [
        'is not there by a disk that is on its way out',
        moved(),
        {
          ...bound,
          target,
          volumes: [serving, volume(READY, { source: { kind: 'copy', name: 'op-1' } }, 'n2', 'now')],
        },
        ['brought'],
      ],
      ['waits for its source to be freed', moved(), { ...landed, volumes: [copied, volume(READY)] }, ['cleaned']],
      ['has moved when nothing is left there', moved(), { ...landed, volumes: [copied] }, ['cleaned succeeded']],
      [
        'is of the other tier then',
        moved({ tier: 'local-nvme' }),
        { ...landed, volumes: [copied] },
        ['change {"spec":{"tier":"local-nvme"}}', 'cleaned'],
      ],
      [
        'takes its server along',
        moved({}, { serverId: 'web' }),
        { ...attached, server: webServer() },
        ['order', 'reserved'],
      ],
      [
        'waits for what its server is busy with',
        moved({}, { serverId: 'web' }),
        { ...attached, server: webServer({ operation: { ...along, arguments: {} } }) },
        ['reserved'],
      ],
      [
        'waits for its server to arrive',
        moved({}, { serverId: 'web' }),
        { ...attached, server: webServer({ operation: along }) },
        ['brought'],
      ],
      [
        'never asks its server twice',
        moved({}, { serverId: 'web' }),
        { ...attached, server: webServer({ operation: along }, over('failed')) },
        ['brought failed'],
      ],
      [
        'has moved when its server has',
        moved({}, { serverId: 'web' }),
        {
          ...attached,
          node: 'n2',
          serverNode: 'n2',
          server: webServer({ operation: along }, over('succeeded')),
          volumes: [copied],
        },
        ['cleaned succeeded'],
      ],
      [
        'has not come to its tier when its server was moved for another reason',
        moved({ tier: 'standard' }, { serverId: 'web' }),
        { ...attached, node: 'n2', serverNode: 'n2', server: webServer(), volumes: [copied] },
        ['order', 'reserved'],
      ],
      [
        'fails when its server could not bring it to its tier',
        moved({ tier: 'standard' }, { serverId: 'web' }),
        {
          ...attached,
          node: 'n2',
          serverNode: 'n2',
          server: webServer({ operation: along }, over('succeeded')),
          volumes: [copied],
        },
        ['brought failed'],
      ],
      [
        'has come to shared storage with its server',
        moved({ tier: 'standard' }, { serverId: 'web' }),
        {
          ...attached,
          node: 'n2',
          serverNode: 'n2',
          server: webServer({ operation: along }, over('succeeded')),
          volumes: [volume(READY, { pool: 'p1' }, 'n2')],
        },
        ['cleaned succeeded'],
      ],
      [
        'has come to its tier on the very node where it was asked for, which its server had left meanwhile',
        moved({ tier: 'standard' }, { serverId: 'web' }),
        {
          ...attached,
          server: webServer({ operation: along }, over('succeeded')),
          volumes: [volume(READY, { pool: 'p1' })],
        },
        ['cleaned succeeded'],
      ],
      [
        'arrives with its server when that is deleted on the way',
        moved({ tier: 'standard' }, { serverId: 'web' }),
        { ...attached, server: deleted(webServer({ operation: along })) },
        ['brought'],
      ],
      [
        'goes nowhere with a server that is being deleted',
        moved({}, { serverId: 'web' }),
        { ...attached, server: deleted(webServer()) },
        ['reserved failed'],
      ],
      [
        'says that a server has brought it, as it was, to the node that is named, instead of copying it onto itself',
        moved({ tier: 'standard', target_node_id: 'n2' }),
        { ...landed, volumes: [copied] },
        ['reserved failed'],
      ],
      [
        'is not called moved to its tier when its server let it go on another node as it was',
        moved({ tier: 'standard' }),
        { ...landed, volumes: [copied] },
        ['reserveMove', 'reserved'],
      ],
      [
        'has not moved when its server went elsewhere',
        moved({ target_node_id: 'n3' }, { serverId: 'web' }),
        {
          ...attached,
          node: 'n2',
          serverNode: 'n2',
          server: webServer({ operation: along }, over('succeeded')),
          volumes: [copied],
        },
        ['brought failed'],
      ],
    ])('%s', (_why, object, changes, expected) => expect(steps(planAt(object, world(changes), NOW))).toEqual(expected))

    test('says which tier it is of now, once', () => {
      const events = (tier: StorageSpec['tier']) =>
        planOutcome(planAt(moved({ tier: 'local-nvme' }, { tier }), world({ ...landed, volumes: [copied] }), NOW))
          .events
      expect(events('standard')).toEqual(['tier_changed: The storage is of tier local-nvme now.'])
      expect(events('local-nvme')).toEqual([])
    })

    test('gives the room back when it is not done in time, unless its server is on its way', () => {
      expect(steps(planAt(moved(), world({ ...bound, target }), LATE))).toEqual(['releaseMove', 'brought failed'])
      const busy = { ...attached, server: webServer({ operation: along }) }
      expect(steps(planAt(moved({}, { serverId: 'web' }), world(busy), LATE))).toEqual(['brought'])
    })

    test('gives the room back when another operation came in between', () =>
      expect(steps(planAt(data('storage.resize'), world({ ...bound, heldGibibytes: 3 }), NOW))).toContain(
        'releaseMove',
      ))

    test('goes with the running guest to shared storage when it is to become of that tier', () => {
      const object = moved({ tier: 'standard' }, { serverId: 'web', tier: 'local-nvme' })
      const mirror = { target: { ...target, operationId: 'op-9', pools: ['p1'] } }
      const migration = { operationId: 'op-9', state: 'preparing' } as const
      const lines = (changed: StorageObject) =>
        actionLines(
          planAt(changed, world({ ...attached, ...mirror, migration, server: webServer({ operation: along }) }), NOW),
        )
      expect(lines(object)).toContain('ensure node-n2 mirror op-9 on p1')
      expect(lines(moved({}, { serverId: 'web', tier: 'local-nvme' }))).toContain('ensure node-n2 mirror op-9')
    })

    test('moves unchanged with a server that moves for another reason, from any tier that it waits for', () => {
      const lines = (operation: OperationStanza) =>
        actionLines(
          planAt(
            moved({ tier: 'local-nvme' }, { serverId: 'web' }),
            world({
              ...attached,
              target: { ...target, operationId: 'op-9' },
              migration: { operationId: 'op-9', state: 'preparing' },
              server: webServer({ operation }),
              volumes: [volume(READY, { pool: 'p1' })],
            }),
            NOW,
          ),
        ).filter((line) => line.includes('node-n2'))
      expect(lines(along)).toEqual(['ensure node-n2 mirror op-9'])
      expect(lines({ ...along, arguments: {} })).toEqual(['ensure node-n2 on p1 retained for op-9'])
    })

    test('goes there too when another storage of its server does, if it is of that tier', () => {
      const operation = { ...along, arguments: { storage_operation_id: 'other', storage_tier: 'standard' } }
      const arriving = {
        ...attached,
        target: { ...target, operationId: 'op-9', pools: ['p1'] },
        migration: { operationId: 'op-9', state: 'preparing' } as const,
        server: webServer({ operation }),
      }
      const lines = (tier: StorageSpec['tier'], server = arriving.server) => {
        const object = data('storage.attach', { serverId: 'web', tier })
        const status = { ...object.status, state: 'online', operation: ended('storage.attach') } as const
        return actionLines(planAt({ ...object, status }, world({ ...arriving, server }), NOW))
      }
      expect(lines('standard')).toContain('ensure node-n2 mirror op-9 on p1')
      expect(lines('local-nvme')).toContain('ensure node-n2 mirror op-9')
      expect(lines('standard', webServer({ operation: along }))).toContain('ensure node-n2 mirror op-9')
    })

    test('tells its server the target, and the allowed kind of move', () => {
      const ordered = (given: Record<string, string>, state: ServerStatus['state'] = 'started') =>
        planAt(moved(given, { serverId: 'web' }), world({ ...attached, server: webServer({ state }) }), NOW).flatMap(
          (action) => (action.do === 'effect' && action.name === 'order' ? [action.input.arguments] : []),
        )
      const own = { storage_operation_id: 'op-1' }
      expect(ordered({})).toEqual([own])
      expect(ordered({ tier: 'local-nvme', target_node_id: 'n2' })).toEqual([{ ...own, target_node_id: 'n2' }])
      expect(ordered({ tier: 'standard', mode: 'live' })).toEqual([{ ...own, mode: 'live', storage_tier: 'standard' }])
      expect(ordered({ tier: 'standard', mode: 'live' }, 'stopped')).toEqual([{ ...own, storage_tier: 'standard' }])
    })

    test('leaves shared storage for a host when it is to become of that tier', () => {
      const shared = volume(READY, { pool: 'p1' })
      const world1 = world({
        ...bound,
        target: { ...target, pools: ['p1'] },
        migration: { operationId: 'op-1', state: 'detached' },
        volumes: [shared],
        isGuestOff: true,
        moveSecretName: 'copy-s1',
      })
      expect(actionLines(planAt(moved({ tier: 'local-nvme' }), world1, NOW))).toContain('ensure node-n2 copy op-1')
      expect(actionLines(planAt(moved(), world1, NOW))).toContain('ensure node-n2 on p1 retained for op-1')
    })
  })

  const bothGone = ['Secret node-n2', 'Volume node-n2', 'Secret node-n1']
  test.each<readonly [string, StorageObject, Partial<Observed>, readonly string[]]>([
    ['it was released', data('storage.detach'), { claim: claimOf('detached') }, bothGone],
    [
      'its server is gone',
      data('storage.attach', { serverId: 'web' }),
      { claim: claimOf('detached'), serverNode: undefined, isServerGone: true },
      bothGone,
    ],
    [
      'its server was brought to a third host',
      data('storage.attach', { serverId: 'web' }),
      { claim: claimOf('arriving'), target: { node: 'n3', zone: 'z1', operationId: 'op-1', pools: [] } },
      bothGone,
    ],
    [
      'the host of the data no longer has them ready',
      data('storage.detach'),
      {
        claim: claimOf('detached'),
        volumes: [{ ...serving, status: { state: 'creating' } }, arriving],
      },
      ['Secret node-n2', 'Secret node-n1'],
    ],
    [
      'the storage is deleted',
      data('storage.delete', {}, 'now'),
      { claim: claimOf('detached'), isInUse: false },
      ['Secret node-n1', 'Secret node-n2', 'Volume node-n2'],
    ],
    [
      'somebody deleted the volume of the copy',
      data('storage.attach', { serverId: 'web' }),
      {
        claim: claimOf('arriving'),
        serverNode: 'n2',
        volumes: [serving, { ...arriving, metadata: { ...arriving.metadata, deletionTimestamp: 'now' } }],
        target: { node: 'n2', zone: 'z1', operationId: 'op-1', pools: [] },
        migration: { operationId: 'op-1', state: 'detached' },
        moveSecretName: 'copy-s1',
        isGuestOff: true,
      },
      ['Secret node-n2'],
    ],
    [
      'the data have come',
      data('storage.attach', { serverId: 'web' }),
      { claim: claimOf('attached'), node: 'n2', serverNode: 'n2', volumes: [serving, { ...arriving, status: READY }] },
      ['Secret node-n1', 'Secret node-n2', 'Secret node-n1', 'Volume node-n1'],
    ],
  ])('leaves no key of a copy behind when %s', (_why, object, changes, expected) => {
    const actions = planAt(object, world({ volumes: [serving, arriving], ...changes }), NOW)
    expect(
      actions.flatMap((action) => (action.do === 'remove' ? [`${action.type.kind} ${action.key.namespace}`] : [])),
    ).toEqual(expected)
  })

  test.each<readonly [string, Partial<StorageSpec>, Partial<Observed>, readonly string[]]>([
    ['goes with its server when that is asked for', {}, { isServerDeletedWithStorages: true }, ['remove acct-1']],
    ['stays when its server goes alone', {}, { isServerDeletedWithStorages: false }, []],
    ['stays when it is protected', { isProtected: true }, { isServerDeletedWithStorages: true }, []],
  ])('%s', (_why, spec, changes, expected) => {
    const object = data('storage.attach', { serverId: 'web', ...spec })
    const actions = planAt(object, world({ claim: claimOf('attached'), guest: 'has', ...changes }), NOW)
    expect(actionLines(actions.filter((action) => action.do === 'remove'))).toEqual(expected)
  })

  test.each<readonly [string, StorageObject, Partial<Observed>, readonly string[]]>([
    [
      'keeps the disk that its guest does not release in time',
      data('storage.detach'),
      { claim: claimOf('leaving'), guest: 'unknown' },
      ['keep', 'change {"spec":{"serverId":"web"}}', 'detached failed'],
    ],
    [
      'is as large as before when it could not grow in time',
      data('storage.resize', { sizeGibibytes: 4 }),
      { claim: claimOf('detached'), heldGibibytes: 4 },
      ['change {"spec":{"sizeGibibytes":3}}', 'fit', 'grown failed'],
    ],
    [
      'goes on being deleted',
      data('storage.delete', {}, 'now'),
      { claim: claimOf('detached'), isInUse: false },
      ['removed'],
    ],
  ])('after its deadline %s', (_why, object, changes, expected) =>
    expect(steps(planAt(object, world(changes), LATE))).toEqual(expected),
  )
})
