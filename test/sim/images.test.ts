/** The checks of custom images are tested as well. */
import { expect, it } from 'vitest'
import { simulatedImages } from '../../agents/node/images/image-store.ts'
import { Secret } from '../../kit/kube/object.ts'
import type { Resource } from '../../resources/kit/define.ts'
import { accountNamespace } from '../../resources/index.ts'
import { CustomImage } from '../../resources/custom-image/index.ts'
import { Image } from '../../resources/instance/index.ts'
import { Snapshot } from '../../resources/snapshot/index.ts'
import { newImageContents } from './image-contents.ts'
import { checkImages } from './images.ts'

const DISKS: Readonly<Record<string, number>> = { 'n1 /disk': 7, 'n2 /disk': 3 }
const KEY = 'f'.repeat(64)
const ACCOUNT = '00000000-0000-4000-8000-00000000000a'
const NAMESPACE = accountNamespace(ACCOUNT)

const images = newImageContents((host, path) => {
  const content = DISKS[`${host} ${path}`]
  return content === undefined ? undefined : { volume: path.slice(1), content }
})
const [n1, n2] = ['n1', 'n2'].map((name) => images.store(name, simulatedImages(new Map(), name)))

const custom = (name: string, source: object, state = 'online') => ({
  metadata: { name, namespace: NAMESPACE, uid: `uid-${name}` },
  spec: { source },
  status: { state },
})
const heldOn = (node: string, name: string) => ({
  metadata: { name: `${NAMESPACE}.${name}`, namespace: `node-${node}` },
  spec: { image: { namespace: NAMESPACE, name, uid: `uid-${name}` } },
  status: { state: 'ready' },
})

function worldOf(objects: ReadonlyMap<string, readonly object[]>, points: Readonly<Record<string, number>> = {}) {
  const list = async ({ kind }: Resource) => ({ items: objects.get(kind) ?? [] })
  const execute = async () => [{ amount: objects.get(CustomImage.kind)?.length ?? 0 }]
  const db = { selectFrom: () => ({ selectAll: () => ({ where: () => ({ execute }) }) }) }
  const hosts = [
    { name: 'n1', images: new Map([[`${NAMESPACE}.left`, {}]]) },
    { name: 'n2', images: new Map() },
  ]
  const disks = { images, pointOf: (snapshot: string) => points[snapshot] }
  return { admin: { list }, db, hosts, disks } as unknown as Parameters<typeof checkImages>[0]
}

it('finds images of other bytes than their sources had, and what was left behind', async () => {
  await n1?.make(`${NAMESPACE}.golden`, { path: '/disk' })
  await n2?.make(`${NAMESPACE}.golden`, { path: '/disk' })
  await n1?.serve(`${NAMESPACE}.golden`, KEY)
  await n2?.copy(`${NAMESPACE}.copy`, { ...(n1?.servedAt(`${NAMESPACE}.golden`) ?? { host: '', port: 0 }), key: KEY })
  await n1?.make(`${NAMESPACE}.point`, { path: '/disk' })
  await n2?.make(`${NAMESPACE}.other`, { path: '/disk' })
  images.least.set(`${ACCOUNT} golden`, { volume: 'disk', content: 8 })
  const world = worldOf(
    new Map<string, readonly object[]>([
      [
        CustomImage.kind,
        [
          custom('golden', { storageId: 'disk' }),
          custom('copy', { imageId: 'golden' }),
          custom('other', { imageId: 'golden' }),
          custom('point', { snapshotId: 'snap' }),
          custom('making', { url: 'x' }, 'creating'),
        ],
      ],
      [
        Image.kind,
        [
          heldOn('n1', 'golden'),
          heldOn('n2', 'golden'),
          heldOn('n2', 'copy'),
          heldOn('n2', 'other'),
          heldOn('n1', 'point'),
          heldOn('n1', 'gone'),
        ],
      ],
      [Secret.kind, [{ metadata: { name: 'image-uid-gone', namespace: 'node-n2' } }]],
      [Snapshot.kind, [{ metadata: { name: 'snap', namespace: NAMESPACE, uid: 'uid-snap' } }]],
    ]),
    { 'uid-snap': 6 },
  )
  expect(await checkImages(world)).toEqual([
    'custom image making came to rest as creating',
    `Image node-n1/${NAMESPACE}.gone of no custom image`,
    `image ${NAMESPACE}.left lies on n1 for no custom image`,
    'Secret node-n2/image-uid-gone of no image',
    'image golden holds 7 of disk on one host and 3 of disk on another',
    'image golden shall hold at least 8 of disk, and holds 7 of disk',
    'image other is a copy of one that holds 7 of disk, and holds 3 of disk',
    'image point is of a snapshot that keeps 6, and holds 7 of disk',
  ])
})

it('copies an image from where it is served, with its key, and takes no other file', async () => {
  await expect(n2?.copy(`${NAMESPACE}.stolen`, { host: 'n1', port: 1, key: 'e'.repeat(64) })).rejects.toThrow(
    'nobody serves',
  )
  await n1?.stopServing(`${NAMESPACE}.golden`)
  await expect(n2?.copy(`${NAMESPACE}.late`, { host: 'n1', port: 1, key: KEY })).rejects.toThrow('nobody serves')
  const other = { url: 'https://images.example.com/disk.qcow2', checksum: 'b'.repeat(64) }
  await expect(n2?.import(`${NAMESPACE}.file`, other)).rejects.toThrow('another one')
})
