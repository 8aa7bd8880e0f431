/** Volumes as the storage controller writes them. Pure. */
import { isDeepStrictEqual } from 'node:util'
import type { Key, KubeObject } from '../../../kit/kube/object.ts'
import {
  AGENT_FINALIZER,
  LOST_HOSTS_MAXIMUM,
  nodeNamespace,
  nodeOf,
  Volume,
  type VolumeSpec,
  type VolumeStatus,
} from '../../../resources/instance/index.ts'
import { ACCOUNT_LABEL } from '../../../resources/kit/labels.ts'
import { STORAGE_TIERS, type StorageSpec, type StorageStatus } from '../../../resources/storage/index.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'

import type { PlainAction } from '../../kit/effects.ts'
export type StorageObject = KubeObject<StorageSpec, StorageStatus>
export type VolumeObject = KubeObject<VolumeSpec, VolumeStatus>

/** The uid of an object that was read from Kubernetes. */
export const uidOf = ({ metadata: { uid = '' } }: StorageObject): string => uid
/** Whether its node is deleting it. */
export const isTerminating = ({ metadata }: VolumeObject): boolean => metadata.deletionTimestamp !== undefined
const keyOf = ({ metadata: { namespace = '', name } }: VolumeObject): Key => ({ namespace, name })

/** What differs between the volumes of one storage. */
export type VolumeContent = Pick<
  VolumeSpec,
  | 'source'
  | 'copyFrom'
  | 'serve'
  | 'origin'
  | 'pool'
  | 'takesOverFrom'
  | 'isRetained'
  | 'isCurrent'
  | 'arrivingFor'
  | 'snapshots'
>

/** `holding` is everything that differs: a field that it leaves out is removed from the volume. */
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
        finalizers: [AGENT_FINALIZER],
        ...(account === undefined ? {} : { labels: { [ACCOUNT_LABEL]: account } }),
      },
      spec: draft,
    },
  }
}

/** The volume of the server's own node, which owns the data: the data is deleted with it. What was copied to shared
 *  storage counts from then on as created there. */
export function ensureOwn(
  storage: StorageObject,
  volume: VolumeObject,
  {
    serve,
    snapshots,
    lostBoots = [],
  }: { readonly [Field in 'serve' | 'snapshots']?: VolumeSpec[Field] | undefined } & {
    readonly lostBoots?: NonNullable<VolumeSpec['takesOverFrom']> | undefined
  } = {},
): PlainAction {
  const {
    spec: { source, origin, pool, isCurrent },
    status,
  } = volume
  const isWhole = pool !== undefined && isBroughtByMove(volume) && origin !== undefined && status?.state === 'ready'
  const takesOverFrom = withLostHosts(volume, lostBoots)
  return ensureVolume(storage, nodeOf(volume), {
    source: isWhole ? undefined : source,
    origin,
    pool,
    takesOverFrom,
    // Hosts remove data that a move brought and that were in use only where this says that the move has ended.
    isCurrent: isBroughtByMove(volume) || isCurrent === true ? true : undefined,
    serve,
    snapshots,
  })
}

/** A proof stays valid: it is about one boot of the host. */
export function withLostHosts(
  { spec: { pool, takesOverFrom = [] }, ...volume }: VolumeObject,
  lostBoots: NonNullable<VolumeSpec['takesOverFrom']> = [],
): VolumeSpec['takesOverFrom'] {
  if (pool === undefined) return undefined
  const others = lostBoots.filter(({ node }) => node !== nodeOf(volume))
  const known = takesOverFrom.filter(({ node }) => !others.some((one) => one.node === node))
  const all = [...known, ...others].slice(-LOST_HOSTS_MAXIMUM)
  return all.length === 0 ? undefined : all
}

/** The volume does not name the hosts yet that were lost with the disk. Their volumes, which show that, stay until
 *  then. */
export const isToTakeOver = (volume: VolumeObject | undefined, lostBoots: VolumeSpec['takesOverFrom']): boolean =>
  volume !== undefined && !isDeepStrictEqual(volume.spec.takesOverFrom, withLostHosts(volume, lostBoots))

/** The tier that its data must be on: that of a move under way, or else its own. */
export const effectiveTier = (storage: StorageObject): StorageSpec['tier'] =>
  requestedTier(storage) ?? storage.spec.tier

/** Argument of a server's move that names the operation of a storage that it moves for. */
export const STORAGE_OPERATION = 'storage_operation_id'

/** The tier to which a move under way brings the storage; undefined when there is none, or it only changes the node. */
export function requestedTier(storage: StorageObject): StorageSpec['tier'] | undefined {
  const operation = activeOperation(storage)
  const wanted = operation?.kind === 'storage.move' ? operation.arguments?.['tier'] : undefined
  return STORAGE_TIERS.find((tier) => tier === wanted)
}

/** A disk is created on shared storage where its node has some. */
export const poolAmong = (tier: StorageSpec['tier'], pools: readonly string[]): string | undefined =>
  tier === 'standard' ? pools[0] : undefined

/** Whether the volume shows the same data as the server's own. Before that one is known, any volume on shared storage
 *  may. */
export const hasSameData = ({ spec: { pool } }: VolumeObject, own: VolumeObject | undefined): boolean =>
  pool !== undefined && (own === undefined || pool === own.spec.pool)

/** Whether a move has brought it, or was to. */
export const isBroughtByMove = ({ spec: { source } }: VolumeObject): boolean =>
  source?.kind === 'copy' || source?.kind === 'mirror'

/** Removes the volume from its node. Data on shared storage stays there for the node of the server. */
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
                takesOverFrom: volume.spec.takesOverFrom,
                isRetained: true,
              }),
            ]
          : []),
        removeVolume(volume),
      ]

/** Its node deletes the data too, unless it is retained. */
export const removeVolume = (volume: VolumeObject): PlainAction => ({ do: 'remove', type: Volume, key: keyOf(volume) })

const present = (
  holding: { readonly [Field in keyof VolumeContent]: VolumeContent[Field] | undefined },
): VolumeContent =>
  // Leaves undefined fields out.
  Object.fromEntries(Object.entries(holding).filter(([, value]) => value !== undefined)) as VolumeContent
