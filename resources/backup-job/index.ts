/** BackupJob: work of a node for a backup of an account. Controllers write spec, the agent of the node writes
 *  status. */
import { z } from 'zod'
import { resource } from '../kit/define.ts'
import { ObjectStorageZone } from '../kit/shapes.ts'
import { ObjectName, OBSERVED } from '../kit/fields.ts'
import { AGE, STATE } from '../kit/columns.ts'

export const BACKUP_JOB_WORK = ['write', 'copy', 'restore', 'verify', 'remove'] as const
export const COMPLETE_BACKUPS_MAXIMUM = 2_000
/** Feature of a node with a place for backups: NodeReport.spec.features. */
export const BACKUPS_FEATURE = 'backups'
const SOURCE_FEATURE = 'backups-from:'
/** Feature of a node that can also read the backups of that other zone. */
export const backupSourceFeature = (zone: string): string => `${SOURCE_FEATURE}${zone}`
export const backupSourcesOf = (features: readonly string[]): readonly string[] =>
  features
    .filter((feature) => feature.startsWith(SOURCE_FEATURE))
    .map((feature) => feature.slice(SOURCE_FEATURE.length))
/** Feature of a node that can keep backups in the object storage of its zone. */
export const OBJECT_BACKUPS_FEATURE = 'backups-object-storage'
/** Feature of a node whose backups go to a bucket that its operator chose. */
export const VAULT_FEATURE = 'backups-vault'
/** Key in the Secret that the job names: the account's key, 64 hexadecimal digits. */
export const BACKUP_KEY = 'key'
/** Key in the Secret of a place in object storage: `BackupPlace` as JSON. */
export const BACKUP_PLACE = 'place'

/** Secret in a node's namespace with access to the account's backups in the object storage of a zone. */
export const backupPlaceSecret = (accountId: string, zone: string): string => `backup-place-${zone}-${accountId}`

/** Where the backups of one account are in the object storage of one zone. The key gives access to nothing else. */
export const BackupPlace = z.strictObject({
  /** Includes the bucket: `https://host[:port]/bucket`. */
  url: z.url({ protocol: /^https?$/ }),
  /** PEM of the CA that signed its certificate; null for a public CA. */
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
    'Work of this node for a Backup: write it, copy it from another zone, restore it to a Volume, verify it, or ' +
    'remove it. The platform creates it for an operation, uses the id of the operation as its name, and removes ' +
    'it when the operation ends.',
  spec: z
    .strictObject({
      backup: z
        .strictObject({
          namespace: ObjectName.describe('Namespace of the account.'),
          name: BackupName.describe('Name of the Backup, and of its manifest in the store.'),
          uid: z.string().max(63).describe('uid of that Backup.'),
        })
        .describe('Backup that the work is for.'),
      work: z.enum(BACKUP_JOB_WORK).describe('Kind of work.'),
      accountId: z.string().max(63).describe('Account whose part of the store is used.'),
      secretName: ObjectName.describe("Secret of this namespace with the account's key."),
      storageId: ObjectName.describe('Storage that was backed up.'),
      objectStorageZone: ObjectStorageZone,
      volume: ObjectName.optional().describe('Volume to read (write) or to write (restore).'),
      copyOf: z
        .strictObject({
          zone: z.string().max(63).describe('Zone whose store has the backup.'),
          name: BackupName.describe('Name of the manifest in that store.'),
          objectStorageZone: ObjectStorageZone,
        })
        .optional()
        .describe('For copy: the backup to copy into the store of this node.'),
      parent: BackupName.optional().describe(
        'Newest complete backup of the storage; only the changes since then are written.',
      ),
      completeBackups: z
        .array(BackupName)
        .max(COMPLETE_BACKUPS_MAXIMUM)
        .optional()
        .describe(
          'For remove: the other backups of the account. Chunks that none of them needs are removed; none when absent.',
        ),
    })
    .describe('Work that the node must do. Written by the platform.'),
  status: z
    .strictObject({
      ...OBSERVED,
      state: z.enum(['running', 'done', 'failed']).describe('Progress or outcome of the work.'),
      detail: z.string().max(1024).optional().describe('Reason for the failure, or the most recent error.'),
      bytesDone: z.int().min(0).optional().describe('Bytes of the disk processed so far.'),
      bytesTotal: z.int().min(0).optional().describe('Bytes of the disk to process.'),
      bytesSent: z.int().min(0).optional().describe('Bytes of the disk that were sent to the store.'),
      sizeBytes: z.int().min(0).optional().describe('Size of the disk at the point of the backup.'),
      parent: BackupName.optional().describe('Backup from which unchanged data was reused.'),
      fullBecause: z.string().max(1024).optional().describe('Reason for reading the full disk.'),
      isFrozen: z.boolean().optional().describe('Whether the file systems of the guest were frozen at that point.'),
      damage: z.string().max(1024).optional().describe('Missing or damaged data that verification found.'),
      target: z.enum(['ceph', 'vault', 'zone-object-store']).optional().describe('Kind of store that has the backup.'),
      isSameHost: z.boolean().optional().describe('Whether the store is on this host.'),
      isHalfWritten: z
        .boolean()
        .optional()
        .describe('For a failed restore: whether the disk mixes data of the backup with its previous data.'),
      isRemoved: z.boolean().optional().describe('Whether the node has removed everything of the work.'),
    })
    .describe('Progress of the work. Written by the agent of the node.'),
  columns: [
    { name: 'Work', type: 'string', jsonPath: '.spec.work' },
    { name: 'Backup', type: 'string', jsonPath: '.spec.backup.name' },
    STATE,
    { name: 'Done', type: 'integer', jsonPath: '.status.bytesDone' },
    { name: 'Total', type: 'integer', jsonPath: '.status.bytesTotal' },
    AGE,
  ],
  rules: [{ rule: 'self.spec == oldSelf.spec', message: 'the work cannot be changed' }],
})
export type BackupJobSpec = z.infer<typeof BackupJob.spec>
export type BackupJobStatus = z.infer<typeof BackupJob.status>
