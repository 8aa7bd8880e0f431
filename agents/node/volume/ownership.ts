/** Which host has a disk on shared storage. A host notes itself beside the disk before a guest of its can open it, and
 *  takes that back when no guest has it any more. It takes a disk over from another host only when that host has let
 *  go of it, when the guest itself has come from there, or when that host was proven to run nothing since the boot
 *  that is noted. So a Kubernetes that was put back to an older state never gives a disk a second writer, and never
 *  has one host remove what the guest of another has. */
import { Unavailable } from '../../../domain/problem.ts'
import type { Caches } from '../../../kit/kube/caches.ts'
import { Volume } from '../../../resources/instance/index.ts'
import type { VolumeOwner, VolumeStore } from '../drivers/storage/volume-store.ts'

export interface OwnershipOptions {
  readonly caches: Caches
  readonly volumes: VolumeStore
  /** This host as it runs now. */
  readonly holder: () => Promise<VolumeOwner>
  readonly namespace: string
}

export interface Ownership {
  /** Another host that has the disk, and has not been proven to run nothing; undefined when there is none. */
  otherOwnerOf(volume: string): Promise<string | undefined>
  /** Throws Unavailable while there is one. The pool is named when this host does not hold the volume yet. */
  requireFree(volume: string, pool?: string): Promise<void>
  /** This host has the disk from now on. Throws Unavailable while another one has it, unless the guest came from
   *  there. */
  take(volume: string, isArrived?: boolean): Promise<void>
  /** No guest of this host has the disk any more. Free when this host does not have it. */
  give(volume: string): Promise<void>
  /** What this process has noted last, where it was it that noted anything. */
  lastNoted(volume: string): 'taken' | 'given' | undefined
}

export function openOwnership({ caches, volumes, holder, namespace }: OwnershipOptions): Ownership {
  const noted = new Map<string, 'taken' | 'given'>()
  /** Of an owner that may still run. */
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
