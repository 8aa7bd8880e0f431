/** Supplement 7.4, row by row: what a custom image becomes, and what is done for it. */
import { expect, test } from 'vitest'
import type { CustomImageObject, ImageObject, Observed } from '../../../../controllers/nouns/custom-image/observed.ts'
import { plan } from '../../../../controllers/nouns/custom-image/plan.ts'
import { Secret } from '../../../../kit/kube/object.ts'
import type { CustomImageStatus } from '../../../../resources/custom-image/index.ts'
import type { ImageSpec, ImageStatus } from '../../../../resources/instance/index.ts'
import { NAME_TAKEN } from '../../../../resources/instance/name-taken.ts'

const NOW = new Date('2026-11-22T12:00:00Z')
const stanza = (kind: 'template.create' | 'template.delete' | 'template.copy') => ({
  id: 'op-1',
  kind,
  requestedAt: '2026-11-22T11:59:00Z',
  deadlineAt: '2026-11-22T18:00:00Z',
  actor: 'user:1',
  requestId: 'r-1',
})
const image = (
  kind: 'template.create' | 'template.delete' | undefined,
  status: Partial<CustomImageStatus> = {},
  isDeleting = false,
): CustomImageObject => ({
  apiVersion: '',
  kind: 'CustomImage',
  metadata: {
    name: 'mine',
    namespace: 'acct-1',
    uid: 'u',
    generation: 1,
    ...(isDeleting ? { deletionTimestamp: NOW.toISOString() } : {}),
  },
  spec: {
    zone: 'z',
    title: 'Mine',
    labels: {},
    source: { url: 'https://x.example/', checksum: 'A'.repeat(64) },
    ...(kind === undefined ? {} : { operation: stanza(kind) }),
  },
  status: { state: 'creating', observedGeneration: 1, ...status },
})
const done = { id: 'op-1', status: 'succeeded', step: 'fetched', stepIndex: 2 } as CustomImageStatus['operation']
const on = (
  node: string,
  status: Partial<ImageStatus> | undefined,
  isDeleting = false,
  spec: Partial<ImageSpec> = {},
): ImageObject =>
  ({
    metadata: {
      name: 'acct-1.mine',
      namespace: `node-${node}`,
      uid: `u-${node}`,
      ...(isDeleting ? { deletionTimestamp: NOW.toISOString() } : {}),
    },
    spec: { image: { namespace: 'acct-1', name: 'mine', uid: 'u' }, maximumGibibytes: 3, ...spec },
    status,
  }) as ImageObject // the plan looks at nothing else
const observed = (some: Partial<Observed> = {}): Observed => ({
  accountId: '1',
  isClaimed: true,
  claimedGibibytes: 3,
  isZoneKnown: true,
  nodes: ['a', 'b'],
  images: [],
  editor: 'user:kubernetes',
  ...some,
})

/** An Image that is as old as this. */
const aged = (seconds: number, one: ImageObject): ImageObject => ({
  ...one,
  metadata: { ...one.metadata, creationTimestamp: new Date(NOW.getTime() - seconds * 1_000).toISOString() },
})
const TAKEN: Partial<ImageStatus> = {
  state: 'error',
  conditions: [{ type: NAME_TAKEN, status: 'True', reason: 'OtherUid', message: '', lastTransitionTime: '' }],
}

/** The actions in words. */
const summary = (root: CustomImageObject, seen: Observed): string[] =>
  plan(root, seen, NOW).flatMap((action) => {
    if (action.do === 'effect') return [action.name]
    if (action.do === 'ensure') return [`image on ${action.draft.metadata.namespace ?? ''}`]
    if (action.do === 'remove') {
      const { name, namespace = '' } = action.key
      return [`remove ${action.type.kind}${action.type === Secret ? ` ${name}` : ''} in ${namespace}`]
    }
    if (action.do === 'operation') return [`operation ${action.outcome ?? action.step}`]
    if (action.do === 'status') return [`state ${String((action.status as CustomImageStatus).state)}`]
    if (action.do === 'change') return ['operation begun']
    return action.do === 'finalized' ? ['finalized'] : []
  })
const ready = { state: 'ready', sizeGibibytes: 3 } as const
/** Of an Image that is taken from its node, with the keys of its copies. */
const goes = (namespace: string): readonly string[] =>
  ['Secret image-copy-u', 'Secret image-u', 'Image'].map((what) => `remove ${what} in ${namespace}`)

test.each<[string, CustomImageObject, Observed, readonly string[]]>([
  [
    'made with kubectl it gets its operation',
    { ...image(undefined), status: undefined } as unknown as CustomImageObject, // as it is just after the write
    observed({ isClaimed: false }),
    ['operation begun'],
  ],
  [
    '(none), create: creating, and the quota is taken',
    image('template.create'),
    observed({ isClaimed: false }),
    ['claim', 'operation claimed', 'state creating'],
  ],
  [
    'creating, with a disk that is larger than the quota that it holds: it takes more',
    image('template.create'),
    observed({ claimedGibibytes: 64, images: [on('a', { state: 'creating', neededGibibytes: 100 })] }),
    ['claim', 'operation claimed', 'state creating'],
  ],
  [
    'creating, with more quota than it was asked of the nodes with: they are asked again',
    image('template.create'),
    observed({
      claimedGibibytes: 100,
      images: ['a', 'b'].map((node) =>
        on(node, { state: 'creating', neededGibibytes: 100 }, false, { maximumGibibytes: 64 }),
      ),
    }),
    ['image on node-a', 'image on node-b', 'operation fetched', 'state creating'],
  ],
  [
    'creating, of a source that is larger than what it holds: it takes more first',
    image('template.create'),
    observed({ claimedGibibytes: 64, sourceGibibytes: 65 }),
    ['claim', 'operation claimed', 'state creating'],
  ],
  [
    'online, with another size than it holds of the quota: that is recorded',
    image(undefined, { state: 'online', sizeGibibytes: 3, operation: done }),
    observed({ claimedGibibytes: 64, images: [on('a', ready), on('b', ready)] }),
    ['recordSize', 'state online'],
  ],
  [
    'in error: it holds no GiB',
    image(undefined, { state: 'error', operation: done }),
    observed({ claimedGibibytes: 64 }),
    ['recordSize', 'state error'],
  ],
  [
    'creating: every node of the zone is given the image',
    image('template.create'),
    observed(),
    ['image on node-a', 'image on node-b', 'operation fetched', 'state creating'],
  ],
  [
    'creating, while one node has it and one does not',
    image('template.create'),
    observed({ images: [on('a', ready), on('b', { state: 'creating' })] }),
    ['operation fetched', 'state creating'],
  ],
  [
    'creating, without a node',
    image('template.create'),
    observed({ nodes: [] }),
    ['operation fetched', 'state creating'],
  ],
  [
    'creating, checksum ok and held by all nodes: online',
    image('template.create'),
    observed({ images: [on('a', ready), on('b', ready)] }),
    ['operation succeeded', 'state online'],
  ],
  [
    'creating, failed: error, and no node keeps any of it',
    image('template.create'),
    observed({ images: [on('a', ready), on('b', { state: 'error', detail: 'wrong' })] }),
    [...['a', 'b'].flatMap((node) => goes(`node-${node}`)), 'operation failed', 'state error'],
  ],
  [
    'creating, in no zone: error',
    image('template.create'),
    observed({ isZoneKnown: false }),
    ['operation failed', 'state error'],
  ],
  [
    'online: a node that has joined the zone gets it',
    image('template.create', { state: 'online', operation: done }),
    observed({ images: [on('a', ready)] }),
    ['image on node-b', 'state online'],
  ],
  [
    'online: what failed on a node is tried again after a while',
    image('template.create', { state: 'online', operation: done }),
    observed({ images: [on('a', ready), aged(300, on('b', { state: 'error' }))] }),
    [...goes('node-b'), 'state online'],
  ],
  [
    'online: and not before',
    image('template.create', { state: 'online', operation: done }),
    observed({ images: [on('a', ready), aged(299, on('b', { state: 'error' }))] }),
    ['state online'],
  ],
  [
    'deleting, while it is used: what failed on a node is tried again after a while',
    image('template.delete', { state: 'deleting' }, true),
    observed({ images: [on('a', ready), aged(300, on('b', { state: 'error' }))], users: ['server s'] }),
    [...goes('node-b'), 'operation removed', 'state deleting'],
  ],
  [
    'online, delete: deleting',
    image('template.delete', { state: 'online' }),
    observed({ images: [on('a', ready), on('b', ready)] }),
    ['remove CustomImage in acct-1', 'operation removed', 'state deleting'],
  ],
  [
    'error, delete: deleting',
    image('template.delete', { state: 'error' }),
    observed(),
    ['remove CustomImage in acct-1', 'operation removed', 'state deleting'],
  ],
  [
    'deleting, while nodes hold it',
    image('template.delete', { state: 'deleting' }, true),
    observed({ images: [on('a', ready), on('b', ready, true)] }),
    [...goes('node-a'), 'operation removed', 'state deleting'],
  ],
  [
    'deleting, when no node holds it: gone, with its quota',
    image('template.delete', { state: 'deleting' }, true),
    observed(),
    ['giveBack', 'operation succeeded', 'state deleting', 'finalized'],
  ],
  [
    'deleting, when only a node that is lost holds it: gone',
    image('template.delete', { state: 'deleting' }, true),
    observed({ nodes: ['a'], images: [on('b', ready, true)] }),
    ['giveBack', 'operation succeeded', 'state deleting', 'finalized'],
  ],
])('%s', (_why, root, seen, does) => {
  expect(summary(root, seen)).toEqual(does)
})

/** The same image, made of something else than a file. */
const of = (
  source: CustomImageObject['spec']['source'],
  root: CustomImageObject = image('template.create'),
): CustomImageObject => ({ ...root, spec: { ...root.spec, source } })
const ofDisk = of({ storageId: 's' })
const disk = { is: 'known', node: 'a', content: { volume: 'v' } } as const
const backup = { name: 'n', sizeGibibytes: 1, accountId: '1', secretName: 'k' }
const from = (node: string) => ({ id: 'u', host: node, port: 9 })
const serve = { id: 'u', secretName: 'image-u' }
const served = { nodes: ['x'], images: [on('x', { ...ready, serving: from('x') }, false, { serve })] }
const DONE = image('template.create', { state: 'online', operation: done })
const FAILED: Partial<ImageStatus> = { state: 'error' }

test.each<[string, CustomImageObject, Observed, readonly string[]]>([
  [
    'of a disk: the node of that makes it, and no other',
    ofDisk,
    observed({ disk }),
    ['image on node-a', 'operation fetched', 'state creating'],
  ],
  [
    'of a disk that has gone to another node: made there instead',
    ofDisk,
    observed({ disk, images: [on('b', { state: 'creating' }, false, { volume: 'v' })] }),
    [...goes('node-b'), 'image on node-a', 'operation fetched', 'state creating'],
  ],
  [
    'of a disk that is not there: error',
    ofDisk,
    observed({ disk: { is: 'refused', why: 'There is no storage s.' } }),
    ['operation failed', 'state error'],
  ],
  [
    'of a disk that will be there: waits',
    ofDisk,
    observed({ disk: { is: 'waiting', for: 'the storage' } }),
    ['operation fetched', 'state creating'],
  ],
  [
    'of a snapshot: the node that holds its disk makes it, also when the image waits for others',
    of({ snapshotId: 'n' }),
    observed({ disk: { is: 'known', node: 'b', content: { snapshot: { name: 'point', volume: 'v' } } } }),
    ['image on node-b', 'operation fetched', 'state creating'],
  ],
  [
    'of a backup: a node that reaches the store has the key first',
    of({ backupId: 'n' }),
    observed({ disk: { is: 'known', node: 'b', content: { backup } } }),
    ['shareBackupKey', 'image on node-b', 'operation fetched', 'state creating'],
  ],
  [
    'of a backup, on a node that is lost: another one makes it',
    of({ backupId: 'n' }),
    observed({
      disk: { is: 'known', node: 'b', content: { backup } },
      images: [on('a', { state: 'creating' }, false, { backup })],
    }),
    [...goes('node-a'), 'shareBackupKey', 'image on node-b', 'operation fetched', 'state creating'],
  ],
  [
    'of a snapshot, made on a node that is lost before it served it: whoever reads the snapshot now makes it',
    of({ snapshotId: 'n' }),
    observed({
      nodes: ['b'],
      disk: { is: 'known', node: 'b', content: { snapshot: { name: 'point', volume: 'v', pool: 'p' } } },
      images: [
        on('a', ready, false, { snapshot: { name: 'point', volume: 'v', pool: 'p' } }),
        on('b', { state: 'creating' }),
      ],
    }),
    [...goes('node-a'), ...goes('node-b'), 'operation fetched', 'state creating'],
  ],
  [
    'of a backup, made elsewhere meanwhile: begins again as a copy',
    of({ backupId: 'n' }),
    observed({
      disk: { is: 'known', node: 'b', content: { backup } },
      images: [
        on('a', { ...ready, serving: from('a') }, false, { serve }),
        on('b', { state: 'creating' }, false, { backup }),
      ],
    }),
    ['shareKey', 'image on node-a', ...goes('node-b'), 'operation fetched', 'state creating'],
  ],
  [
    'made on one node: that serves it to the others',
    ofDisk,
    observed({ disk, images: [on('a', ready, false, { volume: 'v' })] }),
    ['shareKey', 'image on node-a', 'image on node-b', 'operation fetched', 'state creating'],
  ],
  [
    'served: the others copy it, also when the disk is gone',
    ofDisk,
    observed({
      disk: { is: 'refused', why: 'gone' },
      images: [
        on('a', { ...ready, serving: from('a') }, false, { volume: 'v', serve }),
        on('b', { state: 'creating' }),
      ],
    }),
    ['shareKey', 'image on node-a', 'shareKey', 'image on node-b', 'operation fetched', 'state creating'],
  ],
  [
    'online, and a copy has failed: it is tried again after a while',
    of({ storageId: 's' }, DONE),
    observed({ images: [on('a', { ...ready, serving: from('a') }, false, { serve }), aged(300, on('b', FAILED))] }),
    ['shareKey', 'image on node-a', ...goes('node-b'), 'state online'],
  ],
  [
    'online, and a copy has just failed: the node is given no other',
    of({ storageId: 's' }, DONE),
    observed({ images: [on('a', { ...ready, serving: from('a') }, false, { serve }), aged(299, on('b', FAILED))] }),
    ['shareKey', 'image on node-a', 'state online'],
  ],
  [
    'online, and the node has another image of its name: it is given no other, however long that takes',
    of({ storageId: 's' }, DONE),
    observed({ images: [on('a', { ...ready, serving: from('a') }, false, { serve }), aged(3_000, on('b', TAKEN))] }),
    ['shareKey', 'image on node-a', 'state online'],
  ],
  [
    'held by all: serving and copying end, and it is online',
    ofDisk,
    observed({
      images: [
        on('a', { ...ready, serving: from('a') }, false, { volume: 'v', serve }),
        on('b', ready, false, { copyFrom: { ...from('a'), secretName: 'image-copy-u' } }),
      ],
    }),
    [
      'image on node-a',
      'remove Secret image-copy-u in node-b',
      'image on node-b',
      'operation succeeded',
      'state online',
    ],
  ],
  [
    'cancelled: no node keeps any of it',
    { ...ofDisk, spec: { ...ofDisk.spec, operation: { ...stanza('template.create'), arguments: { cancel: 'true' } } } },
    observed({ disk, images: [on('a', { state: 'creating' })] }),
    [...goes('node-a'), 'operation cancelled', 'state error'],
  ],
  [
    'a copy waits until a node of the other zone serves it',
    of({ imageId: 'other' }),
    observed({ nodes: ['a'], origin: { nodes: ['x'], images: [on('x', ready)] } }),
    ['image on node-a', 'operation fetched', 'state creating'],
  ],
  [
    'and gets its key then',
    of({ imageId: 'other' }),
    observed({ nodes: ['a'], images: [on('a', { state: 'creating' })], origin: served }),
    ['shareKey', 'image on node-a', 'operation fetched', 'state creating'],
  ],
  [
    'but has an Image, with which the key will go, before that',
    of({ imageId: 'other' }),
    observed({ nodes: ['a'], origin: served }),
    ['image on node-a', 'operation fetched', 'state creating'],
  ],
  [
    'a copy of what is gone: error',
    of({ imageId: 'other' }),
    observed({ nodes: ['a'] }),
    ['operation failed', 'state error'],
  ],
  [
    'an image that is being copied is served',
    DONE,
    observed({ nodes: ['a'], images: [on('a', ready)], isCopied: true }),
    ['shareKey', 'image on node-a', 'state online'],
  ],
  [
    'deleting waits for what is being made from it',
    image('template.delete', { state: 'deleting' }, true),
    observed({ images: [on('a', ready), on('b', ready)], users: ['server s'] }),
    ['operation removed', 'state deleting'],
  ],
])('%s', (_why, root, seen, does) => {
  expect(summary(root, seen)).toEqual(does)
})

test('keys of a copy go with the Images of their nodes', () => {
  const seen = observed({ nodes: ['a'], images: [on('a', { state: 'creating' })], origin: served })
  const [shared] = plan(of({ imageId: 'other' }), seen, NOW).filter(({ do: what }) => what === 'effect')
  expect(shared).toMatchObject({
    name: 'shareKey',
    input: {
      keys: ['x', 'a'].map((node) => ({
        namespace: `node-${node}`,
        name: node === 'a' ? 'image-copy-u' : 'image-u',
        ownerReferences: [{ kind: 'Image', name: 'acct-1.mine', uid: `u-${node}` }],
      })),
    },
  })
})

test('an image that was not held everywhere in time is in error', () => {
  const late = plan(image('template.create'), observed(), new Date('2026-11-22T18:00:01Z'))
  expect(late).toContainEqual(expect.objectContaining({ do: 'operation', outcome: 'failed' }))
})
