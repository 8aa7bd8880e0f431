/** Owners of disks on shared storage. A host records itself beside the disk before one of its guests can open it, and
 *  removes the record when no guest has the disk. It takes a disk from another host only in three cases: that host has
 *  released it, the guest itself came from there, or that host provably runs nothing since the recorded boot. So if
 *  Kubernetes is restored to an older state, a disk never gets a second writer, and a host never removes a disk that
 *  another host's guest has. */
import { Unavailable } from '../../../domain/problem.ts'
import type { Caches } from '../../../kit/kube/caches.ts'
import { Volume } from '../../../resources/instance/index.ts'
import type { VolumeOwner, VolumeStore } from '../drivers/storage/volume-store.ts'

export interface OwnershipOptions {
  readonly caches: Caches
  readonly volumes: VolumeStore
  /** This host with its current boot. */
  readonly holder: () => Promise<VolumeOwner>
  readonly namespace: string
}

export interface Ownership {
  /** Another host that has the disk and may still run its guest; undefined when there is none. */
  otherOwnerOf(volume: string): Promise<string | undefined>
  /** Throws Unavailable while another host has the disk. Give the pool when this host does not hold the volume yet. */
  requireFree(volume: string, pool?: string): Promise<void>
  /** Makes this host the owner. Throws Unavailable while another host has the disk, unless the guest came from there.
   */
  take(volume: string, isArrived?: boolean): Promise<void>
  /** Releases the disk when no guest of this host has it. Does nothing when this host is not the owner. */
  give(volume: string): Promise<void>
  /** The last change that this process recorded, if any. */
  lastNoted(volume: string): 'taken' | 'given' | undefined
}

export function openOwnership({ caches, volumes, holder, namespace }: OwnershipOptions): Ownership {
  const noted = new Map<string, 'taken' | 'given'>()
  /** An owner that may still run. */
  async function livingOwnerOf(volume: string, pool?: string) {
    const [owner, self] = [await volumes.ownerOf(volume, pool), await holder()]
    const { takesOverFrom = [] } = caches.of(Volume).get({ namespace, name: volume })?.spec ?? {}
    const isProven = takesOverFrom.some(({ node, bootId }) => node === owner?.node && bootId === owner.bootId)
    return { owner, self, isOther: owner !== undefined && owner.node !== self.node && !isProven }
  }
  const refuse = (volume: string, node: string | undefined): never => {
    throw new Unavailable(`disk ${volume}, which host ${node} has`, undefined)
  }

  return {
    async otherOwnerOf(volume) {
      const { owner, isOther } = await livingOwnerOf(volume)
      return isOther ? owner?.node : undefined
    },
    async requireFree(volume, pool) {
      const { owner, isOther } = await livingOwnerOf(volume, pool)
      if (isOther) refuse(volume, owner?.node)
    },
    async take(volume, isArrived = false) {
      const { owner, self, isOther } = await livingOwnerOf(volume)
      if (owner?.node !== self.node || owner.bootId !== self.bootId) {
        noted.delete(volume)
        if (isOther && !isArrived) refuse(volume, owner?.node)
        if (!(await volumes.changeOwner(volume, owner, self))) refuse(volume, 'another')
      }
      noted.set(volume, 'taken')
    },
    async give(volume) {
      noted.delete(volume)
      const [owner, self] = [await volumes.ownerOf(volume), await holder()]
      if (owner?.node === self.node) await volumes.changeOwner(volume, owner, undefined)
      noted.set(volume, 'given')
    },
    lastNoted: (volume) => noted.get(volume),
  }
}
