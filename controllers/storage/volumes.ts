/** Volumes as the storage controller writes them. Pure. */
import type { Key, KubeObject } from '../../kit/kube/object.ts'
import { nodeNamespace, nodeOf, Volume, type VolumeSpec, type VolumeStatus } from '../../resources/instance/index.ts'
import { ACCOUNT_LABEL } from '../../resources/labels.ts'
import type { StorageSpec, StorageStatus } from '../../resources/storage/index.ts'

import type { PlainAction } from '../effects.ts'
export type StorageObject = KubeObject<StorageSpec, StorageStatus>
export type VolumeObject = KubeObject<VolumeSpec, VolumeStatus>

/** Its node is ending it. */
export const isTerminating = ({ metadata }: VolumeObject): boolean => metadata.deletionTimestamp !== undefined
const keyOf = ({ metadata: { namespace = '', name } }: VolumeObject): Key => ({ namespace, name })

/** What differs between the volumes of one storage. */
export type VolumeContent = Pick<
  VolumeSpec,
  'source' | 'copyFrom' | 'serve' | 'origin' | 'pool' | 'isRetained' | 'arrivingFor'
>

/** `holding` is the whole of what differs: what it leaves out the volume has no more. */
export function ensureVolume(
  { metadata: { namespace = '', name, uid = '', labels = {} }, spec }: StorageObject,
  node: string,
  holding: { readonly [Field in keyof VolumeContent]: VolumeContent[Field] | undefined },
): PlainAction {
  const account = labels[ACCOUNT_LABEL]
  const draft: VolumeSpec = {
    storage: { namespace, name, uid },
    sizeGibibytes: spec.sizeGibibytes,
    ...present(holding),
  }
  return {
    do: 'ensure',
    type: Volume,
    draft: {
      metadata: {
        namespace: nodeNamespace(node),
        name: uid,
        ...(account === undefined ? {} : { labels: { [ACCOUNT_LABEL]: account } }),
      },
      spec: draft,
    },
  }
}

/** The node that the server lives on holds the data: with its volume it goes. What was copied to shared storage is from
 *  then on as if made there. */
export function ensureOwn(storage: StorageObject, volume: VolumeObject, serve?: VolumeSpec['serve']): PlainAction {
  const {
    spec: { source, origin, pool },
    status,
  } = volume
  const isWhole = pool !== undefined && source?.kind === 'copy' && origin !== undefined && status?.state === 'ready'
  return ensureVolume(storage, nodeOf(volume), { source: isWhole ? undefined : source, origin, pool, serve })
}

/** A disk is made on shared storage where its node has some. */
export const poolAmong = ({ spec }: StorageObject, pools: readonly string[]): string | undefined =>
  spec.tier === 'standard' ? pools[0] : undefined

/** Whether the volume shows the very data that the server's own does. Before that one is known, whatever lies on shared
 *  storage may be those. */
export const hasSameData = ({ spec: { pool } }: VolumeObject, own: VolumeObject | undefined): boolean =>
  pool !== undefined && (own === undefined || pool === own.spec.pool)

/** Takes the volume from its node. What lies on shared storage stays there for the node that the server lives on. */
export const withdraw = (
  storage: StorageObject,
  volume: VolumeObject,
  own: VolumeObject | undefined,
): readonly PlainAction[] =>
  isTerminating(volume)
    ? []
    : [
        ...(hasSameData(volume, own)
          ? [
              ensureVolume(storage, nodeOf(volume), {
                source: volume.spec.source,
                origin: volume.spec.origin,
                pool: volume.spec.pool,
                isRetained: true,
              }),
            ]
          : []),
        removeVolume(volume),
      ]

/** Its node ends the data too, unless they are retained. */
export const removeVolume = (volume: VolumeObject): PlainAction => ({ do: 'remove', type: Volume, key: keyOf(volume) })

const present = (
  holding: { readonly [Field in keyof VolumeContent]: VolumeContent[Field] | undefined },
): VolumeContent =>
  // without what is undefined
  Object.fromEntries(Object.entries(holding).filter(([, value]) => value !== undefined)) as VolumeContent
