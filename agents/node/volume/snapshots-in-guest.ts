/** Snapshots in a disk that a running guest has open: only its QEMU changes them. */
import { Unavailable } from '../../../domain/problem.ts'
import type { Hypervisor, SnapshotChange } from '../drivers/hypervisor/hypervisor.ts'
import type { SnapshotInGuest, TakeInGuest } from '../drivers/storage/volume-store.ts'

type Guests = Pick<Hypervisor, 'changeSnapshots' | 'monitorOf'>

/** No snapshot has this name: names of real snapshots also contain a size. */
const NO_SNAPSHOT = 'none'
const IS_MISSING = /does not exist/

/** Throws Unavailable while a job of QEMU uses the disk, and when the guest does not have it. */
async function change(guests: Guests, user: string, path: string, wanted: SnapshotChange): Promise<void> {
  const isDone = await guests.changeSnapshots(user, path, wanted).catch((error: unknown) => {
    throw new Unavailable(`disk ${path}, which is read or copied`, error)
  })
  if (!isDone) throw new Unavailable(`guest ${user}, which has disk ${path}`, undefined)
}

/** Throws Unavailable while a job of QEMU uses the disk. Called before the guest is frozen, so that a guest that is
 *  being backed up is not frozen repeatedly. It asks QEMU to remove a snapshot that does not exist; the error shows
 *  whether a job is the cause. */
async function requireNoJob(guests: Guests, user: string, path: string): Promise<void> {
  await change(guests, user, path, { verb: 'remove', label: NO_SNAPSHOT }).catch((error: unknown) => {
    const cause = error instanceof Unavailable ? error.cause : undefined
    if (!(cause instanceof Error && IS_MISSING.test(cause.message))) throw error
  })
}

/** Takes a snapshot, with the file systems of the guest frozen if its agent freezes them in time. */
export const takeInGuest =
  (guests: Guests, user: string): TakeInGuest =>
  async (path, labelOf) => {
    const act = (verb: SnapshotChange['verb'], isFrozen: boolean) =>
      change(guests, user, path, { verb, label: labelOf(isFrozen) })
    await requireNoJob(guests, user, path)
    const monitor = guests.monitorOf(user)
    if (monitor === undefined) return act('take', false)
    const { result: wasFrozen, isFrozen } = await monitor.whileFrozen(async (is) => {
      await act('take', is)
      return is
    })
    if (wasFrozen === isFrozen) return
    // The guest thawed by itself, before or after the snapshot, so the snapshot is taken again as not frozen.
    await act('remove', wasFrozen)
    await act('take', false)
  }

export const removeInGuest =
  (guests: Guests, user: string): SnapshotInGuest =>
  (path, label) =>
    change(guests, user, path, { verb: 'remove', label })
