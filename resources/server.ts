/** Server: a virtual machine of an account, as it is stored. Its routes and public shape are in `server-routes.ts`. */
import { z } from 'zod'
import { resource } from './define.ts'
import { Conditions, Hostname, OperationProgress, OperationStanza, StoredLabels, ZoneName } from './shapes.ts'

export const SERVER_STATES = ['creating', 'starting', 'started', 'stopping', 'stopped', 'deleting', 'error'] as const
export type ServerState = (typeof SERVER_STATES)[number]

export const STOP_TIMEOUT_SECONDS_DEFAULT = 60
export const STOP_TIMEOUT_SECONDS_MAXIMUM = 600

export const Server = resource({
  kind: 'Server', plural: 'servers', shortNames: ['srv'], scope: 'Namespaced',
  description: 'A virtual machine. Set desiredPower to start or stop it; plan, template and zone are fixed at creation and changed by their own operations.',
  spec: z.strictObject({
    hostname: Hostname.describe('Host name, unique in the account and zone. Cannot be changed.').meta({ 'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'hostname cannot be changed' }] }),
    title: z.string().max(255).default('').describe('Free text for people.'),
    zone: ZoneName.describe('Zone that the server lives in.'),
    plan: z.string().min(1).max(63).describe('Plan that gives cores, memory and price.'),
    template: z.string().min(1).max(63).optional().describe('Template that the boot storage is made from.'),
    customImageId: z.string().max(253).optional().describe('Custom image that the boot storage is made from, instead of a template.'),
    labels: StoredLabels.default({}).describe('Labels of the API; free text values, unlike metadata.labels.'),
    desiredPower: z.enum(['running', 'stopped']).default('running').describe('Whether the server shall run.'),
    sshKeys: z.array(z.string().max(16_384)).max(100).default([]).describe('Public keys that may sign in at first boot.'),
    userDataSecretName: z.string().max(253).optional().describe('Secret of the same namespace whose key userData holds the user data of the first boot.'),
    serverGroupId: z.string().max(253).optional().describe('Anti-affinity group that the server is created into.'),
    haPolicy: z.enum(['restart', 'none']).default('restart').describe('What happens when its node is lost.'),
    migrationPolicy: z.enum(['default', 'relaxed', 'strict']).default('default').describe('How much a live migration may disturb the guest.'),
    publicIpv4: z.boolean().default(false).describe('Whether the server has a public IPv4 address.'),
    metadataEnabled: z.boolean().default(true).describe('Whether the metadata service answers the server.'),
    storageGibibytes: z.int().min(1).max(65_536).optional().describe('Size of the boot storage; the plan decides when absent.'),
    isProtected: z.boolean().default(false).describe('While true the server can be neither deleted nor rebuilt.'),
    operation: OperationStanza.optional().describe('The change under way. Written by the platform.'),
  }),
  status: z.strictObject({
    observedGeneration: z.int().min(0).optional(),
    conditions: Conditions.optional(),
    state: z.enum(SERVER_STATES),
    stateDetail: z.string().max(1024).optional(),
    region: z.string().max(63).optional(),
    cores: z.int().optional(),
    memoryMebibytes: z.int().optional(),
    storageGibibytes: z.int().optional(),
    macAddress: z.string().max(17).optional(),
    publicIpv4: z.string().max(45).optional(),
    publicIpv6: z.string().max(45).optional(),
    publicIpv6Prefix: z.string().max(49).optional(),
    nodeName: z.string().max(253).optional(),
    bootStorageId: z.string().max(253).optional(),
    startedAt: z.string().max(64).optional(),
    /** How often the platform has decided to start the guest; the node runs each incarnation at most once. */
    incarnation: z.int().min(0).optional(),
    /** When the guest crashed, newest last; only those of the last ten minutes. */
    crashedAt: z.array(z.string().max(64)).max(10).optional(),
    operation: OperationProgress.optional(),
  }),
  columns: [
    { name: 'Hostname', type: 'string', jsonPath: '.spec.hostname' },
    { name: 'State', type: 'string', jsonPath: '.status.state' },
    { name: 'Plan', type: 'string', jsonPath: '.spec.plan' },
    { name: 'Zone', type: 'string', jsonPath: '.spec.zone' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Node', type: 'string', jsonPath: '.status.nodeName', priority: 1 },
    { name: 'Template', type: 'string', jsonPath: '.spec.template', priority: 1 },
    { name: 'Operation', type: 'string', jsonPath: '.status.operation.kind', priority: 1 },
    { name: 'Detail', type: 'string', jsonPath: '.status.stateDetail', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: ['.spec.hostname', '.spec.zone', '.status.state'],
  rules: [{ rule: 'has(self.spec.template) != has(self.spec.customImageId)', message: 'exactly one of template and customImageId must be set' }],
})
export type ServerSpec = z.infer<typeof Server.spec>
export type ServerStatus = z.infer<typeof Server.status>
