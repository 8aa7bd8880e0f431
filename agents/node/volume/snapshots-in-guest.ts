/** Snapshots in a disk that a running guest has open: only its QEMU changes them. */
import { Unavailable } from '../../../domain/problem.ts'
import type { Hypervisor, SnapshotChange } from '../drivers/hypervisor/hypervisor.ts'
import type { SnapshotInGuest, TakeInGuest } from '../drivers/storage/volume-store.ts'

type Guests = Pick<Hypervisor, 'changeSnapshots' | 'monitorOf'>

/** No snapshot has this name: one that is in a disk has a size too. */
const NO_SNAPSHOT = 'none'
const IS_MISSING = /does not exist/

/** Throws Unavailable while a job of QEMU has the disk, and when the guest has it no longer. */
async function change(guests: Guests, user: string, path: string, wanted: SnapshotChange): Promise<void> {
  const isDone = await guests.changeSnapshots(user, path, wanted).catch((error: unknown) => {
    throw new Unavailable(`disk ${path}, which is read or copied`, error)
  })
  if (!isDone) throw new Unavailable(`guest ${user}, which has disk ${path}`, undefined)
}

/** Throws Unavailable while a job of QEMU has the disk. Asked before the guest is frozen, so that one that is backed up
 *  is not frozen again and again: QEMU refuses to remove what is not there, and says which of the two it is. */
async function requireNoJob(guests: Guests, user: string, path: string): Promise<void> {
  await change(guests, user, path, { verb: 'remove', label: NO_SNAPSHOT }).catch((error: unknown) => {
    const cause = error instanceof Unavailable ? error.cause : undefined
    if (!(cause instanceof Error && IS_MISSING.test(cause.message))) throw error
  })
}

/** Takes one with the file systems of the guest frozen, when its agent does that in time. */
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
    // The guest thawed by itself, before the point or after it: nothing is claimed of it.
    await act('remove', wasFrozen)
    await act('take', false)
  }

export const removeInGuest =
  (guests: Guests, user: string): SnapshotInGuest =>
  (path, label) =>
    change(guests, user, path, { verb: 'remove', label })
