/** Disks on nodes other than the server's own: one on the node that it goes to, as its move needs it; what is left elsewhere goes. Pure. */
import { isDeepStrictEqual } from 'node:util'
import type { Action } from '../../kit/reconcile/action.ts'
import type { Seen } from './plan.ts'
import { ensureOwn, ensureVolume, type Holding, isLeaving, nodeOf, remove, type StorageObject, type VolumeObject, withdraw } from './volumes.ts'

/** `own` is the volume of the server's own node. */
export function carry(storage: StorageObject, seen: Seen, own: VolumeObject | undefined): readonly Action[] {
  const { node, target, volumes, usedOn } = seen
  const elsewhere = volumes.filter((one) => nodeOf(one) !== node && nodeOf(one) !== target?.node && !usedOn.includes(nodeOf(one)))
  // A disk that only its node has is kept until the server's own node has it.
  const needless = elsewhere.filter(({ spec }) => spec.pool !== undefined || own?.status?.state === 'ready')
  return [
    ...needless.flatMap((one) => withdraw(storage, one)),
    ...(own === undefined || isLeaving(own) ? [] : [ensureOwn(storage, own, serving(seen, own)), ...onTarget(storage, seen, own)]),
  ]
}

const moveOf = ({ target, migration }: Seen) => (target === undefined || migration?.operationId !== target.operationId ? undefined : { ...target, state: migration.state })

/** The disk of a server that stands still is copied, unless both nodes reach it. */
function serving(seen: Seen, own: VolumeObject): Holding['serve'] {
  const move = moveOf(seen)
  if (move?.state !== 'detached' || own.spec.pool !== undefined || !seen.isGuestOff || seen.moveSecretName === undefined) return undefined
  return { id: move.operationId, secretName: seen.moveSecretName }
}

/** Before it is known how the server moves, and while its move is undone, the target is left as it is. */
function onTarget(storage: StorageObject, seen: Seen, own: VolumeObject): readonly Action[] {
  const move = moveOf(seen)
  if (move === undefined || move.state === 'reserved' || move.state === 'aborting') return []
  const there = seen.volumes.find((one) => nodeOf(one) === move.node)
  const holding = holdingOf(seen, move, own)
  const isOther = there !== undefined && !isDeepStrictEqual(there.spec.source, holding.source)
  if (isOther) return isLeaving(there) || seen.usedOn.includes(move.node) ? [] : [remove(there)]
  return [ensureVolume(storage, move.node, holding)]
}

function holdingOf({ moveSecretName: secretName }: Seen, { operationId: id, state }: NonNullable<ReturnType<typeof moveOf>>, own: VolumeObject): Holding {
  const origin = own.status?.origin ?? own.spec.origin
  const known = origin === undefined ? {} : { origin }
  if (own.spec.pool !== undefined) return { ...known, pool: own.spec.pool, isRetained: true }
  if (state !== 'detached') return { ...known, source: { kind: 'mirror', name: id } }
  const { serving } = own.status ?? {}
  const from = serving?.id === id && secretName !== undefined ? { copyFrom: { id, host: serving.host, port: serving.port, secretName } } : {}
  return { ...known, source: { kind: 'copy', name: id }, ...from }
}
