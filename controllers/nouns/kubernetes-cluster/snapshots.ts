/** Snapshots of a cluster: how one is taken, when one is due, and which are deleted. Its status records the last slot
 *  of its schedule that has been handled; of missed slots only the newest is made up for. Pure. */
import { dueSlot, parseBackupSchedule } from '../../../domain/backup/schedule.ts'
import { isSnapshotKind, type SnapshotKind } from '../../../domain/kubernetes-cluster/rules.ts'
import type { ClusterSnapshot } from '../../../db/kubernetes-cluster/index.ts'
import { type KubernetesClusterStatus, STORED_SNAPSHOTS_MAXIMUM } from '../../../resources/kubernetes-cluster/index.ts'
import type { OperationStanza } from '../../../resources/kit/shapes.ts'
import { SYSTEM_ACTOR, type OperationStart } from '../../kit/operation/direct-edit.ts'
import { type ClusterEffect, type ClusterObject, type Decision, type HostView, idOf, type Input } from './observed.ts'
import { failed } from '../../kit/synced.ts'

const LOOK_SECONDS = 1

/** Why an operation takes a snapshot: `manual` unless its arguments say otherwise. */
export const kindOf = ({ arguments: { kind } = {} }: OperationStanza): SnapshotKind =>
  isSnapshotKind(kind) ? kind : 'manual'

/** Undefined once the snapshot of that id is taken and recorded. */
export function snapshotStep(
  input: Input,
  { id, kind }: { readonly id: string; readonly kind: SnapshotKind },
  step: NonNullable<Decision['step']>,
): Decision | undefined {
  const { host, snapshots } = input.observed
  if (snapshots.some((each) => each.id === id)) return undefined
  const known = 'obstacle' in host ? undefined : host.snapshots.find((each) => each.id === id)
  if (known?.phase === 'failed') return failed(step, `The snapshot could not be taken: ${known.detail}`)
  const actions: readonly ClusterEffect[] =
    known === undefined
      ? [{ do: 'effect', name: 'snapshot', input: { ...idOf(input), snapshotId: id } }]
      : known.phase === 'done'
        ? [{ do: 'effect', name: 'record', input: { ...idOf(input), snapshot: recordOf(known, kind) } }]
        : []
  const waitSeconds = known?.phase === 'done' ? 0 : LOOK_SECONDS
  return { health: 'reconciling', reason: 'Saving', step, actions, waitFor: 'its snapshot', waitSeconds }
}

const recordOf = (
  { id, release, sizeBytes, createdAt }: HostView['snapshots'][number],
  kind: SnapshotKind,
): ClusterSnapshot => ({ id, kind, release, sizeBytes, createdAt: new Date(createdAt) })

/** The slot of the newest operation, whatever its outcome. */
const triedSlot = ({ spec: { operation } }: ClusterObject): string | undefined => operation?.arguments?.['slot']

/** The snapshot that its schedule requires now. One that could not be taken is not retried: the next slot follows. */
export function dueSnapshot(
  cluster: ClusterObject,
  now: Date,
): (OperationStart & { readonly actor: string }) | undefined {
  const text = cluster.spec.etcdSnapshotSchedule
  const schedule = parseBackupSchedule(text)
  const done = cluster.status?.snapshots
  if ('fault' in schedule || done?.schedule !== text) return undefined
  const after = new Date(Math.max(Date.parse(done.doneUntil), Date.parse(triedSlot(cluster) ?? done.doneUntil)))
  const slot = dueSlot(schedule, { after, now })
  return (
    slot && {
      kind: 'kubernetes_cluster.snapshot',
      arguments: { kind: 'scheduled', slot: slot.toISOString() },
      actor: SYSTEM_ACTOR,
    }
  )
}

/** A new schedule has missed nothing; when the clock went back, it starts again from the present; and a slot whose
 *  operation has ended is not retried. */
export function noted({ root, now }: Input): Pick<KubernetesClusterStatus, 'snapshots'> {
  const { etcdSnapshotSchedule: schedule } = root.spec
  const done = root.status?.snapshots
  if (done?.schedule !== schedule || Date.parse(done.doneUntil) > now.getTime())
    return { snapshots: { schedule, doneUntil: now.toISOString() } }
  const slot = triedSlot(root)
  const isNewer = slot !== undefined && Date.parse(slot) > Date.parse(done.doneUntil)
  return { snapshots: isNewer ? { schedule, doneUntil: slot } : done }
}

/** Configures its host with the place in object storage when the host has another one, and when snapshots do not arrive
 *  there: a store that has lost the tenant is configured with it again. */
export function placing(input: Input): readonly ClusterEffect[] {
  const { host, place } = input.observed
  const store = 'obstacle' in host ? undefined : host.plane?.snapshotStore
  if (place === undefined || store === undefined) return []
  const isKnown = place !== '' && place === store.mark
  if (isKnown && store.detail === '') return []
  return [{ do: 'effect', name: 'place', input: idOf(input) }]
}

/** Ids of snapshots that are in object storage too; undefined for none. */
export function storedSnapshotIds({ snapshots }: HostView): string[] | undefined {
  const stored = snapshots.flatMap(({ id, isStored }) => (isStored ? [id] : []))
  return stored.length === 0 ? undefined : stored.slice(-STORED_SNAPSHOTS_MAXIMUM)
}

/** The oldest snapshots above the limit of each kind are deleted. A snapshot that the host has and nobody recorded is
 *  kept, as a manual one. */
export function snapshotUpkeep(input: Input): readonly ClusterEffect[] {
  const { host, snapshots } = input.observed
  const { etcdSnapshotRetention: most } = input.root.spec
  const counts = new Map<SnapshotKind, number>()
  const excess = snapshots.filter(({ kind }) => {
    const count = (counts.get(kind) ?? 0) + 1
    counts.set(kind, count)
    return count > most
  })
  const unknown = ('obstacle' in host ? [] : host.snapshots).filter(
    ({ id, phase }) => phase === 'done' && !snapshots.some((each) => each.id === id),
  )
  const id = idOf(input)
  return [
    ...excess.map(
      ({ id: snapshotId }): ClusterEffect => ({ do: 'effect', name: 'forget', input: { ...id, snapshotId } }),
    ),
    ...unknown.map(
      (each): ClusterEffect => ({
        do: 'effect',
        name: 'record',
        input: { ...id, snapshot: recordOf(each, 'manual') },
      }),
    ),
  ]
}
