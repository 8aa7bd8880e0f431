/** Server: a virtual machine of an account, as it is stored. Its routes and public shape are in `routes.ts`. */
import { BACKUP_SCHEDULE_CHARACTERS_MAXIMUM } from '../../domain/backup/schedule.ts'
import { z } from 'zod'
import type { OperationKind } from '../../domain/operations.ts'
import { resource } from '../kit/define.ts'
import { MIGRATION_PHASES, MIGRATION_STATES } from '../operation/index.ts'
import {
  Conditions,
  Hostname,
  ObservedGeneration,
  ReportedOperation,
  RequestedOrEditedOperation,
  SshHostKeys,
  StoredLabels,
  ZoneName,
} from '../kit/shapes.ts'
import { FirewallProgress, StoredFirewall } from './firewall.ts'
import { InterfacesStatus, StoredNetworks } from './interfaces.ts'
import { ManagedBy, SharedAddresses } from './managed.ts'

export const SERVER_STATES = ['creating', 'starting', 'started', 'stopping', 'stopped', 'deleting', 'error'] as const
export type ServerState = (typeof SERVER_STATES)[number]

/** Whether the server reaches others and is reached, and what is off where it is not. */
export const NETWORK_CONDITION = 'NetworkReachable'
/** Whether the host of the server answers. */
export const HOST_CONDITION = 'HostReachable'
/** Reason of the condition `Claimed` of a server whose claims are missing. */
export const FORGOTTEN = 'Forgotten'

export const STOP_TIMEOUT_SECONDS_DEFAULT = 60
export const STOP_TIMEOUT_SECONDS_MAXIMUM = 600

/** MigrationProgress as it is stored. */
const Migration = z.strictObject({
  operationId: z.string().max(253).describe('Name of the Operation that moves the server.'),
  state: z.enum(MIGRATION_STATES).describe('How far the move is.'),
  sourceNode: z.string().max(253).describe('Node that the server leaves.'),
  targetNode: z.string().max(253).describe('Node that the server goes to.'),
  targetZone: ZoneName.optional().describe('Zone of that node.'),
  phase: z.enum(MIGRATION_PHASES).describe('How far the nodes report the attempt.'),
  attempt: z.int().min(1).describe('Which send it is.'),
  iteration: z.int().min(0).describe('Passes over the memory in this attempt.'),
  transferredBytes: z.int().min(0).describe('Bytes that were sent in this attempt.'),
  totalBytes: z.int().min(0).describe('Bytes that there are to send; 0 when not known.'),
  dirtyBytesPerSecond: z.int().min(0).describe('How fast the guest changes its memory.'),
  downtimeMilliseconds: z.int().min(0).describe('How long the guest stood still at handover; 0 before.'),
  detail: z.string().max(1024).describe('For people.'),
  reportedAt: z.string().max(64).optional().describe('When the node reported, by its own clock.'),
})

export type MigrationProgress = z.infer<typeof Migration>

/** A rule for `kubectl` too: what belongs to an operation changes only while that operation is under way. */
const changedOnlyBy = (
  field: string,
  operation: OperationKind,
  message: string,
  { orOfStopped = false }: { readonly orOfStopped?: boolean } = {},
) => {
  const isSame =
    `(has(self.spec.${field}) ? (has(oldSelf.spec.${field}) && self.spec.${field} == oldSelf.spec.${field}) : ` +
    `!has(oldSelf.spec.${field}))`
  const isUnderWay = `has(self.spec.operation) && self.spec.operation.kind == '${operation}'`
  const hasEnded =
    'has(self.status) && has(self.status.operation) && self.status.operation.id == self.spec.operation.id && ' +
    "self.status.operation.status in ['succeeded', 'failed', 'cancelled']"
  const isIdle = `(!has(self.spec.operation) || (${hasEnded}))`
  const ofStopped = `has(self.status) && self.status.state == 'stopped' && ${isIdle}`
  return {
    rule: `${isSame} || (${isUnderWay} && !(${hasEnded}))${orOfStopped ? ` || (${ofStopped})` : ''}`,
    message: `${field} cannot be changed: ${message}`,
  }
}

/** Only the platform writes the status: it says so once a move has brought the server to the zone. */
const ZONE_RULE =
  'self.spec.zone == oldSelf.spec.zone || (has(self.status) && has(self.status.migration) && ' +
  "self.status.migration.state == 'switched' && has(self.status.migration.targetZone) && " +
  'self.status.migration.targetZone == self.spec.zone)'

export const Server = resource({
  kind: 'Server',
  plural: 'servers',
  shortNames: ['srv'],
  scope: 'Namespaced',
  customers: 'write',
  description: [
    'A virtual machine of an account. It lives in the namespace of its account; its name is its id in the API, ' +
      'where a UUID is given to those made there.',
    'Set desiredPower to start or stop it, and delete the object to delete it with its boot storage. Each such ' +
      'change becomes an operation with events, shown by',
    '`kubectl get operations` and in status.operation; while one is under way another is refused. Another plan ' +
      'can be given to a stopped server; zone and template are fixed at creation.',
    'Wait for it with `kubectl wait --for=condition=Ready`.',
  ].join(' '),
  spec: z
    .strictObject({
      hostname: Hostname.describe('Host name, unique in the account and zone. Cannot be changed.').meta({
        'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'hostname cannot be changed' }],
      }),
      title: z.string().max(255).default('').describe('One line of free text for people.'),
      zone: ZoneName.describe(
        'Zone that the server lives in: one of `kubectl get zones`. Cannot be changed here; it follows a server ' +
          'that is moved to another zone through the API.',
      ),
      plan: z
        .string()
        .min(1)
        .max(63)
        .describe(
          'Plan that gives cores, memory and price: one of `kubectl get plans`. A stopped server can get ' +
            'another one: an operation server.change_plan.',
        ),
      template: z
        .string()
        .min(1)
        .max(63)
        .optional()
        .describe(
          'Template that the boot storage is made from: one of `kubectl get templates`. Exactly one of template ' +
            'and customImageId is set. Cannot be changed here.',
        ),
      customImageId: z
        .string()
        .min(1)
        .max(253)
        .optional()
        .describe('Custom image that the boot storage is made from, instead of a template.'),
      labels: StoredLabels.default({}).describe(
        'Labels of the API, by which its lists are filtered; values are free text, unlike those of metadata.labels.',
      ),
      desiredPower: z
        .enum(['running', 'stopped'])
        .default('running')
        .describe(
          'Whether the server is to run. running starts a stopped server; stopped asks the guest to shut down, ' +
            'and cuts its power when it does not in time.',
        ),
      sshKeys: z
        .array(z.string().max(16_384))
        .max(100)
        .default([])
        .describe(
          'Public keys, in the one-line form of OpenSSH, that may sign in. A server without user data needs at ' +
            'least one.',
        ),
      userDataSecretName: z
        .string()
        .max(253)
        .optional()
        .describe('Secret of the same namespace whose key userData holds the user data of the first boot.'),
      initScriptId: z
        .string()
        .max(253)
        .optional()
        .describe('Init script of the account whose text became the user data. Set through the API only.'),
      serverGroupId: z
        .string()
        .max(253)
        .optional()
        .describe('ServerGroup that the server is created into and kept apart by. Cannot be changed.'),
      haPolicy: z
        .enum(['restart', 'none'])
        .default('restart')
        .describe(
          'What happens when the guest crashes or its node is lost: restart starts it again, none leaves it stopped.',
        ),
      migrationPolicy: z
        .enum(['default', 'relaxed', 'strict'])
        .default('default')
        .describe(
          'How much a live migration may disturb the guest: relaxed lets it take longer pauses, strict gives up ' +
            'rather than slowing the guest.',
        ),
      publicIpv4: z.boolean().default(false).describe('Whether the server has a public IPv4 address.'),
      networks: StoredNetworks.optional(),
      firewall: StoredFirewall.optional(),
      metadataEnabled: z.boolean().default(true).describe('Whether the metadata service answers the server.'),
      storageGibibytes: z
        .int()
        .min(1)
        .max(65_536)
        .optional()
        .describe(
          'Size of the boot storage in GiB, at least that of the plan, which decides when absent. That of a stopped ' +
            'server can grow: an operation server.change_plan.',
        ),
      bootStorageId: z
        .string()
        .max(253)
        .optional()
        .describe(
          'Name of the Storage that it boots from; the name of the server when absent. Written by the platform only.',
        ),
      isProtected: z
        .boolean()
        .default(false)
        .describe('While true the server can be neither deleted nor rebuilt, through any interface.'),
      managedBy: ManagedBy.optional(),
      backupSchedule: z
        .string()
        .max(BACKUP_SCHEDULE_CHARACTERS_MAXIMUM)
        .optional()
        .describe(
          'The backupSchedule that the boot storage is made with. Cannot be changed: change that of the Storage.',
        ),
      sharedAddresses: SharedAddresses.optional(),
      operation: RequestedOrEditedOperation,
    })
    .describe('The desired state of the server.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      state: z.enum(SERVER_STATES).describe('What the server is doing now, as the API shows it.'),
      stateDetail: z
        .string()
        .max(1024)
        .optional()
        .describe('Why it is so, for people; absent when the state says it all.'),
      region: z.string().max(63).optional().describe('Region of the zone.'),
      plan: z
        .string()
        .max(63)
        .optional()
        .describe('Plan that the server has; another one than in the spec until it is changed.'),
      cores: z.int().optional().describe('Virtual cores that the server has.'),
      memoryMebibytes: z.int().optional().describe('Memory that the server has, in MiB.'),
      storageGibibytes: z.int().optional().describe('Size of its boot storage in GiB.'),
      macAddress: z.string().max(17).optional().describe('Hardware address of its public interface.'),
      publicIpv4: z.string().max(45).optional().describe('Public IPv4 address.'),
      publicIpv6: z.string().max(45).optional().describe('Public IPv6 address.'),
      publicIpv6Prefix: z.string().max(49).optional().describe('Public IPv6 prefix that is routed to it.'),
      ipv6RenumberAvailable: z
        .boolean()
        .optional()
        .describe('True when the prefix comes from a pool that is being emptied, and can be exchanged for another.'),
      nodeName: z.string().max(253).optional().describe('Node that holds it.'),
      sshForward: z
        .strictObject({
          host: z.string().max(253).describe('Address of the host of the server; 127.0.0.1 is that host itself.'),
          port: z.int().min(1).max(65_535).describe('Port there.'),
        })
        .optional()
        .describe('Where its SSH port is reached while it runs, in a zone whose servers have no own addresses.'),
      sshUser: z
        .string()
        .max(32)
        .optional()
        .describe('Who has its SSH keys, as the template said; kept when the template is deleted.'),
      sshHostKeys: SshHostKeys.optional().describe(
        'Public host keys of its SSH server, as the guest printed them on its console.',
      ),
      bootStorageId: z.string().max(253).optional().describe('Name of the Storage that it boots from.'),
      storageIds: z
        .array(z.string().max(253))
        .max(32)
        .optional()
        .describe('Names of the Storages besides it that the server has.'),
      startedAt: z.string().max(64).optional().describe('When the guest was started last; absent while it is stopped.'),
      incarnation: z
        .int()
        .min(0)
        .optional()
        .describe(
          'How often the platform has decided to start the guest; its node runs each incarnation at most once.',
        ),
      crashedAt: z
        .array(z.string().max(64))
        .max(10)
        .optional()
        .describe('When the guest crashed, newest last; only those of the last ten minutes.'),
      migration: Migration.optional().describe(
        'How far the newest move to another node is, as the API shows it as progress of its operation.',
      ),
      interfaces: InterfacesStatus.optional().describe('Its interfaces in private networks; absent without any.'),
      firewall: FirewallProgress.optional().describe('How far the firewall is applied; absent until there was one.'),
      networkPorts: z
        .strictObject({
          zone: ZoneName.describe('Zone whose network has them.'),
          fingerprint: z.string().max(64).describe("Of what the zone's network is to have of the server."),
          sequence: z.int().min(0).describe('The change of the network database that says it.'),
          isInstalled: z.boolean().describe('Whether every host that the server is on follows it.'),
        })
        .optional()
        .describe("What the zone's network knows of it beyond its public address; absent until there was something."),
      operation: ReportedOperation,
    })
    .describe('What the server is. Written by its controller.'),
  columns: [
    { name: 'Hostname', type: 'string', jsonPath: '.spec.hostname' },
    { name: 'State', type: 'string', jsonPath: '.status.state' },
    { name: 'Plan', type: 'string', jsonPath: '.spec.plan' },
    { name: 'Zone', type: 'string', jsonPath: '.spec.zone' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Node', type: 'string', jsonPath: '.status.nodeName', priority: 1 },
    { name: 'Template', type: 'string', jsonPath: '.spec.template', priority: 1 },
    {
      name: 'Network',
      type: 'string',
      jsonPath: `.status.conditions[?(@.type=="${NETWORK_CONDITION}")].reason`,
      priority: 1,
    },
    { name: 'Operation', type: 'string', jsonPath: '.status.operation.kind', priority: 1 },
    { name: 'Detail', type: 'string', jsonPath: '.status.stateDetail', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: ['.spec.hostname', '.spec.zone', '.status.state'],
  rules: [
    {
      rule: 'has(self.spec.template) != has(self.spec.customImageId)',
      message: 'exactly one of template and customImageId must be set',
    },
    {
      rule: 'self.spec.publicIpv4 == oldSelf.spec.publicIpv4',
      message: 'publicIpv4 cannot be changed: the address comes with the server',
    },
    { rule: ZONE_RULE, message: 'zone cannot be changed: it follows a server that is moved to another' },
    {
      rule:
        'has(self.spec.serverGroupId) ? (has(oldSelf.spec.serverGroupId) && self.spec.serverGroupId == ' +
        'oldSelf.spec.serverGroupId) : !has(oldSelf.spec.serverGroupId)',
      message: 'serverGroupId cannot be changed',
    },
    {
      rule:
        'has(self.spec.managedBy) ? (has(oldSelf.spec.managedBy) && self.spec.managedBy == ' +
        'oldSelf.spec.managedBy) : !has(oldSelf.spec.managedBy)',
      message: 'managedBy cannot be changed',
    },
    changedOnlyBy('plan', 'server.change_plan', 'only a stopped server can get another plan; stop it first', {
      orOfStopped: true,
    }),
    changedOnlyBy('storageGibibytes', 'server.change_plan', 'the boot storage of a stopped server can grow', {
      orOfStopped: true,
    }),
    changedOnlyBy('bootStorageId', 'server.rebuild', 'another boot storage comes with a rebuild'),
    changedOnlyBy('template', 'server.rebuild', 'the boot storage is made once, until the server is rebuilt'),
    changedOnlyBy('customImageId', 'server.rebuild', 'the boot storage is made once, until the server is rebuilt'),
    changedOnlyBy('userDataSecretName', 'server.rebuild', 'user data is read at first boot only'),
    changedOnlyBy('initScriptId', 'server.rebuild', 'user data is read at first boot only'),
  ],
})
export type ServerSpec = z.infer<typeof Server.spec>
export type ServerStatus = z.infer<typeof Server.status>
