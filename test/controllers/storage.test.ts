import { expect, test } from 'vitest'
import { plan, type Seen } from '../../controllers/storage.ts'
import type { Action } from '../../kit/reconcile/action.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import type { VolumeStatus } from '../../resources/instance.ts'
import type { StorageSpec, StorageStatus } from '../../resources/storage.ts'

type StorageObject = KubeObject<StorageSpec, StorageStatus>
const storage = (spec: Partial<StorageSpec> = {}, deletionTimestamp?: string): StorageObject => ({
  apiVersion: 'svccloud.dev/v1alpha1', kind: 'Storage', metadata: { name: 'web', namespace: 'acct-1', uid: 's1', ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }) },
  spec: { zone: 'z1', title: '', sizeGibibytes: 3, tier: 'standard', isBoot: true, serverId: 'web', source: { kind: 'template', id: 'tiny-linux' }, labels: {}, isProtected: false, ...spec },
})
const volume = (status?: VolumeStatus): NonNullable<Seen['volume']> => ({
  apiVersion: 'svccloud.dev/v1alpha1', kind: 'Volume', metadata: { name: 's1', namespace: 'node-n1' }, spec: { storage: { namespace: 'acct-1', name: 'web', uid: 's1' }, sizeGibibytes: 3 },
  ...(status === undefined ? {} : { status }),
})
const seen = (changes: Partial<Seen> = {}): Seen => ({ node: 'n1', region: 'eu', volume: undefined, isInUse: true, ...changes })
const told = (actions: readonly Action[]) => actions.map((action) =>
  action.do === 'status' ? `state ${String(action.status['state'])}${action.status['stateDetail'] === undefined ? '' : `: ${String(action.status['stateDetail'])}`}` : action.do === 'ensure' || action.do === 'remove' ? `${action.do} ${action.type.kind}` : action.do)

test.each<readonly [string, StorageObject, Seen, readonly string[]]>([
  ['waits for its server to be placed', storage(), seen({ node: undefined }), ['state creating', 'wait']],
  ['becomes a volume on the host of its server', storage(), seen(), ['ensure Volume', 'state creating']],
  ['is being made while the host works', storage(), seen({ volume: volume() }), ['state creating']],
  ['is online when the volume is ready', storage(), seen({ volume: volume({ state: 'ready' }) }), ['state online']],
  ['shows why the host could not make it', storage(), seen({ volume: volume({ state: 'error', detail: 'Disk full.' }) }), ['state error: Disk full.']],
  ['of another kind is refused', storage({ isBoot: false }), seen(), ['state error: Only boot storages, which are made with their server, are offered here.']],
  ['that is deleted under its server stays', storage({}, 'now'), seen({ volume: volume({ state: 'ready' }) }), ['state online']],
  ['goes with its server: the volume first', storage({}, 'now'), seen({ isInUse: false, volume: volume({ state: 'ready' }) }), ['remove Volume', 'state deleting']],
  ['then itself', storage({}, 'now'), seen({ isInUse: false }), ['finalized']],
  ['that never had a host goes too', storage({}, 'now'), seen({ isInUse: false, node: undefined }), ['finalized']],
])('a storage %s', (_why, object, world, expected) => expect(told(plan(object, world))).toEqual(expected))

test('the volume has what the host must know', () => {
  const ensured = plan(storage(), seen()).find((action) => action.do === 'ensure')
  expect(ensured?.draft).toEqual({
    metadata: { namespace: 'node-n1', name: 's1' }, spec: { storage: { namespace: 'acct-1', name: 'web', uid: 's1' }, sizeGibibytes: 3, source: { kind: 'template', name: 'tiny-linux' } },
  })
})
