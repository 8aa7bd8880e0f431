/** Managed machines as their hosts know them: what is delivered to one, and what it answers. */
import { z } from 'zod'
import {
  DATABASE_TEMPLATE,
  DEV_CLUSTER_TEMPLATE,
  KUBERNETES_NODE_TEMPLATE,
  MANAGED_TEMPLATE,
} from '../../domain/managed-machine/rules.ts'
import { fixed, resource } from '../kit/define.ts'
import { Conditions, ObservedGeneration } from '../kit/shapes.ts'

export * from './document.ts'
export * from './report.ts'

const FINGERPRINT_LENGTH_MAXIMUM = 64
/** In the Secret of the node's namespace: the document, as JSON. */
export const MACHINE_DOCUMENT_KEY = 'document'

const Configuration = {
  generation: z.int().min(0).describe('Generation of the configuration of what it is run for.'),
  fingerprint: z.string().max(FINGERPRINT_LENGTH_MAXIMUM).describe('Of all that the configuration is made from.'),
}

export const ManagedMachine = resource({
  kind: 'ManagedMachine',
  plural: 'managedmachines',
  shortNames: ['mm'],
  scope: 'Namespaced',
  description:
    'What the guest of a managed machine is to run on this node, and what it says that it runs. Made by the ' +
    'platform; its name is the uid of the Server.',
  spec: z
    .strictObject({
      server: z
        .strictObject({
          namespace: z.string().max(253).describe('Namespace of the account.'),
          name: z.string().max(253).describe('Name of the Server.'),
          uid: z.string().max(63).describe('Which Server of that name.'),
        })
        .describe('Server that is the machine. Cannot be changed.'),
      managedBy: z.string().max(280).describe('What the machine is run for, as spec.managedBy of its Server.'),
      configuration: z
        .strictObject({
          ...Configuration,
          secretName: z
            .string()
            .max(253)
            .describe(`Secret of this namespace whose key ${MACHINE_DOCUMENT_KEY} holds it, with all secrets.`),
          deliveredAt: z.iso
            .datetime()
            .optional()
            .describe('Since when it is this one. Absent where an earlier version has written it.'),
        })
        .optional()
        .describe('What the guest is to run; nothing is delivered while it is absent.'),
    })
    .describe('What the guest is to run. Written by the platform.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      running: z
        .strictObject(Configuration)
        .optional()
        .describe('The configuration that the guest says it runs; absent until it has said so.'),
      isHealthy: z.boolean().describe('Whether the guest runs what was delivered, and all of its services run.'),
      detail: z.string().max(1024).describe('Why not, for people; empty otherwise.'),
      report: z
        .string()
        .max(16_384)
        .optional()
        .describe('The newest report of the guest, as JSON: written by the guest, so that nothing in it is certain.'),
      reportedAt: z.string().max(64).optional().describe('When the guest reported that.'),
      isRemoved: z
        .boolean()
        .optional()
        .describe('Of an object that is being deleted: nothing more is delivered, and the platform releases it.'),
    })
    .describe('What the guest runs. Written by the agent of the node.'),
  columns: [
    { name: 'Owner', type: 'string', jsonPath: '.spec.managedBy' },
    { name: 'Server', type: 'string', jsonPath: '.spec.server.name' },
    { name: 'Wanted', type: 'integer', jsonPath: '.spec.configuration.generation' },
    { name: 'Running', type: 'integer', jsonPath: '.status.running.generation' },
    { name: 'Healthy', type: 'boolean', jsonPath: '.status.isHealthy' },
    { name: 'Detail', type: 'string', jsonPath: '.status.detail', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  rules: [fixed('server'), fixed('managedBy')],
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
