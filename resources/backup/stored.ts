/** Backup: one point of a storage, kept apart from it. */
import { z } from 'zod'
import { fixed, resource } from '../kit/define.ts'
import { Conditions, ObservedGeneration, ReportedOperation, RequestedOperation, ZoneName } from '../kit/shapes.ts'

export const BACKUP_STATES = ['creating', 'online', 'error', 'deleting'] as const
export const BACKUP_KINDS = ['manual', 'scheduled'] as const
export const BACKUP_TARGETS = ['ceph', 'vault', 'zone-object-store'] as const

const Instant = z.string().max(64).meta({ format: 'date-time' })

export const Backup = resource({
  kind: 'Backup',
  plural: 'backups',
  shortNames: ['bak'],
  scope: 'Namespaced',
  customers: 'write',
  description:
    'One point of a storage, kept apart from it. Create it with spec.storageId to make the backup, once; delete it ' +
    'to delete the backup. It stays when its storage is deleted, until it expires.',
  spec: z
    .strictObject({
      storageId: z.string().min(1).max(253).describe('Name of the Storage that it is a backup of. Cannot be changed.'),
      zone: ZoneName.optional().describe('Zone of the storage; written by the platform when absent.'),
      title: z.string().max(255).default('').describe('One line of free text for people.'),
      kind: z.enum(BACKUP_KINDS).default('manual').describe('Whether somebody asked for it, or a schedule did.'),
      expiresAt: Instant.optional().describe('When it is deleted by itself; never when absent.'),
      copyOf: z
        .strictObject({
          name: z.string().max(253).describe('Name of the Backup.'),
          zone: ZoneName.describe('Its zone.'),
        })
        .optional()
        .describe('The backup of another zone that it is a copy of. Written by the platform only.'),
      operation: RequestedOperation,
    })
    .describe('What is backed up, and for how long it is kept.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      state: z.enum(BACKUP_STATES).describe('What the backup is doing now, as the API shows it.'),
      stateDetail: z.string().max(1024).optional().describe('Why it is so, for people.'),
      region: z.string().max(63).optional().describe('Region of the zone.'),
      zone: z.string().max(63).optional().describe('Zone whose store holds it.'),
      sizeGibibytes: z.int().optional().describe('Size of the storage at that point, in GiB.'),
      completedAt: Instant.optional().describe('When it was complete.'),
      place: z
        .enum(['host', 'object-storage'])
        .optional()
        .describe(
          "Where it is: in the place that the zone's hosts are configured with (also when absent), or in the object " +
            'storage of the zone.',
        ),
      target: z.enum(BACKUP_TARGETS).optional().describe('What kind of store holds it.'),
      isSameHost: z.boolean().optional().describe('Whether it is on the host of its storage.'),
      parent: z.string().max(63).optional().describe('Backup whose unchanged data it shares; it needs no other one.'),
      origin: z
        .strictObject({
          name: z.string().max(253).describe('Name of the template.'),
          version: z.string().max(253).describe('Version of its image.'),
        })
        .optional()
        .describe('The version of a template that the disk began as. Guests boot the kernel of that version.'),
      verifiedAt: Instant.optional().describe('When all of it was last read back.'),
      verificationError: z.string().max(1024).optional().describe('What that found to be missing or wrong.'),
      lastRestore: z
        .strictObject({
          operationId: z.string().max(253).describe('Id of the operation.'),
          outcome: z
            .enum(['succeeded', 'untouched', 'failed'])
            .describe('untouched: nothing was written; failed: a part was, or may have been.'),
        })
        .optional()
        .describe('How the last restore to its own storage has ended.'),
      operation: ReportedOperation,
    })
    .describe('What the backup is. Written by its controller.'),
  columns: [
    { name: 'Storage', type: 'string', jsonPath: '.spec.storageId' },
    { name: 'State', type: 'string', jsonPath: '.status.state' },
    { name: 'Size', type: 'integer', jsonPath: '.status.sizeGibibytes' },
    { name: 'Completed', type: 'date', jsonPath: '.status.completedAt' },
    { name: 'Expires', type: 'string', jsonPath: '.spec.expiresAt' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: ['.spec.storageId'],
  rules: ['storageId', 'kind', 'copyOf'].map(fixed),
})
/** While it is made: copies read a store, and what is online waits for its copy only. */
export const readsDisk = ({
  spec,
  status,
}: {
  readonly spec: BackupSpec
  readonly status?: BackupStatus | undefined
}) => spec.copyOf === undefined && status?.state !== 'online'

export type BackupSpec = z.infer<typeof Backup.spec>
export type BackupStatus = z.infer<typeof Backup.status>

/** Zone whose object storage holds it; undefined when a place of the hosts does. */
export const objectStorageZoneOf = ({ status }: { readonly status?: BackupStatus | undefined }): string | undefined =>
  status?.place === 'object-storage' ? status.zone : undefined
