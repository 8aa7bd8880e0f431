/** Public shape and routes of servers, and the conversion from the stored shape. */
import { z } from 'zod'
import { isPrivateAddress } from '../../domain/network/addresses.ts'
import { hourlyMillicents } from '../../domain/billing/rules.ts'
import { defined } from '../../domain/defined.ts'
import { NO_PUBLIC_NETWORK } from '../../domain/network/guest-network.ts'
import { type LoopbackTwins, loopbackTwinOf } from '../../domain/network/loopback-twins.ts'
import { prefixOf } from '../../domain/public-pool/rules.ts'
import type { ServerFacts } from '../../domain/server/rules.ts'
import type { PlanSpec, TemplateSpec, ZoneSpec } from '../catalog/index.ts'
import { exactlyOneOf } from '../kit/define.ts'
import type { NodeStatus } from '../node/index.ts'
import {
  activeOperationOf,
  MigrationProgressView,
  OperationView,
  namedTarget,
  toOperationView,
} from '../operation/index.ts'
import { FirewallInput, FirewallView, getServerFirewall, setServerFirewall } from './firewall.ts'
import {
  attachServerNetwork,
  detachServerNetwork,
  InterfaceView,
  listServerInterfaces,
  NetworksInput,
} from './interfaces.ts'
import {
  FORGOTTEN,
  HOST_CONDITION,
  NETWORK_CONDITION,
  SERVER_STATES,
  type ServerSpec,
  type ServerStatus,
  STOP_TIMEOUT_SECONDS_DEFAULT,
  STOP_TIMEOUT_SECONDS_MAXIMUM,
} from './stored.ts'
import {
  BackupSchedule,
  DateTime,
  Hostname,
  Id,
  LabelFilters,
  Labels,
  PageQuery,
  type Stored,
  ZoneName,
} from '../kit/shapes.ts'
import { routesUnder, verbsOf } from '../kit/verbs.ts'
import { viewOf } from '../kit/view.ts'
import { SSH_KEY_LENGTH_MAXIMUM, SSH_KEYS_PER_SERVER_MAXIMUM } from '../../domain/ssh-key/rules.ts'
import { DiskGibibytes, Title } from '../kit/fields.ts'

export const USER_DATA_BYTES_MAXIMUM = 65_536

export const ServerView = z
  .strictObject({
    managed_by: z.string().nullable(),
    id: z.string(),
    zone: z.string(),
    region: z.string().optional(),
    hostname: z.string(),
    title: z.string(),
    plan: z.string(),
    cores: z.int(),
    memory_mebibytes: z.int(),
    storage_gibibytes: z.int(),
    template: z.string(),
    state: z.enum(SERVER_STATES),
    desired_power: z.enum(['running', 'stopped']),
    state_detail: z.string(),
    public_ipv4: z.string().nullable(),
    public_ipv6: z.string().nullable(),
    public_ipv6_prefix: z.string().nullable(),
    public_ipv6_is_private: z.boolean(),
    ipv6_renumber_available: z.boolean(),
    ssh_command: z
      .string()
      .nullable()
      .describe('Command for signing in; null while nothing forwards to the SSH port of the server.'),
    ssh: z
      .strictObject({
        host: z
          .string()
          .describe(
            'Host name or address of the SSH port: that of the server, or that of its host, which forwards a ' +
              'port. 127.0.0.1 works only on that host.',
          ),
        port: z.int().describe('Port there.'),
        user: z.string().describe('User with the SSH keys of the server.'),
        host_keys: z
          .array(z.string())
          .describe(
            'Public host keys, as printed on the console of the guest; empty while unknown. Clients can verify ' +
              'them instead of trusting the first key.',
          ),
        proxy: z
          .string()
          .nullable()
          .describe('SOCKS5 proxy to the address when public addresses are not routed; null when they are.'),
      })
      .nullable()
      .describe('The same for programs.'),
    mac_address: z.string(),
    labels: z.record(z.string(), z.string()),
    server_group_id: z.string().nullable(),
    ha_policy: z.enum(['restart', 'none']).optional(),
    migration_policy: z.enum(['default', 'relaxed', 'strict']).optional(),
    cpu_pool: z.string().nullable().optional(),
    active_operation: OperationView.nullable(),
    is_protected: z.boolean(),
    metadata_enabled: z.boolean(),
    init_script_id: z
      .string()
      .nullable()
      .describe('Init script that the server was created with; null when there is none.'),
    custom_image_id: z
      .string()
      .nullable()
      .describe('Custom image that it boots from, whose id is in template too; null when it boots from a template.'),
    boot_storage_id: z.string().nullable(),
    storage_ids: z.array(z.string()),
    interface_count: z.int(),
    firewall_enabled: z.boolean(),
    ha_status: z.enum(['available', 'unavailable']),
    ha_status_reason: z.string().nullable(),
    network_status: z.enum(['available', 'limited']),
    network_status_reason: z.string().nullable(),
    maintenance: z
      .strictObject({ planned_at: DateTime, reason: z.string(), action: z.enum(['live', 'cold']) })
      .nullable(),
    created_at: DateTime,
    started_at: DateTime.nullable(),
    hourly_price_millicents: z.int(),
    parts: z
      .strictObject({
        interfaces: z.array(InterfaceView).describe('All interfaces, the public one first.'),
        firewall: FirewallView,
      })
      .optional()
      .describe('Its interfaces and its firewall, as their own routes show them: in lists with include=parts.'),
  })
  .meta({ id: 'Server' })
export type ServerView = z.infer<typeof ServerView>
export type StoredServer = Stored<ServerSpec, ServerStatus>

/** Facts of other objects that the view needs; an operator may have removed either object. */
export interface ServerSurroundings {
  readonly plan: PlanSpec | undefined
  readonly zone: ZoneSpec | undefined
  readonly template: TemplateSpec | undefined
  /** Where the machine of the API server reaches public addresses. */
  readonly loopbackTwins?: LoopbackTwins | undefined
  /** Reason why its zone could not act on its high availability policy; undefined when it could. */
  readonly haObstacle: string | undefined
  /** Work for which servers leave its node; undefined when none is announced. */
  readonly work: NodeStatus['plannedWork']
}

/** The claims of a new server are in the arguments of its operation until they are in the status. */
function addressesOf(
  { spec, status }: StoredServer,
  { template, zone, loopbackTwins }: Pick<ServerSurroundings, 'template' | 'zone' | 'loopbackTwins'>,
): Pick<
  ServerView,
  'public_ipv4' | 'public_ipv6' | 'public_ipv6_prefix' | 'public_ipv6_is_private' | 'ssh_command' | 'ssh'
> {
  const claimed = status === undefined ? (spec.operation?.arguments ?? {}) : {}
  const ipv4 = status?.publicIpv4 ?? claimed['public_ipv4'] ?? null
  const ipv6 = status?.publicIpv6 ?? claimed['public_ipv6'] ?? null
  const isPrivate = ipv6 !== null && isPrivateAddress(ipv6)
  const user =
    template?.defaultUser ?? status?.sshUser ?? (spec.customImageId === undefined ? undefined : USER_OF_IMAGES)
  const ssh = sshOf(status, ipv4 ?? (isPrivate ? null : ipv6), user, zone?.publicNetwork?.proxy ?? null)
  return {
    public_ipv4: ipv4,
    public_ipv6: ipv6,
    public_ipv6_prefix: ipv6 === null ? null : prefixOf(ipv6),
    public_ipv6_is_private: isPrivate,
    ssh_command: ssh === null ? null : sshCommand(ssh, loopbackTwins),
    ssh,
  }
}

const SSH_PORT = 22
/** The content of an image from elsewhere is unknown here. */
const USER_OF_IMAGES = 'root'

/** On a host that forwards a port, servers have no routable addresses. */
function sshOf(
  status: ServerStatus | undefined,
  address: string | null,
  user: string | undefined,
  proxy: string | null,
): ServerView['ssh'] {
  const { sshForward, sshHostKeys = [] } = status ?? {}
  const at = sshForward ?? (address === null ? undefined : { host: address, port: SSH_PORT })
  return at === undefined || user === undefined
    ? null
    : {
        host: at.host,
        port: at.port,
        user,
        host_keys: [...sshHostKeys],
        proxy: sshForward === undefined ? proxy : null,
      }
}

/** Prefers the twin of the address, if any: it needs no other program. */
const sshCommand = (
  { host, port, user, proxy }: NonNullable<ServerView['ssh']>,
  twins: LoopbackTwins | undefined,
): string => {
  const twin = proxy === null || twins === undefined ? undefined : loopbackTwinOf(twins, host)
  if (twins !== undefined && twin !== undefined)
    return sshCommand({ host: twin, port: twins.sshPort, user, proxy: null, host_keys: [] }, undefined)
  const way = proxy === null ? '' : `-o 'ProxyCommand=nc -X 5 -x ${proxy.replace(/^.*\/\//, '')} %h %p' `
  return `ssh ${way}${port === SSH_PORT ? '' : `-p ${port} `}${user}@${host}`
}

/** The controller's statement about its host; before that, the answer that follows from its zone. */
function networkOf(
  { status }: StoredServer,
  zone: ZoneSpec | undefined,
): Pick<ServerView, 'network_status' | 'network_status_reason'> {
  const condition = status?.conditions?.find(({ type }) => type === NETWORK_CONDITION)
  const obstacle =
    condition === undefined
      ? zone?.publicNetwork === undefined
        ? NO_PUBLIC_NETWORK
        : undefined
      : condition.status === 'True'
        ? undefined
        : condition.message
  return { network_status: obstacle === undefined ? 'available' : 'limited', network_status_reason: obstacle ?? null }
}

const WORK_WITHOUT_REASON = 'Work on the host of the server.'

export function toServerView(
  server: StoredServer,
  { plan, zone, template, work, haObstacle, loopbackTwins }: ServerSurroundings,
): ServerView {
  const { name, spec, status } = server
  const operation = activeOperationOf(server)
  return viewOf(ServerView, spec, {
    managed_by: null,
    id: name,
    ...defined({ region: zone?.region }),
    cores: status?.cores ?? plan?.cores ?? 0,
    memory_mebibytes: status?.memoryMebibytes ?? plan?.memoryMebibytes ?? 0,
    storage_gibibytes: status?.storageGibibytes ?? spec.storageGibibytes ?? plan?.storageGibibytes ?? 0,
    template: spec.template ?? spec.customImageId ?? '',
    state: stateOf(server),
    state_detail: status?.stateDetail ?? '',
    ...addressesOf(server, { template, zone, loopbackTwins }),
    ipv6_renumber_available: status?.ipv6RenumberAvailable ?? false,
    mac_address: status?.macAddress ?? spec.operation?.arguments?.['mac_address'] ?? '',
    cpu_pool: plan?.cpuPool ?? null,
    active_operation: operation === undefined ? null : toOperationView(operation, namedTarget('server', server)),
    boot_storage_id: status?.bootStorageId ?? null,
    storage_ids: [
      ...(status?.bootStorageId === undefined ? [] : [status.bootStorageId]),
      ...(status?.storageIds ?? []),
    ],
    interface_count: 1 + (spec.networks?.length ?? 0),
    firewall_enabled: spec.firewall?.enabled ?? false,
    ha_status: haObstacle === undefined ? 'available' : 'unavailable',
    ha_status_reason: haObstacle ?? null,
    ...networkOf(server, zone),
    maintenance:
      work === undefined
        ? null
        : { planned_at: work.plannedAt, reason: work.reason || WORK_WITHOUT_REASON, action: work.action },
    created_at: server.createdAt,
    started_at: status?.startedAt ?? null,
    hourly_price_millicents: plan === undefined ? 0 : hourlyMillicents(plan.priceMonthlyCents),
  })
}

/** Shape for customers. */
export const stateOf = ({ isDeleting, status }: StoredServer): ServerView['state'] =>
  isDeleting ? 'deleting' : (status?.state ?? 'creating')

/** Progress of the operation's move, as in its server; undefined when the server reports another one. */
export function progressOfMove(
  { status }: Pick<StoredServer, 'status'>,
  operationId: string,
): MigrationProgressView | undefined {
  if (status?.migration?.operationId !== operationId) return undefined
  const { migration } = status
  return viewOf(MigrationProgressView, migration, {
    source_node_id: migration.sourceNode,
    target_node_id: migration.targetNode,
  })
}

/** The host of the server does not answer. */
export const isHostUnreachable = (status: StoredServer['status']): boolean =>
  status?.conditions?.some((condition) => condition.type === HOST_CONDITION && condition.status === 'False') === true

/** The platform no longer has claims of it. */
const isForgotten = (status: StoredServer['status']): boolean =>
  status?.conditions?.some(({ type, reason }) => type === 'Claimed' && reason === FORGOTTEN) === true

export function factsOf(server: StoredServer): ServerFacts {
  const operation = activeOperationOf(server)
  return {
    id: server.name,
    state: stateOf(server),
    isProtected: server.spec.isProtected,
    isDeleting: server.isDeleting,
    isHostUnreachable: isHostUnreachable(server.status),
    isForgotten: isForgotten(server.status),
    plan: server.status?.plan ?? server.spec.plan,
    storageGibibytes: server.status?.storageGibibytes ?? server.spec.storageGibibytes ?? 0,
    activeOperation: operation === undefined ? undefined : { id: operation.id, kind: operation.kind },
  }
}

export const CreateServer = exactlyOneOf(
  z.strictObject({
    zone: ZoneName,
    hostname: Hostname.describe('Unique in the account and zone.'),
    plan: z.string().min(1).max(63),
    template: z.string().min(1).max(63).optional().describe('Template for the boot storage.'),
    title: Title.default(''),
    labels: Labels.default({}),
    ssh_keys: z
      .array(z.string().min(1).max(SSH_KEY_LENGTH_MAXIMUM))
      .max(SSH_KEYS_PER_SERVER_MAXIMUM)
      .optional()
      .describe('Public keys.'),
    ssh_key_ids: z
      .array(Id)
      .max(SSH_KEYS_PER_SERVER_MAXIMUM)
      .optional()
      .describe('SSH keys of the account. Defaults to all of them when neither ssh_keys nor ssh_key_ids is given.'),
    user_data: z
      .string()
      .refine(
        (text) => Buffer.byteLength(text) <= USER_DATA_BYTES_MAXIMUM,
        `must have at most ${USER_DATA_BYTES_MAXIMUM} bytes`,
      )
      .optional()
      .describe('User data for cloud-init, at most 64 KiB. Cannot be combined with init_script_id.'),
    init_script_id: Id.nullish().describe(
      'Init script of the account whose current text becomes the user data; cannot be combined with user_data.',
    ),
    server_group_id: Id.nullish().describe(
      'Group whose other members are placed apart from the server. The server stays in it until it is deleted.',
    ),
    storage_gibibytes: DiskGibibytes.optional().describe(
      'Size of the boot storage: at least the size of the plan, which is the default.',
    ),
    ha_policy: z.enum(['restart', 'none']).default('restart'),
    migration_policy: z.enum(['default', 'relaxed', 'strict']).default('default'),
    metadata_enabled: z.boolean().default(true),
    start: z.boolean().default(true),
    custom_image_id: Id.nullish().describe('Custom image of the account, in the same zone, instead of a template.'),
    public_ipv4: z
      .boolean()
      .default(false)
      .describe(
        'Whether to assign a public IPv4 address, which is billed in addition to the plan. In a zone with ' +
          'public IPv6 every server gets a /64.',
      ),
    networks: NetworksInput.default([]),
    firewall: FirewallInput.nullish().describe('Firewall of the server; all traffic is allowed when omitted.'),
    backup_schedule: BackupSchedule.nullish(),
    is_protected: z.boolean().default(false),
  }),
  ['template', 'custom_image_id'],
).meta({ id: 'CreateServer' })
export type CreateServer = z.infer<typeof CreateServer>

const StopOptions = z.strictObject({
  stop_type: z
    .enum(['soft', 'hard'])
    .default('soft')
    .describe('soft asks the guest to shut down, hard cuts the power.'),
  timeout_seconds: z.int().min(1).max(STOP_TIMEOUT_SECONDS_MAXIMUM).default(STOP_TIMEOUT_SECONDS_DEFAULT),
  timeout_action: z.enum(['fail', 'hard']).default('hard').describe('Action when the guest has not shut down in time.'),
})
export type StopOptions = z.infer<typeof StopOptions>

const verbs = verbsOf({ path: '/v1/servers', noun: 'server', view: ServerView })

export const listServers = verbs.list('list_servers', {
  summary: 'List servers',
  description: 'Newest first. A server must have every given label.',
  query: PageQuery.extend({
    label: LabelFilters,
    hostname: z.string().min(1).max(63).optional(),
    include: z.enum(['parts']).optional().describe('parts shows the interfaces and the firewall of each server.'),
  }),
})

export const createServer = verbs.create('create_server', {
  summary: 'Create a server',
  needs: 'standing',
  starts: ['server.create'],
  body: CreateServer,
  example: { zone: 'eu-1a', hostname: 'web', plan: 'tiny', template: 'tiny-linux', labels: { tier: 'front' } },
  refuses: [400, 404, 409, 422, 503],
})

export const getServer = verbs.read('get_server', { summary: 'Get a server', clusterScopes: ['storages'] })

export const updateServer = verbs.change('update_server', {
  summary: 'Update title, labels or protection of a server',
  description: 'A JSON merge patch; labels replace all labels. With If-Match only that version is changed.',
  body: z.strictObject({ title: Title.optional(), labels: Labels.optional(), is_protected: z.boolean().optional() }),
  example: { title: 'The first', labels: { tier: 'front' }, is_protected: true },
})

export const deleteServer = verbs.remove('delete_server', {
  summary: 'Delete a server with its boot storage',
  description: 'A server that is still being created can be deleted: its creation is cancelled.',
  starts: ['server.delete'],
  query: z.strictObject({ delete_storages: z.enum(['true', 'false']).optional() }),
})

export const startServer = verbs.post('start_server', '/{id}/start', {
  summary: 'Start a stopped server',
  starts: ['server.start'],
  refuses: [404, 409, 503],
})

export const stopServer = verbs.post('stop_server', '/{id}/stop', {
  summary: 'Stop a server',
  starts: ['server.stop'],
  body: StopOptions,
  example: { stop_type: 'soft', timeout_seconds: 60, timeout_action: 'hard' },
})

export const restartServer = verbs.post('restart_server', '/{id}/restart', {
  summary: 'Restart a server',
  starts: ['server.restart'],
  body: StopOptions,
  example: { stop_type: 'soft', timeout_seconds: 60, timeout_action: 'fail' },
})

export const moveServer = verbs.post('move_server', '/{id}/move', {
  summary: 'Move a server to another node',
  description:
    'A started server moves while it runs, as its migration policy allows. A stopped one can also move to another ' +
    'zone of its region, where it gets public addresses of that zone.',
  audit: 'server.move',
  starts: ['server.migrate', 'server.move'],
  body: z.strictObject({
    zone: ZoneName.nullish().describe(
      'Zone of the region, for a stopped server; null or absent for another node in the same zone.',
    ),
  }),
  refuses: [400, 404, 409, 503],
})

export const ChangePlan = z
  .strictObject({
    plan: z.string().min(1).max(63),
    grow_storage: z
      .boolean()
      .default(true)
      .describe('Whether to grow the boot storage to the size of the plan. It never shrinks.'),
    start: z.boolean().optional().describe('Whether to start the server afterwards; it stays stopped by default.'),
  })
  .meta({ id: 'ChangePlan' })

export const changeServerPlan = verbs.post('change_server_plan', '/{id}/change-plan', {
  summary: 'Change the plan of a stopped server',
  description:
    'The new plan may be larger or smaller; its storage must hold the current boot storage. File systems grow ' +
    'automatically if the image supports it.',
  needs: 'standing',
  starts: ['server.change_plan'],
  body: ChangePlan,
  example: { plan: 'small', grow_storage: true, start: true },
  refuses: [400, 404, 409, 422, 503],
})

export const RebuildServer = z
  .strictObject({
    template: z
      .string()
      .min(1)
      .max(63)
      .optional()
      .describe('Template for the boot storage; unchanged when neither this nor custom_image_id is given.'),
    custom_image_id: Id.nullish().describe('Custom image of the account, in the same zone, instead of a template.'),
    ssh_keys: CreateServer.shape.ssh_keys,
    ssh_key_ids: z
      .array(Id)
      .max(SSH_KEYS_PER_SERVER_MAXIMUM)
      .optional()
      .describe('SSH keys of the account. The keys stay unchanged when neither ssh_keys nor ssh_key_ids is given.'),
    init_script_id: Id.nullish().describe(
      'Init script of the account whose current text becomes the user data; cannot be combined with user_data. ' +
        'Without both, the user data stays unchanged; null removes it.',
    ),
    user_data: CreateServer.shape.user_data,
    stop: z
      .boolean()
      .default(false)
      .describe('Whether a started server may be stopped for it; it is started again at the end.'),
  })
  .meta({ id: 'RebuildServer' })
export type RebuildServer = z.infer<typeof RebuildServer>

export const rebuildServer = verbs.post('rebuild_server', '/{id}/rebuild', {
  summary: 'Rebuild the boot storage of a server',
  description:
    'All data on the boot storage is lost. Id, addresses, labels, group and all other storages stay the same.',
  starts: ['server.rebuild'],
  isDestructive: true,
  body: RebuildServer,
  example: { template: 'tiny-linux', stop: true },
  refuses: [400, 404, 409, 503],
})

export const renumberServerIpv6 = verbs.post('renumber_server_ipv6', '/{id}/renumber-ipv6', {
  summary: 'Replace the IPv6 prefix of a server',
  description:
    'Only while ipv6_renumber_available is true: the current prefix comes from a network that will be retired. ' +
    'The new prefix is routed and announced to the guest immediately; the old one works until that network is ' +
    'retired.',
  starts: ['server.renumber_ipv6'],
  refuses: [404, 409, 503],
})

const policies = routesUnder({ path: '/v1/servers' })

export const setServerHaPolicy = policies.put('set_server_ha_policy', '/{id}/ha-policy', {
  summary: 'Set the high availability policy of a server',
  description:
    'restart: starts a running server on another node after its failed node is fenced. none: leaves it stopped. ' +
    'Always accepted; ha_status shows whether the zone can act on it.',
  audit: 'server.ha_policy',
  body: z.strictObject({ ha_policy: ServerView.shape.ha_policy.unwrap() }),
  example: { ha_policy: 'restart' },
  answers: {
    200: ServerView.pick({ ha_status: true, ha_status_reason: true })
      .extend({ ha_policy: ServerView.shape.ha_policy.unwrap() })
      .meta({ id: 'HAPolicyResult' }),
  },
})

const ServerMigrationPolicy = z
  .strictObject({ migration_policy: ServerView.shape.migration_policy.unwrap() })
  .meta({ id: 'ServerMigrationPolicy' })

export const setServerMigrationPolicy = policies.put('set_server_migration_policy', '/{id}/migration-policy', {
  summary: 'Set the live migration policy of a server',
  description:
    'default allows short pauses and throttles the guest if necessary. relaxed prefers completing the move. ' +
    'strict cancels rather than disturbing the guest.',
  audit: 'server.migration_policy',
  body: ServerMigrationPolicy,
  example: { migration_policy: 'default' },
  answers: { 200: ServerMigrationPolicy },
})
const MetadataSetting = z.strictObject({ enabled: z.boolean() }).meta({ id: 'MetadataSetting' })

const metadata = routesUnder({ path: '/v1/servers' })

export const getServerMetadataSetting = metadata.get('get_server_metadata_setting', '/{id}/metadata', {
  summary: 'Get the metadata service setting of a server',
  permission: 'operate',
  isCredentialRead: true,
  audit: 'server.metadata_read',
  answers: { 200: MetadataSetting },
})

export const setServerMetadataSetting = metadata.put('set_server_metadata_setting', '/{id}/metadata', {
  summary: 'Enable or disable the metadata service of a server',
  description: 'Works while the server runs, without disturbing its guest.',
  starts: ['server.metadata'],
  body: MetadataSetting,
  example: { enabled: true },
  answers: { 202: z.strictObject({ enabled: z.boolean(), operation: OperationView }) },
})

export const SERVER_ROUTES = [
  listServers,
  createServer,
  getServer,
  updateServer,
  deleteServer,
  startServer,
  stopServer,
  restartServer,
  renumberServerIpv6,
  rebuildServer,
  changeServerPlan,
  moveServer,
  setServerHaPolicy,
  setServerMigrationPolicy,
  getServerMetadataSetting,
  setServerMetadataSetting,
  getServerFirewall,
  setServerFirewall,
  listServerInterfaces,
  attachServerNetwork,
  detachServerNetwork,
] as const
