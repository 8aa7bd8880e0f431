/** Snapshot: one point in time of a storage, kept in its disk. */
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
    'One point in time of a storage, kept in its disk. Create the object with spec.storageId to take the ' +
    'snapshot, and delete it to delete the snapshot. Storages refer to it in spec.source. A storage cannot be ' +
    'deleted while it has snapshots.',
  spec: z
    .strictObject({
      storageId: z.string().min(1).max(253).describe('Name of the Storage. Cannot be changed.'),
      title: z.string().max(255).default('').describe('Title: one line of free text. Cannot be changed.'),
      labels: StoredLabels.default({}).describe('Labels, as in the API. Cannot be changed.'),
      restoredBackupId: z
        .string()
        .max(253)
        .optional()
        .describe(
          'Backup whose restore it preceded. Such a snapshot does not prevent the deletion of its storage, and ' +
            'is deleted with it. Written by the platform only.',
        ),
      expiresAt: z
        .string()
        .max(64)
        .meta({ format: 'date-time' })
        .optional()
        .describe('Time when the platform deletes it; absent for never. Written by the platform only.'),
      operation: RequestedOperation,
    })
    .describe('The desired state of the snapshot.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      state: z.enum(SNAPSHOT_STATES).describe('State of the snapshot, as in the API.'),
      stateDetail: z.string().max(1024).optional().describe('Human-readable reason for the state.'),
      zone: z.string().max(63).optional().describe('Zone of the storage.'),
      region: z.string().max(63).optional().describe('Region of the zone.'),
      sizeGibibytes: z.int().optional().describe('Size of the storage at that point, in GiB.'),
      isFrozen: z
        .boolean()
        .optional()
        .describe('Whether the file systems of the guest were frozen. Otherwise the disk is as after a power loss.'),
      usedBytes: z
        .int()
        .min(0)
        .optional()
        .describe('Space used by it alone, in bytes; absent when the host does not know.'),
      operation: ReportedOperation,
    })
    .describe('Observed state of the snapshot. Written by its controller.'),
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
