/** Volumes on nodes other than the server's own: the target of a move gets the volume that the move needs; obsolete
 *  ones on other nodes are removed. Pure. */
import { isDeepStrictEqual } from 'node:util'
import { nodeOf } from '../../../resources/instance/index.ts'
import type { StorageSpec } from '../../../resources/storage/index.ts'
import type { PlainAction } from '../../kit/effects.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import { isToSharedStorage } from '../../kit/shared-pools.ts'
import { removeKeysOf, removeServingKey } from './keys.ts'
import type { Observed } from './observed.ts'
import { wantedSnapshots } from './snapshots.ts'
import {
  ensureOwn,
  ensureVolume,
  hasSameData,
  type VolumeContent,
  isTerminating,
  poolAmong,
  requestedTier,
  STORAGE_OPERATION,
  type StorageObject,
  type VolumeObject,
  withdraw,
  isToTakeOver,
  withLostHosts,
} from './volumes.ts'

/** `own` is the volume of the server's own node. */
export function syncVolumes(
  storage: StorageObject,
  observed: Observed,
  own: VolumeObject | undefined,
): readonly PlainAction[] {
  const { node, target, volumes, usedOn, points = [], strays = [] } = observed
  const elsewhere = volumes.filter(
    (one) => nodeOf(one) !== node && nodeOf(one) !== target?.node && !usedOn.includes(nodeOf(one)),
  )
  // A volume may hold the only copy of the data until the server's own node has it.
  const obsolete = elsewhere.filter(
    (one) => !isToTakeOver(own, observed.lostBoots) && (hasSameData(one, own) || own?.status?.state === 'ready'),
  )
  const serve = own && serveOf(storage, observed, own)
  return [
    ...removeKeysOf(storage, elsewhere),
    ...obsolete.flatMap((one) => withdraw(storage, one, own)),
    ...(own === undefined || isTerminating(own)
      ? []
      : [
          ...removeServingKey(storage, own, serve),
          ensureOwn(storage, own, {
            serve,
            lostBoots: observed.lostBoots,
            snapshots: wantedSnapshots(points, strays, { isMoving: target !== undefined }),
          }),
          ...targetVolume(storage, observed, own),
        ]),
  ]
}

const moveOf = ({ target, migration }: Observed) =>
  target === undefined || migration?.operationId !== target.operationId
    ? undefined
    : { ...target, state: migration.state }

/** Both nodes can access the disk's pool, and it stays there. Within its zone a server on a pool moves only to such
 *  nodes. */
const isShared = (
  storage: StorageObject,
  observed: Observed,
  target: NonNullable<Observed['target']>,
  { spec: { pool } }: VolumeObject,
): boolean =>
  pool !== undefined &&
  tierOnArrival(storage, observed) === 'standard' &&
  (target.zone === observed.zone || target.pools.includes(pool))

/** The tier to which the move under way changes it; undefined when it changes none. A server that moves for another
 *  reason moves its disks unchanged: whether the storage may change its tier is decided after that. */
function tierOfMove(storage: StorageObject, { target, server }: Observed): StorageSpec['tier'] | undefined {
  const id = activeOperation(storage)?.id
  const operation = server && activeOperation(server)
  const isForStorage = target?.operationId === id || operation?.arguments?.[STORAGE_OPERATION] === id
  return id !== undefined && isForStorage ? requestedTier(storage) : undefined
}

const tierOnArrival = (storage: StorageObject, observed: Observed): StorageSpec['tier'] =>
  tierOfMove(storage, observed) ?? storage.spec.tier

/** Whether the move under way changes where the data is: the move of this storage, or of another one that takes its
 *  server along. */
const isToLieElsewhere = (storage: StorageObject, observed: Observed): boolean => {
  const operation = observed.server && activeOperation(observed.server)
  return tierOfMove(storage, observed) !== undefined || (operation !== undefined && isToSharedStorage(operation))
}

/** The source serves a stopped server's disk for copying, unless both nodes can access it. */
function serveOf(storage: StorageObject, observed: Observed, own: VolumeObject): VolumeContent['serve'] {
  const move = moveOf(observed)
  if (
    move?.state !== 'detached' ||
    isShared(storage, observed, move, own) ||
    !observed.isGuestOff ||
    observed.moveSecretName === undefined
  )
    return undefined
  return { id: move.operationId, secretName: observed.moveSecretName }
}

/** The target's volume stays as it is before the kind of move is known, and during a rollback. */
function targetVolume(storage: StorageObject, observed: Observed, own: VolumeObject): readonly PlainAction[] {
  const move = moveOf(observed)
  if (move === undefined || move.state === 'reserved' || move.state === 'aborting') return []
  const existing = observed.volumes.find((one) => nodeOf(one) === move.node)
  if (existing !== undefined && isTerminating(existing)) return removeKeysOf(storage, [existing])
  const content = contentOf(storage, observed, move, { own, existing })
  const isOther = existing !== undefined && !isDeepStrictEqual(existing.spec.source, content.source)
  if (isOther)
    return observed.usedOn.includes(move.node)
      ? []
      : [...removeKeysOf(storage, [existing]), ...withdraw(storage, existing, own)]
  // Deleting an older copy in the same pool would delete this one too, so it has to be gone first.
  const isBlockedByOldCopy =
    content.source !== undefined &&
    content.pool !== undefined &&
    observed.volumes.some((one) => one !== existing && one.spec.pool === content.pool)
  if (isBlockedByOldCopy) return []
  return [ensureVolume(storage, move.node, content)]
}

/** The volumes on source and target of a move. */
interface VolumePair {
  readonly own: VolumeObject
  readonly existing: VolumeObject | undefined
}

function contentOf(
  storage: StorageObject,
  observed: Observed,
  move: NonNullable<ReturnType<typeof moveOf>>,
  { own, existing }: VolumePair,
): VolumeContent {
  const [{ operationId: id, state }, { moveSecretName: secretName }] = [move, observed]
  const origin = own.status?.origin ?? own.spec.origin
  const known = origin === undefined ? {} : { origin }
  if (own.spec.pool !== undefined && isShared(storage, observed, move, own))
    return {
      ...known,
      pool: own.spec.pool,
      takesOverFrom: withLostHosts(existing ?? own, observed.lostBoots ?? []),
      isRetained: true,
      arrivingFor: id,
    }
  const pool = existing === undefined ? poolAmong(tierOnArrival(storage, observed), move.pools) : existing.spec.pool
  const inPool = pool === undefined ? {} : { pool }
  // A running guest moves its disks unchanged, unless they must move to other storage.
  if (state !== 'detached')
    return { ...known, source: { kind: 'mirror', name: id }, ...(isToLieElsewhere(storage, observed) ? inPool : {}) }
  const { serving } = own.status ?? {}
  const from =
    serving?.id === id && secretName !== undefined
      ? { copyFrom: { id, host: serving.host, port: serving.port, secretName } }
      : {}
  return { ...known, source: { kind: 'copy', name: id }, ...from, ...inPool }
}
