/** Storage: a block device of an account, as it is stored. */
import { z } from 'zod'
import { resource } from '../define.ts'
import {
  Conditions,
  ObservedGeneration,
  OperationProgress,
  OperationStanza,
  StoredLabels,
  ZoneName,
} from '../shapes.ts'

/** The disk is made once; what it was made from, and where, stays. */
const fixed = (field: string) => ({
  rule:
    `has(self.spec.${field}) ? (has(oldSelf.spec.${field}) && self.spec.${field} == oldSelf.spec.${field}) : ` +
    `!has(oldSelf.spec.${field})`,
  message: `${field} cannot be changed`,
})

export const Storage = resource({
  kind: 'Storage',
  plural: 'storages',
  shortNames: ['sto'],
  scope: 'Namespaced',
  customers: 'read',
  description:
    'A block device of an account. The first boot storage of a server has its name; it is made and deleted with ' +
    'the server.',
  spec: z
    .strictObject({
      zone: ZoneName.describe(
        'Zone that the storage lives in. Cannot be changed; that of a boot storage follows its server.',
      ),
      title: z.string().max(255).default('').describe('One line of free text for people.'),
      sizeGibibytes: z.int().min(1).max(65_536).describe('Size in GiB. May grow, never shrink.'),
      tier: z.enum(['standard', 'local-nvme']).default('standard').describe('Kind of disk. Cannot be changed.'),
      source: z
        .strictObject({
          kind: z.enum(['template', 'backup', 'snapshot', 'storage']).describe('What kind of thing it is made from.'),
          id: z.string().max(253).describe('Name of what it is made from.'),
        })
        .optional()
        .describe('What the storage is filled with when it is made; empty when absent. Cannot be changed.'),
      serverId: z.string().max(253).optional().describe('Name of the Server that it is attached to.'),
      isBoot: z.boolean().default(false).describe('Whether its server boots from it.'),
      labels: StoredLabels.default({}).describe('Labels of the API, by which its lists are filtered.'),
      isProtected: z.boolean().default(false).describe('While true the storage cannot be deleted.'),
      operation: OperationStanza.optional().describe(
        'The newest change that was asked for. Written by the platform only.',
      ),
    })
    .describe('What the storage shall be.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      state: z
        .enum(['creating', 'online', 'restoring', 'error', 'deleting'])
        .describe('What the storage is doing now, as the API shows it.'),
      stateDetail: z.string().max(1024).optional().describe('Why it is so, for people.'),
      region: z.string().max(63).optional().describe('Region of the zone.'),
      nodeName: z.string().max(253).optional().describe('Node that holds it.'),
      sizeGibibytes: z.int().optional().describe('Size that it has by now, in GiB.'),
      pool: z
        .string()
        .max(63)
        .optional()
        .describe(
          'Shared storage that it lies on, which other nodes reach too; absent when it lies on the disks of its node.',
        ),
      operation: OperationProgress.optional().describe('How far the newest operation is.'),
    })
    .describe('What the storage is. Written by its controller.'),
  columns: [
    { name: 'Size', type: 'integer', jsonPath: '.spec.sizeGibibytes' },
    { name: 'State', type: 'string', jsonPath: '.status.state' },
    { name: 'Server', type: 'string', jsonPath: '.spec.serverId' },
    { name: 'Boot', type: 'boolean', jsonPath: '.spec.isBoot' },
    { name: 'Zone', type: 'string', jsonPath: '.spec.zone' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Node', type: 'string', jsonPath: '.status.nodeName', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: ['.spec.serverId', '.spec.zone'],
  rules: [
    ...['tier', 'source'].map(fixed),
    {
      rule: 'self.spec.zone == oldSelf.spec.zone || self.spec.isBoot',
      message: 'zone cannot be changed: only a boot storage goes to another, with its server',
    },
    { rule: 'self.spec.sizeGibibytes >= oldSelf.spec.sizeGibibytes', message: 'sizeGibibytes may grow, never shrink' },
    { rule: '!self.spec.isBoot || has(self.spec.serverId)', message: 'a boot storage has a server' },
  ],
})
export type StorageSpec = z.infer<typeof Storage.spec>
export type StorageStatus = z.infer<typeof Storage.status>
