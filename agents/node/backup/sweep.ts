/** Removes chunks that no backup of the account refers to. */
import { chunkCountOf, digestAt } from '../../../kit/chunks/manifest.ts'
import { manifestName, type Repository } from '../../../kit/chunks/repository.ts'
import { DamagedObject } from '../../../kit/chunks/seal.ts'
import type { Clock } from '../../../kit/sys/clock.ts'

export interface SweepOptions {
  readonly repository: Repository
  /** Every backup that the control plane knows to be complete. If the store's list lacks one of these, the list is not
   *  trusted. */
  readonly backups: readonly string[]
  /** No backup takes longer, or uses older chunks of other backups. Chunks younger than twice that may belong to a
   *  backup that is being written. */
  readonly longestBackupSeconds: number
  readonly clock: Clock
}

/** Returns how many chunks were removed. Throws without removing anything when a manifest cannot be read, because its
 *  chunks are then unknown. */
export async function sweepChunks({ repository, backups, longestBackupSeconds, clock }: SweepOptions): Promise<number> {
  const youngest = clock.now().getTime() - 2 * longestBackupSeconds * 1000
  const old: Buffer[] = []
  for await (const { digest, modifiedAt } of repository.listChunks())
    if (modifiedAt.getTime() < youngest) old.push(digest)
  if (old.length === 0) return 0
  // Manifests are listed after the chunks. So this list includes a manifest that was written meanwhile, or its chunks
  // are young.
  const listed = await repository.listManifests()
  const unlisted = backups.find((backup) => !listed.includes(backup))
  if (unlisted !== undefined) throw new DamagedObject(manifestName(unlisted), 'is not in the list of the store')
  const used = new Set<string>()
  for (const backup of listed) {
    const { sizeBytes, digests } = await repository.getManifest(backup)
    for (let chunk = 0; chunk < chunkCountOf(sizeBytes); chunk++) {
      const digest = digestAt(digests, chunk)
      if (digest !== undefined) used.add(digest.toString('hex'))
    }
  }
  const unused = old.filter((digest) => !used.has(digest.toString('hex')))
  for (const digest of unused) await repository.removeChunk(digest)
  return unused.length
}
