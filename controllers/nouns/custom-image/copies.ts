/** How the nodes of a zone get an image: each downloads the file itself; or one node creates it from a disk, and the
 *  others copy it from a node that holds it, also from another zone. Pure. */
import { UNKNOWN_IMAGE_GIBIBYTES } from '../../../domain/account/quota.ts'
import { apiVersionOf, Secret } from '../../../kit/kube/object.ts'
import {
  AGENT_FINALIZER,
  IMAGE_GIBIBYTES_MAXIMUM,
  Image,
  type ImageSpec,
  imageName,
  nodeNamespace,
  nodeOf,
} from '../../../resources/instance/index.ts'
import type { PlainAction } from '../../kit/effects.ts'
import type { SecretPlace } from '../../kit/shared-key.ts'
import type { CustomImageAction, CustomImageObject, DiskSource, ImageObject, Observed } from './observed.ts'

/** What differs between the Images of one custom image. */
type Content = Omit<ImageSpec, 'image'>

const isReady = ({ metadata, status }: ImageObject): boolean =>
  metadata.deletionTimestamp === undefined && status?.state === 'ready'

/** A key that is deleted with the Image of its node at the latest, also when that was deleted while the key was
 *  written. */
const ownedBy = ({ metadata: { namespace = '', name, uid = '' } }: ImageObject, secretName: string): SecretPlace => ({
  namespace,
  name: secretName,
  ownerReferences: [{ apiVersion: apiVersionOf(Image), kind: Image.kind, name, uid }],
})

/** The key on the node that serves the image: the same for all that copy it. */
const servingKey = (image: ImageObject): SecretPlace => ownedBy(image, `image-${image.spec.image.uid}`)

/** The key on the node that copies: named by the image that is created there, so that it can be found whatever happens
 *  to the other. */
const copyingKey = (image: ImageObject): SecretPlace => ownedBy(image, `image-copy-${image.spec.image.uid}`)

function ensureImage({ metadata }: CustomImageObject, node: string, content: Content): PlainAction {
  const { namespace = '', name, uid = '' } = metadata
  return {
    do: 'ensure',
    type: Image,
    draft: {
      metadata: {
        namespace: nodeNamespace(node),
        name: imageName({ namespace, name }),
        finalizers: [AGENT_FINALIZER],
      },
      spec: { image: { namespace, name, uid }, ...content },
    },
  }
}

/** The part of the spec that never changes. */
const lasting = ({ spec: { image: _image, copyFrom: _copyFrom, serve: _serve, ...content } }: ImageObject): Content =>
  content

/** The holder that serves the image: every caller chooses the same one. */
const holderAmong = (images: readonly ImageObject[], nodes: readonly string[]): ImageObject | undefined =>
  images
    .filter((one) => isReady(one) && nodes.includes(nodeOf(one)))
    .toSorted((one, other) => (nodeOf(one) < nodeOf(other) ? -1 : 1))[0]

/** The import limit: the size that the image has claimed of the quota. */
const importLimit = ({ claimedGibibytes = UNKNOWN_IMAGE_GIBIBYTES }: Observed): number =>
  Math.min(Math.max(claimedGibibytes, 1), IMAGE_GIBIBYTES_MAXIMUM)

/** An Image for every node that has none, with what it needs to become ready. What copies needed is removed once they
 *  have finished. */
export function spread(image: CustomImageObject, observed: Observed): readonly CustomImageAction[] {
  const { nodes, images, origin } = observed
  const lacking = nodes.filter((node) => !images.some((one) => nodeOf(one) === node && isReady(one)))
  const { url, checksum } = image.spec.source
  if (url !== undefined && checksum !== undefined) {
    const maximumGibibytes = importLimit(observed)
    /** A node that was asked for another size is asked again; one that has failed is not. */
    const isAsked = ({ spec, status }: ImageObject) =>
      status?.state === 'error' || spec.maximumGibibytes === maximumGibibytes
    return [
      ...lacking
        .filter((node) => !images.some((one) => nodeOf(one) === node && isAsked(one)))
        .map((node) => ensureImage(image, node, { url, checksum: checksum.toLowerCase(), maximumGibibytes })),
      ...serving(image, observed, { isNeeded: false }),
    ]
  }
  const own = holderAmong(images, nodes)
  const holder = own ?? holderAmong(origin?.images ?? [], origin?.nodes ?? [])
  if (holder === undefined) return maker(image, observed)
  return [
    ...serving(image, observed, { isNeeded: lacking.length > 0 }),
    ...lacking.flatMap((node) => copyTo(image, observed, { node, holder })),
  ]
}

/** Creates it from the disk, on the node that can read the disk. */
function maker(image: CustomImageObject, { images, disk, nodes }: Observed): readonly CustomImageAction[] {
  if (disk?.is !== 'known' || !nodes.includes(disk.node)) return []
  // Also an Image on this node that waits to be a copy: the holder that was to serve it no longer exists, so it starts
  // again.
  const unsuitable = images.filter((one) => nodeOf(one) !== disk.node || !isMadeHere(one))
  return [
    ...removals(unsuitable),
    ...(images.some((one) => nodeOf(one) === disk.node)
      ? []
      : [...needs(disk), ensureImage(image, disk.node, disk.content)]),
  ]
}

/** What the node needs before it can read a backup. */
const needs = ({ node, content: { backup } }: Extract<DiskSource, { is: 'known' }>): readonly CustomImageAction[] =>
  backup === undefined
    ? []
    : [
        {
          do: 'effect',
          name: 'shareBackupKey',
          input: {
            accountId: backup.accountId,
            secret: { namespace: nodeNamespace(node), name: backup.secretName },
            ...(backup.objectStorageZone === undefined ? {} : { objectStorageZones: [backup.objectStorageZone] }),
          },
        },
      ]

/** Whether this node creates the image from something that only it reads. */
const isMadeHere = ({ spec: { volume, snapshot, backup } }: ImageObject): boolean =>
  volume !== undefined || snapshot !== undefined || backup !== undefined

/** The node copies the image from the holder, as soon as that serves it. */
function copyTo(
  image: CustomImageObject,
  { images }: Observed,
  { node, holder }: { readonly node: string; readonly holder: ImageObject },
): readonly CustomImageAction[] {
  const existing = images.find((one) => nodeOf(one) === node)
  if (existing?.metadata.deletionTimestamp !== undefined) return []
  // An Image that was to be created here starts again as a copy.
  if (existing !== undefined && isMadeHere(existing)) return removals([existing])
  // One that has failed waits for another attempt.
  if (existing?.status?.state === 'error') return []
  const { uid } = holder.spec.image
  const origin = holder.status?.origin ?? holder.spec.origin
  const known = origin === undefined ? {} : { origin }
  const { serving: at } = holder.status ?? {}
  if (existing === undefined || at?.id !== uid || holder.spec.serve === undefined)
    return [ensureImage(image, node, known)]
  const { host, port } = at
  const key = copyingKey(existing)
  return [
    { do: 'effect', name: 'shareKey', input: { keys: [servingKey(holder), key] } },
    ensureImage(image, node, { ...known, copyFrom: { id: uid, host, port, secretName: key.name } }),
  ]
}

/** The holder serves it for as long as some node lacks it, here or in another zone. */
function serving(
  image: CustomImageObject,
  { images, nodes, isCopied = false }: Observed,
  { isNeeded }: { readonly isNeeded: boolean },
): readonly CustomImageAction[] {
  const { uid = '' } = image.metadata
  const holder = isNeeded || isCopied ? holderAmong(images, nodes) : undefined
  return images.filter(isReady).flatMap((one): readonly CustomImageAction[] => {
    const node = nodeOf(one)
    if (one === holder) {
      const key = servingKey(one)
      return [
        { do: 'effect', name: 'shareKey', input: { keys: [key, key] } },
        ensureImage(image, node, { ...lasting(one), serve: { id: uid, secretName: key.name } }),
      ]
    }
    return one.spec.serve === undefined && one.spec.copyFrom === undefined
      ? []
      : [...removeKeys(one, { isGoing: false }), ensureImage(image, node, lasting(one))]
  })
}

/** The node keeps the key of its own image while it holds the image, so that the serving node and its readers always
 *  have the same key. The key with which it copied the image is deleted when the copy ends. */
const removeKeys = (image: ImageObject, { isGoing }: { readonly isGoing: boolean }): readonly PlainAction[] =>
  [
    ...(isGoing || image.spec.copyFrom !== undefined ? [copyingKey(image)] : []),
    ...(isGoing ? [servingKey(image)] : []),
  ].map(({ namespace = '', name }) => ({ do: 'remove', type: Secret, key: { namespace, name } }) as const)

/** Removes Images from their nodes, keys first: the Images are needed to find the keys. */
export const removals = (images: readonly ImageObject[]): readonly PlainAction[] =>
  images
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .flatMap((one): readonly PlainAction[] => {
      const { namespace = '', name } = one.metadata
      return [...removeKeys(one, { isGoing: true }), { do: 'remove', type: Image, key: { namespace, name } }]
    })
