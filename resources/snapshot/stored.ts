/** Snapshot: one point of a storage, kept in its disk. */
import { z } from 'zod'
import { fixed, resource } from '../kit/define.ts'
import { Conditions, ObservedGeneration, ReportedOperation, RequestedOperation, StoredLabels } from '../kit/shapes.ts'

export const SNAPSHOT_STATES = ['creating', 'online', 'error', 'deleting'] as const

export const Snapshot = resource({
  kind: 'Snapshot',
  plural: 'snapshots',
  shortNames: ['snap'],
  scope: 'Namespaced',
  customers: 'write',
  description:
    'One point of a storage, kept in its disk. Create it with spec.storageId to take it, once; delete it to delete ' +
    'the snapshot. Storages are made from it by their spec.source. A storage is not deleted while it has snapshots.',
  spec: z
    .strictObject({
      storageId: z.string().min(1).max(253).describe('Name of the Storage that it is a point of. Cannot be changed.'),
      title: z.string().max(255).default('').describe('One line of free text for people. Cannot be changed.'),
      labels: StoredLabels.default({}).describe('Labels of the API. Cannot be changed.'),
      restoredBackupId: z
        .string()
        .max(253)
        .optional()
        .describe(
          'Backup before whose restore it was taken. Such a snapshot does not keep its storage, and goes with it. ' +
            'Written by the platform only.',
        ),
      expiresAt: z
        .string()
        .max(64)
        .meta({ format: 'date-time' })
        .optional()
        .describe('When it is deleted by itself; never when absent. Written by the platform only.'),
      operation: RequestedOperation,
    })
    .describe('What is kept.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      state: z.enum(SNAPSHOT_STATES).describe('What the snapshot is doing now, as the API shows it.'),
      stateDetail: z.string().max(1024).optional().describe('Why it is so, for people.'),
      zone: z.string().max(63).optional().describe('Zone of the storage.'),
      region: z.string().max(63).optional().describe('Region of the zone.'),
      sizeGibibytes: z.int().optional().describe('Size of the storage at that point, in GiB.'),
      isFrozen: z
        .boolean()
        .optional()
        .describe('Whether the file systems of the guest were frozen; else it is as a disk after a loss of power.'),
      usedBytes: z
        .int()
        .min(0)
        .optional()
        .describe('Room that it alone takes, in bytes; absent where the host cannot tell.'),
      operation: ReportedOperation,
    })
    .describe('What the snapshot is. Written by its controller.'),
  columns: [
    { name: 'Storage', type: 'string', jsonPath: '.spec.storageId' },
    { name: 'State', type: 'string', jsonPath: '.status.state' },
    { name: 'Size', type: 'integer', jsonPath: '.status.sizeGibibytes' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: ['.spec.storageId'],
  rules: ['storageId', 'title', 'labels', 'restoredBackupId', 'expiresAt'].map(fixed),
})
/** Taken by the platform before a restore. */
export const isForSafety = ({ restoredBackupId }: SnapshotSpec): boolean => restoredBackupId !== undefined

export type SnapshotSpec = z.infer<typeof Snapshot.spec>
export type SnapshotStatus = z.infer<typeof Snapshot.status>
