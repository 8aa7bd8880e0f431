/** Backup: one point in time of a storage, kept separately from the storage. */
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
    'One point in time of a storage, kept separately from it. Create the object with spec.storageId to create the ' +
    'backup, and delete it to delete the backup. It outlives its storage until it expires.',
  spec: z
    .strictObject({
      storageId: z.string().min(1).max(253).describe('Name of the Storage to back up. Cannot be changed.'),
      zone: ZoneName.optional().describe('Zone of the storage. Written by the platform when absent.'),
      title: z.string().max(255).default('').describe('Title: one line of free text.'),
      kind: z.enum(BACKUP_KINDS).default('manual').describe('Whether a user or a schedule created it.'),
      expiresAt: Instant.optional().describe('Time when the platform deletes it; absent for never.'),
      copyOf: z
        .strictObject({
          name: z.string().max(253).describe('Name of the Backup.'),
          zone: ZoneName.describe('Its zone.'),
        })
        .optional()
        .describe('Backup in another zone that this is a copy of. Written by the platform only.'),
      operation: RequestedOperation,
    })
    .describe('The desired state of the backup.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      state: z.enum(BACKUP_STATES).describe('State of the backup, as in the API.'),
      stateDetail: z.string().max(1024).optional().describe('Human-readable reason for the state.'),
      region: z.string().max(63).optional().describe('Region of the zone.'),
      zone: z.string().max(63).optional().describe('Zone whose store has the backup.'),
      sizeGibibytes: z.int().optional().describe('Size of the storage at that point, in GiB.'),
      completedAt: Instant.optional().describe('Time when it was complete.'),
      place: z
        .enum(['host', 'object-storage'])
        .optional()
        .describe(
          "Where it is: in the object storage of the zone, or in the place configured on the zone's hosts (also " +
            'when absent).',
        ),
      target: z.enum(BACKUP_TARGETS).optional().describe('Kind of store that has the backup.'),
      isSameHost: z.boolean().optional().describe('Whether it is on the same host as its storage.'),
      parent: z
        .string()
        .max(63)
        .optional()
        .describe('Backup whose unchanged data it shares. It does not depend on any other backup.'),
      origin: z
        .strictObject({
          name: z.string().max(253).describe('Name of the template.'),
          version: z.string().max(253).describe('Version of its image.'),
        })
        .optional()
        .describe('Template version that the disk was created from. The guest boots the kernel of that version.'),
      verifiedAt: Instant.optional().describe('Time when all data of the backup was last read for verification.'),
      verificationError: z
        .string()
        .max(1024)
        .optional()
        .describe('Missing or damaged data that the last verification found.'),
      lastRestore: z
        .strictObject({
          operationId: z.string().max(253).describe('Id of the operation.'),
          outcome: z
            .enum(['succeeded', 'untouched', 'failed'])
            .describe('untouched: nothing was written. failed: a part was written, or may have been.'),
        })
        .optional()
        .describe('Outcome of the last restore to its own storage.'),
      operation: ReportedOperation,
    })
    .describe('Observed state of the backup. Written by its controller.'),
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
/** While it is being created: a copy reads a store, and an online backup waits only for its copy. */
export const readsDisk = ({
  spec,
  status,
}: {
  readonly spec: BackupSpec
  readonly status?: BackupStatus | undefined
}) => spec.copyOf === undefined && status?.state !== 'online'

export type BackupSpec = z.infer<typeof Backup.spec>
export type BackupStatus = z.infer<typeof Backup.status>

/** Zone whose object storage has the backup; undefined when it is in a place of the hosts. */
export const objectStorageZoneOf = ({ status }: { readonly status?: BackupStatus | undefined }): string | undefined =>
  status?.place === 'object-storage' ? status.zone : undefined
