/** Server: a virtual machine of an account, as it is stored. `routes.ts` has its routes and public shape. */
import { BACKUP_SCHEDULE_CHARACTERS_MAXIMUM } from '../../domain/backup/schedule.ts'
import { z } from 'zod'
import type { OperationKind } from '../../domain/operations.ts'
import { resource } from '../kit/define.ts'
import { MIGRATION_PHASES, MIGRATION_STATES } from '../operation/index.ts'
import {
  Hostname,
  ReportedOperation,
  RequestedOrEditedOperation,
  SshHostKeys,
  StoredLabels,
  ZoneName,
} from '../kit/shapes.ts'
import { FirewallProgress, StoredFirewall } from './firewall.ts'
import { InterfacesStatus, StoredNetworks } from './interfaces.ts'
import { ManagedBy, SharedAddresses } from './managed-by.ts'
import {
  AddressText,
  CidrText,
  ObjectName,
  OBSERVED,
  Port,
  PublicKeys,
  StoredDiskGibibytes,
  StoredTitle,
} from '../kit/fields.ts'
import { AGE, READY, STATE, ZONE } from '../kit/columns.ts'
import type { Use } from '../../domain/claim/use.ts'
import { use } from '../kit/uses.ts'

export const SERVER_STATES = ['creating', 'starting', 'started', 'stopping', 'stopped', 'deleting', 'error'] as const
export type ServerState = (typeof SERVER_STATES)[number]

/** Network reachability of the server in both directions, and the problem if there is one. */
export const NETWORK_CONDITION = 'NetworkReachable'
/** Whether the host of the server answers. */
export const HOST_CONDITION = 'HostReachable'
/** Reason of the condition `Claimed` of a server without claims. */
export const FORGOTTEN = 'Forgotten'

export const STOP_TIMEOUT_SECONDS_DEFAULT = 60
export const STOP_TIMEOUT_SECONDS_MAXIMUM = 600

/** MigrationProgress as it is stored. */
const Migration = z.strictObject({
  operationId: ObjectName.describe('Name of the Operation that moves the server.'),
  state: z.enum(MIGRATION_STATES).describe('State of the move.'),
  sourceNode: ObjectName.describe('Source node of the server.'),
  targetNode: ObjectName.describe('Target node of the server.'),
  targetZone: ZoneName.optional().describe('Zone of the target node.'),
  phase: z.enum(MIGRATION_PHASES).describe('Phase of the attempt that the nodes report.'),
  attempt: z.int().min(1).describe('Number of the attempt.'),
  iteration: z.int().min(0).describe('Passes over the memory in this attempt.'),
  transferredBytes: z.int().min(0).describe('Bytes sent in this attempt.'),
  totalBytes: z.int().min(0).describe('Bytes to send; 0 when unknown.'),
  dirtyBytesPerSecond: z.int().min(0).describe('Bytes of memory that the guest changes per second.'),
  downtimeMilliseconds: z.int().min(0).describe('Pause of the guest at handover; 0 before.'),
  detail: z.string().max(1024).describe('For people.'),
  reportedAt: z.string().max(64).optional().describe('Time of the report, by the clock of the node.'),
})

export type MigrationProgress = z.infer<typeof Migration>

/** A rule that also applies to `kubectl`: fields of an operation change only while the operation is in progress. */
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

/** Only the platform writes the status: it reports there that a move has brought the server to the zone. */
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
    'A virtual machine of an account, in the namespace of its account. Its name is its id in the API; servers ' +
      'created there get a UUID.',
    'Set desiredPower to start or stop it, and delete the object to delete it with its boot storage. Each ' +
      'change becomes an operation with events, shown by',
    '`kubectl get operations` and in status.operation; while one is in progress another is refused. A stopped ' +
      'server can get another plan; zone and template are fixed at creation.',
    'Wait for it with `kubectl wait --for=condition=Ready`.',
  ].join(' '),
  spec: z
    .strictObject({
      hostname: Hostname.describe('Host name, unique in the account and zone. Cannot be changed.').meta({
        'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'hostname cannot be changed' }],
      }),
      title: StoredTitle.default('').describe('Title: one line of free text.'),
      zone: ZoneName.describe(
        'Zone of the server: one of `kubectl get zones`. Cannot be changed here; it changes when the server is ' +
          'moved to another zone through the API.',
      ),
      plan: z
        .string()
        .min(1)
        .max(63)
        .describe(
          'Plan with cores, memory and price: one of `kubectl get plans`. A stopped server can get another one, ' +
            'by an operation server.change_plan.',
        ),
      template: z
        .string()
        .min(1)
        .max(63)
        .optional()
        .describe(
          'Template for the boot storage: one of `kubectl get templates`. Exactly one of template and ' +
            'customImageId is set. Cannot be changed here.',
        ),
      customImageId: z
        .string()
        .min(1)
        .max(253)
        .optional()
        .describe('Custom image for the boot storage, instead of a template.'),
      labels: StoredLabels.default({}).describe(
        'Labels as in the API, by which its lists are filtered. Unlike metadata.labels, their values are free text.',
      ),
      desiredPower: z
        .enum(['running', 'stopped'])
        .default('running')
        .describe(
          'Desired power state. running starts a stopped server; stopped asks the guest to shut down, and cuts ' +
            'the power after a timeout.',
        ),
      sshKeys: PublicKeys.default([]).describe(
        'Public keys in one-line OpenSSH format that may sign in. A server without user data needs at least one.',
      ),
      userDataSecretName: ObjectName.optional().describe(
        'Secret in the same namespace whose key userData holds the user data of the first boot.',
      ),
      initScriptId: ObjectName.optional().describe(
        'Init script of the account whose text became the user data. Set through the API only.',
      ),
      serverGroupId: ObjectName.optional().describe(
        'ServerGroup that the server joins at creation and that keeps it apart from other members.',
      ),
      haPolicy: z
        .enum(['restart', 'none'])
        .default('restart')
        .describe(
          'Action when the guest crashes or its node is lost: restart starts it again, none leaves it stopped.',
        ),
      migrationPolicy: z
        .enum(['default', 'relaxed', 'strict'])
        .default('default')
        .describe(
          'How much a live migration may disturb the guest: relaxed allows longer pauses, strict cancels rather ' +
            'than slowing the guest.',
        ),
      publicIpv4: z.boolean().default(false).describe('Whether the server has a public IPv4 address.'),
      networks: StoredNetworks.optional(),
      firewall: StoredFirewall.optional(),
      metadataEnabled: z.boolean().default(true).describe('Whether the metadata service answers the server.'),
      storageGibibytes: StoredDiskGibibytes.optional().describe(
        'Size of the boot storage in GiB: at least the size of the plan, which is the default. The boot ' +
          'storage of a stopped server can grow, by an operation server.change_plan.',
      ),
      bootStorageId: ObjectName.optional().describe(
        'Name of its boot Storage; the name of the server when absent. Written by the platform only.',
      ),
      isProtected: z
        .boolean()
        .default(false)
        .describe('While true, the server can be neither deleted nor rebuilt through any interface.'),
      managedBy: ManagedBy.optional(),
      backupSchedule: z
        .string()
        .max(BACKUP_SCHEDULE_CHARACTERS_MAXIMUM)
        .optional()
        .describe(
          'Initial backupSchedule of the boot storage. Cannot be changed here: change the schedule of the Storage.',
        ),
      sharedAddresses: SharedAddresses.optional(),
      operation: RequestedOrEditedOperation,
    })
    .describe('The desired state of the server.'),
  status: z
    .strictObject({
      ...OBSERVED,
      state: z.enum(SERVER_STATES).describe('State of the server, as in the API.'),
      stateDetail: z
        .string()
        .max(1024)
        .optional()
        .describe('Human-readable reason for the state; absent when the state is sufficient.'),
      region: z.string().max(63).optional().describe('Region of the zone.'),
      plan: z
        .string()
        .max(63)
        .optional()
        .describe('Current plan of the server; differs from the spec until the change is complete.'),
      cores: z.int().optional().describe('Current number of virtual cores.'),
      memoryMebibytes: z.int().optional().describe('Current memory in MiB.'),
      storageGibibytes: z.int().optional().describe('Size of its boot storage in GiB.'),
      macAddress: z.string().max(17).optional().describe('Hardware address of its public interface.'),
      publicIpv4: AddressText.optional().describe('Public IPv4 address.'),
      publicIpv6: AddressText.optional().describe('Public IPv6 address.'),
      publicIpv6Prefix: CidrText.optional().describe('Public IPv6 prefix that is routed to it.'),
      ipv6RenumberAvailable: z
        .boolean()
        .optional()
        .describe('Whether the prefix comes from a pool that is being drained, and can be exchanged for another.'),
      nodeName: ObjectName.optional().describe('Node of the server.'),
      sshForward: z
        .strictObject({
          host: ObjectName.describe('Address of the host of the server; 127.0.0.1 is the host itself.'),
          port: Port.describe('Port there.'),
        })
        .optional()
        .describe('Address of its SSH port while it runs, in a zone whose servers have no separate addresses.'),
      sshUser: z
        .string()
        .max(32)
        .optional()
        .describe('User with its SSH keys, from the template; kept when the template is deleted.'),
      sshHostKeys: SshHostKeys.optional().describe(
        'Public host keys of its SSH server, as printed on the console of the guest.',
      ),
      bootStorageId: ObjectName.optional().describe('Name of its boot Storage.'),
      storageIds: z.array(ObjectName).max(32).optional().describe('Names of its other Storages.'),
      startedAt: z
        .string()
        .max(64)
        .optional()
        .describe('Time of the last start of the guest; absent while it is stopped.'),
      incarnation: z
        .int()
        .min(0)
        .optional()
        .describe(
          'Number of times that the platform decided to start the guest; its node runs each incarnation at most once.',
        ),
      crashedAt: z
        .array(z.string().max(64))
        .max(10)
        .optional()
        .describe('Crash times of the guest, newest last; only of the last ten minutes.'),
      migration: Migration.optional().describe(
        'Progress of the newest move to another node; the API shows it as progress of its operation.',
      ),
      interfaces: InterfacesStatus.optional().describe(
        'Its interfaces in private networks; absent when there are none.',
      ),
      firewall: FirewallProgress.optional().describe('Progress of applying the firewall; absent before the first.'),
      networkPorts: z
        .strictObject({
          zone: ZoneName.describe('Zone whose network has them.'),
          fingerprint: z
            .string()
            .max(64)
            .describe("Fingerprint of the desired entries of the server in the zone's network."),
          sequence: z.int().min(0).describe('Change of the network database that contains them.'),
          isInstalled: z.boolean().describe('Whether every host of the server has applied it.'),
        })
        .optional()
        .describe("Entries of the server in the zone's network besides its public address; absent before the first."),
      operation: ReportedOperation,
    })
    .describe('Observed state of the server. Written by its controller.'),
  columns: [
    { name: 'Hostname', type: 'string', jsonPath: '.spec.hostname' },
    STATE,
    { name: 'Plan', type: 'string', jsonPath: '.spec.plan' },
    ZONE,
    READY,
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
    AGE,
  ],
  selectableFields: ['.spec.hostname', '.spec.zone', '.status.state'],
  fixed: ['serverGroupId', 'managedBy'],
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

/** The unique values of a server of the account: its name in the zone, its addresses. */
export function usesOfServer(
  {
    spec,
    status,
  }: { readonly spec: Pick<ServerSpec, 'zone' | 'hostname'>; readonly status?: ServerStatus | undefined },
  accountId: string,
): readonly Use[] {
  const { macAddress, publicIpv4, publicIpv6, interfaces = [] } = status ?? {}
  return [
    ...use('hostname', `${accountId}/${spec.zone}`, spec.hostname),
    ...use('mac', '', macAddress),
    ...use('address', '', publicIpv4),
    ...use('address', '', publicIpv6),
    ...interfaces.flatMap((each) => [
      ...use('mac', '', each.macAddress),
      ...use('network', each.networkId, each.ipv4Address),
      ...use('network', each.networkId, each.ipv6Address),
    ]),
  ]
}
