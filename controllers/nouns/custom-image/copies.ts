/** How the nodes of a zone come by an image: each fetches the file itself, or one makes it of a disk and the others
 *  copy it from whoever holds it, also from another zone. Pure. */
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

/** A key that goes with the Image of its node at the latest, also when that went while the key was written. */
const ownedBy = ({ metadata: { namespace = '', name, uid = '' } }: ImageObject, secretName: string): SecretPlace => ({
  namespace,
  name: secretName,
  ownerReferences: [{ apiVersion: apiVersionOf(Image), kind: Image.kind, name, uid }],
})

/** On the node that serves it: the same for all that copy it. */
const servingKey = (image: ImageObject): SecretPlace => ownedBy(image, `image-${image.spec.image.uid}`)

/** On the node that copies: named by the image that is made, so that it is found whatever becomes of the other. */
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

/** What of the spec never changes. */
const lasting = ({ spec: { image: _image, copyFrom: _copyFrom, serve: _serve, ...content } }: ImageObject): Content =>
  content

/** Which one of those that hold it serves it: the same for all that look. */
const holderAmong = (images: readonly ImageObject[], nodes: readonly string[]): ImageObject | undefined =>
  images
    .filter((one) => isReady(one) && nodes.includes(nodeOf(one)))
    .toSorted((one, other) => (nodeOf(one) < nodeOf(other) ? -1 : 1))[0]

/** What may be imported: the size that the image holds of the quota. */
const importLimit = ({ claimedGibibytes = UNKNOWN_IMAGE_GIBIBYTES }: Observed): number =>
  Math.min(Math.max(claimedGibibytes, 1), IMAGE_GIBIBYTES_MAXIMUM)

/** An Image for every node that has none, what it needs to become ready, and nothing of what copies needed once they
 *  are over. */
export function spread(image: CustomImageObject, observed: Observed): readonly CustomImageAction[] {
  const { nodes, images, origin } = observed
  const lacking = nodes.filter((node) => !images.some((one) => nodeOf(one) === node && isReady(one)))
  const { url, checksum } = image.spec.source
  if (url !== undefined && checksum !== undefined) {
    const maximumGibibytes = importLimit(observed)
    /** One that another size was asked of before is asked again; what has failed is not. */
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

/** Makes it of the disk, on the node that reads that. */
function maker(image: CustomImageObject, { images, disk, nodes }: Observed): readonly CustomImageAction[] {
  if (disk?.is !== 'known' || !nodes.includes(disk.node)) return []
  // Also one that waits, on this node, to be a copy: who was to serve it has gone, and it begins again.
  const unsuitable = images.filter((one) => nodeOf(one) !== disk.node || !isMadeHere(one))
  return [
    ...removals(unsuitable),
    ...(images.some((one) => nodeOf(one) === disk.node)
      ? []
      : [...needs(disk), ensureImage(image, disk.node, disk.content)]),
  ]
}

/** What the node has to have before it can read a backup. */
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

/** Whether it is made here, of what only this node reads for it. */
const isMadeHere = ({ spec: { volume, snapshot, backup } }: ImageObject): boolean =>
  volume !== undefined || snapshot !== undefined || backup !== undefined

/** The node copies the image from the one that holds it, as soon as that serves it. */
function copyTo(
  image: CustomImageObject,
  { images }: Observed,
  { node, holder }: { readonly node: string; readonly holder: ImageObject },
): readonly CustomImageAction[] {
  const existing = images.find((one) => nodeOf(one) === node)
  if (existing?.metadata.deletionTimestamp !== undefined) return []
  // One that was to be made here, or has failed: it begins again as a copy.
  if (existing !== undefined && (isMadeHere(existing) || existing.status?.state === 'error'))
    return removals([existing])
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

/** The node keeps the key of its own image for as long as it holds that, so that whoever serves it never has another
 *  than whoever reads it; the one by which it has copied the image goes with the copying. */
const removeKeys = (image: ImageObject, { isGoing }: { readonly isGoing: boolean }): readonly PlainAction[] =>
  [
    ...(isGoing || image.spec.copyFrom !== undefined ? [copyingKey(image)] : []),
    ...(isGoing ? [servingKey(image)] : []),
  ].map(({ namespace = '', name }) => ({ do: 'remove', type: Secret, key: { namespace, name } }) as const)

/** Takes them from their nodes, with the keys first: by the Images those are found. */
export const removals = (images: readonly ImageObject[]): readonly PlainAction[] =>
  images
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .flatMap((one): readonly PlainAction[] => {
      const { namespace = '', name } = one.metadata
      return [...removeKeys(one, { isGoing: true }), { do: 'remove', type: Image, key: { namespace, name } }]
    })
