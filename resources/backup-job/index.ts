/** BackupJob: what a node has to do for a backup of an account. Controllers write spec, the agent of the node writes
 *  status. */
import { z } from 'zod'
import { resource } from '../kit/define.ts'
import { Conditions, ObjectStorageZone, ObservedGeneration } from '../kit/shapes.ts'

export const BACKUP_JOB_WORK = ['write', 'copy', 'restore', 'verify', 'remove'] as const
const BACKUPS_MAXIMUM = 2_000
/** Of a node that has a place for backups: NodeReport.spec.features. */
export const BACKUPS_FEATURE = 'backups'
const SOURCE_FEATURE = 'backups-from:'
/** Of a node that can also read the backups of that other zone. */
export const backupSourceFeature = (zone: string): string => `${SOURCE_FEATURE}${zone}`
export const backupSourcesOf = (features: readonly string[]): readonly string[] =>
  features
    .filter((feature) => feature.startsWith(SOURCE_FEATURE))
    .map((feature) => feature.slice(SOURCE_FEATURE.length))
/** Of a node that can keep backups in the object storage of its zone. */
export const OBJECT_BACKUPS_FEATURE = 'backups-object-storage'
/** Of a node whose place is a bucket that its operator chose: its backups go there. */
export const VAULT_FEATURE = 'backups-vault'
/** In the Secret that the job names: the account's key, 64 hexadecimal digits. */
export const BACKUP_KEY = 'key'
/** In the Secret of a place in object storage: `BackupPlace` as JSON. */
export const BACKUP_PLACE = 'place'

/** Secret of a node's namespace that lets it use the place of the account's backups in the object storage of a zone. */
export const backupPlaceSecret = (accountId: string, zone: string): string => `backup-place-${zone}-${accountId}`

/** Where the backups of one account are in the object storage of one zone. The key opens nothing else. */
export const BackupPlace = z.strictObject({
  /** With the bucket: `https://host[:port]/bucket`. */
  url: z.url({ protocol: /^https?$/ }),
  /** PEM of who signed its certificate; null when that is one that everybody trusts. */
  authority: z.string().nullable(),
  accessKeyId: z.string(),
  secretAccessKey: z.string(),
  backend: z.enum(['rgw', 'svc-s3-single']),
})
export type BackupPlace = z.infer<typeof BackupPlace>

const BackupName = z.string().max(63)

export const BackupJob = resource({
  kind: 'BackupJob',
  plural: 'backupjobs',
  shortNames: ['bj'],
  scope: 'Namespaced',
  description:
    'Work of this node for a Backup: writing it, copying it from another zone, restoring it to a Volume, reading ' +
    'it back, or removing it. Made by the platform for an operation, whose id is its name, and removed when that ' +
    'has ended.',
  spec: z
    .strictObject({
      backup: z
        .strictObject({
          namespace: z.string().max(253).describe('Namespace of the account.'),
          name: BackupName.describe('Name of the Backup, and of its manifest in the store.'),
          uid: z.string().max(63).describe('Which Backup of that name.'),
        })
        .describe('Backup that the work is for.'),
      work: z.enum(BACKUP_JOB_WORK).describe('What is done.'),
      accountId: z.string().max(63).describe('Account whose part of the store is used.'),
      secretName: z.string().max(253).describe("Secret of this namespace with the account's key."),
      storageId: z.string().max(253).describe('Storage that the backup is of.'),
      objectStorageZone: ObjectStorageZone,
      volume: z.string().max(253).optional().describe('Volume that is read (write) or written (restore).'),
      copyOf: z
        .strictObject({
          zone: z.string().max(63).describe('Zone whose store has it.'),
          name: BackupName.describe('Name of its manifest there.'),
          objectStorageZone: ObjectStorageZone,
        })
        .optional()
        .describe('With copy: the backup that is copied into the store of this node.'),
      parent: BackupName.optional().describe('Newest complete backup of the storage, to write only what has changed.'),
      completeBackups: z
        .array(BackupName)
        .max(BACKUPS_MAXIMUM)
        .optional()
        .describe('With remove: the other backups of the account. Chunks that none of them names are removed too.'),
    })
    .describe('What the node has to do. Written by the platform.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      state: z.enum(['running', 'done', 'failed']).describe('Whether it is under way, or how it ended.'),
      detail: z.string().max(1024).optional().describe('Why it failed, or what went wrong last.'),
      bytesDone: z.int().min(0).optional().describe('Bytes of the disk that have been dealt with.'),
      bytesTotal: z.int().min(0).optional().describe('Bytes of the disk that must be dealt with.'),
      bytesSent: z.int().min(0).optional().describe('Bytes of the disk that had to be sent to the store.'),
      sizeBytes: z.int().min(0).optional().describe('Size of the disk at the point of the backup.'),
      parent: BackupName.optional().describe('Backup that unchanged data was taken from.'),
      fullBecause: z.string().max(1024).optional().describe('Why the whole disk was read.'),
      isFrozen: z.boolean().optional().describe('Whether the guest had its file systems frozen at the point.'),
      damage: z.string().max(1024).optional().describe('What verification found to be missing or wrong.'),
      target: z.enum(['ceph', 'vault', 'zone-object-store']).optional().describe('What kind of store holds it.'),
      isSameHost: z.boolean().optional().describe('Whether the store is on this host.'),
      isHalfWritten: z
        .boolean()
        .optional()
        .describe('Of a restore that failed: the disk holds a part of the backup and a part of what it held before.'),
      isRemoved: z.boolean().optional().describe('Nothing of the work is left on the node.'),
    })
    .describe('How far the work is. Written by the agent of the node.'),
  columns: [
    { name: 'Work', type: 'string', jsonPath: '.spec.work' },
    { name: 'Backup', type: 'string', jsonPath: '.spec.backup.name' },
    { name: 'State', type: 'string', jsonPath: '.status.state' },
    { name: 'Done', type: 'integer', jsonPath: '.status.bytesDone' },
    { name: 'Total', type: 'integer', jsonPath: '.status.bytesTotal' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  rules: [{ rule: 'self.spec == oldSelf.spec', message: 'the work cannot be changed' }],
})
export type BackupJobSpec = z.infer<typeof BackupJob.spec>
export type BackupJobStatus = z.infer<typeof BackupJob.status>
