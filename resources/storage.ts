/** Storage: a block device of an account, as it is stored. */
import { z } from 'zod'
import { resource } from './define.ts'
import { Conditions, OperationProgress, OperationStanza, StoredLabels, ZoneName } from './shapes.ts'

export const Storage = resource({
  kind: 'Storage', plural: 'storages', shortNames: ['sto'], scope: 'Namespaced',
  description: 'A block device. A boot storage is made and deleted with its server.',
  spec: z.strictObject({
    zone: ZoneName,
    title: z.string().max(255).default(''),
    sizeGibibytes: z.int().min(1).max(65_536),
    tier: z.enum(['standard', 'local-nvme']).default('standard'),
    source: z.strictObject({ kind: z.enum(['template', 'backup', 'snapshot', 'storage']), id: z.string().max(253) }).optional(),
    serverId: z.string().max(253).optional(),
    isBoot: z.boolean().default(false),
    labels: StoredLabels.default({}),
    isProtected: z.boolean().default(false),
    operation: OperationStanza.optional(),
  }),
  status: z.strictObject({
    observedGeneration: z.int().min(0).optional(),
    conditions: Conditions.optional(),
    state: z.enum(['creating', 'online', 'restoring', 'error', 'deleting']),
    stateDetail: z.string().max(1024).optional(),
    region: z.string().max(63).optional(),
    nodeName: z.string().max(253).optional(),
    operation: OperationProgress.optional(),
  }),
  columns: [
    { name: 'Size', type: 'integer', jsonPath: '.spec.sizeGibibytes' },
    { name: 'State', type: 'string', jsonPath: '.status.state' },
    { name: 'Server', type: 'string', jsonPath: '.spec.serverId' },
    { name: 'Boot', type: 'boolean', jsonPath: '.spec.isBoot' },
    { name: 'Zone', type: 'string', jsonPath: '.spec.zone' },
    { name: 'Node', type: 'string', jsonPath: '.status.nodeName', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: ['.spec.serverId', '.spec.zone'],
})
export type StorageSpec = z.infer<typeof Storage.spec>
export type StorageStatus = z.infer<typeof Storage.status>
