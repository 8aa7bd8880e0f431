/** The initial content of a new storage's volume, by the kind of its source. Pure. One line for each kind; `observe`
 *  reads what it needs to know about the source. */
import { defined } from '../../../domain/defined.ts'
import type { StorageSource } from '../../../resources/storage/index.ts'
import { backupKeyKey } from '../../kit/backup-key.ts'
import type { StorageAction } from './actions.ts'
import { nodeOf } from '../../../resources/instance/index.ts'
import type { Observed } from './observed.ts'
import { hasSnapshot } from './snapshots.ts'
import type { VolumeContent } from './volumes.ts'

/** `waiting` becomes `known` or `refused` by itself; `refused` does not. */
export type SourceContent<Field extends keyof VolumeContent = 'source'> =
  | { readonly is: 'known'; readonly content: Pick<VolumeContent, Field> }
  | { readonly is: 'waiting'; readonly for: string }
  | { readonly is: 'refused'; readonly why: string }

const known = (source: NonNullable<VolumeContent['source']>): SourceContent => ({ is: 'known', content: { source } })
type ContentOf = (source: StorageSource, observed: Observed) => SourceContent

const CONTENTS: Readonly<Record<StorageSource['kind'], ContentOf>> = {
  template: ({ id }, { image }) =>
    known(image === undefined ? { kind: 'template', name: id } : { kind: 'image', name: image }),
  backup: ({ id }, { accountId, node, isBackupOnline, backupObjectStorageZone: objectStorageZone }) => {
    if (accountId === undefined || node === undefined) return { is: 'waiting', for: 'a host' }
    return isBackupOnline === true
      ? known({
          kind: 'backup',
          name: id,
          accountId,
          secretName: backupKeyKey(accountId, node).name,
          ...defined({ objectStorageZone }),
        })
      : { is: 'refused', why: `There is no backup ${id} that is complete.` }
  },
  snapshot: (_source, observed) => pointOf(observed, 'snapshot'),
  storage: (_source, observed) => pointOf(observed, 'storage'),
  image: ({ id }, { image }) =>
    image === undefined
      ? { is: 'refused', why: `There is no custom image ${id}.` }
      : known({ kind: 'image', name: image }),
}

/** What a host needs before it can create the volume. */
export const needsOfSource = (
  source: StorageSource | undefined,
  { accountId, node, backupObjectStorageZone: zone }: Observed,
): readonly StorageAction[] =>
  source?.kind === 'backup' && accountId !== undefined && node !== undefined
    ? [
        {
          do: 'effect',
          name: 'shareBackupKey',
          input: {
            accountId,
            secret: backupKeyKey(accountId, node),
            ...(zone === undefined ? {} : { objectStorageZones: [zone] }),
          },
        },
      ]
    : []

/** A point in the disk of another storage, which this one's node reads: on shared storage, or on its own disks. */
function pointOf({ origin, node }: Observed, what: 'snapshot' | 'storage'): SourceContent {
  if (origin === undefined || origin.isLost)
    return { is: 'refused', why: `The ${what} that it is made from no longer exists.` }
  const { storage, volumes, point, isReady } = origin
  const holder = isReady ? volumes.find((volume) => hasSnapshot(volume, point)) : undefined
  if (holder === undefined) return { is: 'waiting', for: `the ${what} to be at one point` }
  const { pool } = holder.spec
  if (pool === undefined && nodeOf(holder) !== node)
    return { is: 'refused', why: `The ${what} that it is made from is on another host.` }
  return known({
    kind: 'snapshot',
    name: point,
    volume: storage.metadata.uid ?? '',
    ...defined({ pool }),
  })
}

/** The content for a storage whose volume is not created yet. */
export const contentOfSource = (source: StorageSource | undefined, observed: Observed): SourceContent =>
  source === undefined ? { is: 'known', content: {} } : CONTENTS[source.kind](source, observed)
