/** Managed machines as their hosts know them: what the agent delivers to a machine, and what it reports. */
import { z } from 'zod'
import {
  DATABASE_TEMPLATE,
  DEV_CLUSTER_TEMPLATE,
  KUBERNETES_NODE_TEMPLATE,
  MANAGED_TEMPLATE,
} from '../../domain/managed-machine/rules.ts'
import { resource } from '../kit/define.ts'
import { ManagedByText, ObjectName, OBSERVED } from '../kit/fields.ts'
import { AGE } from '../kit/columns.ts'

export * from './document.ts'
export * from './report.ts'

const FINGERPRINT_LENGTH_MAXIMUM = 64
/** In the Secret of the node's namespace: the document, as JSON. */
export const MACHINE_DOCUMENT_KEY = 'document'

const Configuration = {
  generation: z.int().min(0).describe('Configuration generation of the object that the machine serves.'),
  fingerprint: z.string().max(FINGERPRINT_LENGTH_MAXIMUM).describe('Fingerprint of all inputs of the configuration.'),
}

export const ManagedMachine = resource({
  kind: 'ManagedMachine',
  plural: 'managedmachines',
  shortNames: ['mm'],
  scope: 'Namespaced',
  description:
    'Desired and reported configuration of the guest of a managed machine on this node. Created by the platform; ' +
    'its name is the uid of the Server.',
  spec: z
    .strictObject({
      server: z
        .strictObject({
          namespace: ObjectName.describe('Namespace of the account.'),
          name: ObjectName.describe('Name of the Server.'),
          uid: z.string().max(63).describe('uid of that Server.'),
        })
        .describe('Server of the machine.'),
      managedBy: ManagedByText.describe('Purpose of the machine, as spec.managedBy of its Server.'),
      configuration: z
        .strictObject({
          ...Configuration,
          secretName: ObjectName.describe(
            `Secret in this namespace whose key ${MACHINE_DOCUMENT_KEY} holds the configuration with all secrets.`,
          ),
          deliveredAt: z.iso
            .datetime()
            .optional()
            .describe('Time since when this configuration is current. Absent when an earlier version wrote it.'),
        })
        .optional()
        .describe('Desired configuration of the guest; nothing is delivered while it is absent.'),
    })
    .describe('Desired configuration of the guest. Written by the platform.'),
  status: z
    .strictObject({
      ...OBSERVED,
      running: z
        .strictObject(Configuration)
        .optional()
        .describe('Configuration that the guest reports; absent until the first report.'),
      isHealthy: z.boolean().describe('Whether the guest runs the delivered configuration with all of its services.'),
      detail: z.string().max(1024).describe('Human-readable reason why it does not; empty otherwise.'),
      report: z
        .string()
        .max(16_384)
        .optional()
        .describe('Newest report of the guest, as JSON. The guest writes it, so its content cannot be trusted.'),
      reportedAt: z.string().max(64).optional().describe('Time of that report.'),
      isRemoved: z
        .boolean()
        .optional()
        .describe(
          'For an object that is being deleted: whether delivery has stopped, so that the platform can release it.',
        ),
    })
    .describe('Observed configuration of the guest. Written by the agent of the node.'),
  columns: [
    { name: 'Owner', type: 'string', jsonPath: '.spec.managedBy' },
    { name: 'Server', type: 'string', jsonPath: '.spec.server.name' },
    { name: 'Wanted', type: 'integer', jsonPath: '.spec.configuration.generation' },
    { name: 'Running', type: 'integer', jsonPath: '.status.running.generation' },
    { name: 'Healthy', type: 'boolean', jsonPath: '.status.isHealthy' },
    { name: 'Detail', type: 'string', jsonPath: '.status.detail', priority: 1 },
    AGE,
  ],
  fixed: ['server', 'managedBy'],
})
export type ManagedMachineSpec = z.infer<typeof ManagedMachine.spec>
export type ManagedMachineStatus = z.infer<typeof ManagedMachine.status>

/** Whether all hosts of the zone have the image of managed machines. */
export const offersManagedMachines = (
  status: { readonly builtTemplates?: readonly string[] | undefined } | undefined,
): boolean => status?.builtTemplates?.includes(MANAGED_TEMPLATE) === true

/** Whether all hosts of the zone have the image of databases. */
export const offersDatabases = (
  status: { readonly builtTemplates?: readonly string[] | undefined } | undefined,
): boolean => status?.builtTemplates?.includes(DATABASE_TEMPLATE) === true

/** Whether all hosts of the zone have the image of nodes of Kubernetes. */
export const offersKubernetesNodes = (
  status: { readonly builtTemplates?: readonly string[] | undefined } | undefined,
): boolean => status?.builtTemplates?.includes(KUBERNETES_NODE_TEMPLATE) === true

/** Whether all hosts of the zone have the image of dev clusters. */
export const offersDevClusters = (
  status: { readonly builtTemplates?: readonly string[] | undefined } | undefined,
): boolean => status?.builtTemplates?.includes(DEV_CLUSTER_TEMPLATE) === true
