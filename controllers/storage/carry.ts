/** Disks on nodes other than the server's own: one on the node that it goes to, as its move needs it; what is left
 *  elsewhere goes. Pure. */
import { isDeepStrictEqual } from 'node:util'
import { nodeOf } from '../../resources/instance/index.ts'
import type { PlainAction } from '../effects.ts'
import type { Observed } from './observed.ts'
import {
  ensureOwn,
  ensureVolume,
  hasSameData,
  type VolumeContent,
  isTerminating,
  poolAmong,
  removeVolume,
  type StorageObject,
  type VolumeObject,
  withdraw,
} from './volumes.ts'

/** `own` is the volume of the server's own node. */
export function syncVolumes(
  storage: StorageObject,
  observed: Observed,
  own: VolumeObject | undefined,
): readonly PlainAction[] {
  const { node, target, volumes, usedOn } = observed
  const elsewhere = volumes.filter(
    (one) => nodeOf(one) !== node && nodeOf(one) !== target?.node && !usedOn.includes(nodeOf(one)),
  )
  // A disk that only its node has is kept until the server's own node has it.
  const needless = elsewhere.filter((one) => hasSameData(one, own) || own?.status?.state === 'ready')
  return [
    ...needless.flatMap((one) => withdraw(storage, one, own)),
    ...(own === undefined || isTerminating(own)
      ? []
      : [ensureOwn(storage, own, serving(observed, own)), ...targetVolume(storage, observed, own)]),
  ]
}

const moveOf = ({ target, migration }: Observed) =>
  target === undefined || migration?.operationId !== target.operationId
    ? undefined
    : { ...target, state: migration.state }

/** Both nodes reach the disk where it is. In its own zone a server goes only to nodes of which that is so. */
const isShared = (
  { zone }: Observed,
  target: NonNullable<Observed['target']>,
  { spec: { pool } }: VolumeObject,
): boolean => pool !== undefined && (target.zone === zone || target.pools.includes(pool))

/** The disk of a server that stands still is copied, unless both nodes reach it. */
function serving(observed: Observed, own: VolumeObject): VolumeContent['serve'] {
  const move = moveOf(observed)
  if (
    move?.state !== 'detached' ||
    isShared(observed, move, own) ||
    !observed.isGuestOff ||
    observed.moveSecretName === undefined
  )
    return undefined
  return { id: move.operationId, secretName: observed.moveSecretName }
}

/** Before it is known how the server moves, and while its move is undone, the target is left as it is. */
function targetVolume(storage: StorageObject, observed: Observed, own: VolumeObject): readonly PlainAction[] {
  const move = moveOf(observed)
  if (move === undefined || move.state === 'reserved' || move.state === 'aborting') return []
  const there = observed.volumes.find((one) => nodeOf(one) === move.node)
  if (there !== undefined && isTerminating(there)) return []
  const holding = holdingOf(storage, observed, move, { own, there })
  const isOther = there !== undefined && !isDeepStrictEqual(there.spec.source, holding.source)
  if (isOther) return observed.usedOn.includes(move.node) ? [] : [removeVolume(there)]
  // Where an older copy is on its way out of the same shared storage, it would take this one along.
  const isInTheWay =
    holding.source?.kind === 'copy' &&
    holding.pool !== undefined &&
    observed.volumes.some((one) => one !== there && one.spec.pool === holding.pool)
  if (isInTheWay) return []
  return [ensureVolume(storage, move.node, holding)]
}

/** The volumes on the two ends of a move. */
interface Ends {
  readonly own: VolumeObject
  readonly there: VolumeObject | undefined
}

function holdingOf(
  storage: StorageObject,
  observed: Observed,
  move: NonNullable<ReturnType<typeof moveOf>>,
  { own, there }: Ends,
): VolumeContent {
  const [{ operationId: id, state }, { moveSecretName: secretName }] = [move, observed]
  const origin = own.status?.origin ?? own.spec.origin
  const known = origin === undefined ? {} : { origin }
  if (own.spec.pool !== undefined && isShared(observed, move, own))
    return { ...known, pool: own.spec.pool, isRetained: true, arrivingFor: id }
  if (state !== 'detached') return { ...known, source: { kind: 'mirror', name: id } }
  const { serving } = own.status ?? {}
  const from =
    serving?.id === id && secretName !== undefined
      ? { copyFrom: { id, host: serving.host, port: serving.port, secretName } }
      : {}
  const pool = there === undefined ? poolAmong(storage, move.pools) : there.spec.pool
  return { ...known, source: { kind: 'copy', name: id }, ...from, ...(pool === undefined ? {} : { pool }) }
}
