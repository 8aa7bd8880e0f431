/** The process of one node's agent. Environment:
 *  SVCCLOUD_NODE_NAME, SVCCLOUD_KUBECONFIG, SVCCLOUD_DATA (the agent's own folder): required;
 *  SVCCLOUD_HYPERVISOR auto | qemu | simulated (auto), SVCCLOUD_HOST (127.0.0.1), SVCCLOUD_PORT (0),
 *  SVCCLOUD_IMAGE_CACHE (SVCCLOUD_DATA/images),
 *  SVCCLOUD_POWER_CYCLE (which start of its own power this is, where several nodes share one machine and its boot id),
 *  SVCCLOUD_SHARED_VOLUMES (folder that other hosts have mounted too; none when absent or `none`), or
 *  SVCCLOUD_CEPH_POOL (pool of a Ceph cluster that other hosts use too), SVCCLOUD_CEPH_USER (svccloud),
 *  SVCCLOUD_CEPH_CONFIGURATION (/etc/ceph/ceph.conf), SVCCLOUD_CEPH_KEYRING (/etc/ceph/ceph.client.USER.keyring),
 *  SVCCLOUD_MIGRATION_HOST (SVCCLOUD_HOST; where
 *  other hosts reach this one for guests and disks that move), SVCCLOUD_MIGRATION_PORTS (such as 49152-49215; any free
 *  ones),
 *  SVCCLOUD_MIGRATION_BANDWIDTH (MiB per second that one move may take; unlimited),
 *  SVCCLOUD_BACKUP_STORE (a folder, or a bucket as https://HOST/BUCKET with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY
 *  and AWS_REGION; `object-storage` for that of the zone and nothing else; no backups when absent or `none`),
 *  SVCCLOUD_BACKUP_SOURCES (those of other zones, from which backups are copied here, as ZONE=PLACE with commas
 *  between; none), SVCCLOUD_BACKUP_BANDWIDTH (MiB per second of all backups, 100),
 *  SVCCLOUD_ARCHIVE_ADDRESS (HOST:PORT of the object storage that databases archive to, by way of this host;
 *  none),
 *  SVCCLOUD_GUEST_NETWORK ovn | outbound | isolated (outbound), SVCCLOUD_GUEST_NETWORK_OBSTACLE (why it is not ovn, for
 *  people), SVCCLOUD_GUEST_NAMESPACE (folder of the namespaces, as /proc/1/ns, that Open vSwitch and the guests are in,
 *  with SVCCLOUD_GUEST_NAMESPACE_HOST, where other hosts reach it; the agent's own when absent),
 *  SVCCLOUD_GUEST_USERS (ids from which each guest has its
 *  own where the agent is root, such as 1879048192-2147352575; `none`: guests run as the agent), SVCCLOUD_STOP_GUESTS
 *  (false),
 *  SVCCLOUD_METRICS_HOST (127.0.0.1), SVCCLOUD_METRICS_PORT (0), SVCCLOUD_METRICS_TOKEN_FILE (what readers of the
 *  metrics must show; without it metrics are for the loopback only), SVCCLOUD_LOG_LEVEL (info).
 *  Tells its parent `{ready, url, metrics_url}` when its heartbeat has reached the control plane. */
import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { NETWORK_FEATURES } from '../../domain/guest-network.ts'
import { isBucket } from '../../kit/chunks/locate.ts'
import { startProbes } from '../../kit/http/probes.ts'
import { openClient } from '../../kit/kube/client.ts'
import { openHttpsTransport } from '../../kit/kube/https-transport.ts'
import { readKubeconfig } from '../../kit/kube/kubeconfig.ts'
import { systemClock as clock } from '../../kit/sys/clock.ts'
import { writeDurably } from '../../kit/sys/durable-file.ts'
import { openLog } from '../../kit/sys/log.ts'
import { makeFolder } from '../../kit/sys/make-folder.ts'
import { openRegistry } from '../../kit/sys/metrics.ts'
import { startTraceExport } from '../../kit/sys/trace-export.ts'
import { environment, exitProcess, onFatal, printErrorLine, stopSignal, sendToParent } from '../../kit/sys/process.ts'
import { systemRandom as random } from '../../kit/sys/random.ts'
import {
  BACKUPS_FEATURE,
  backupSourceFeature,
  OBJECT_BACKUPS_FEATURE,
  VAULT_FEATURE,
} from '../../resources/backup-job/index.ts'
import { NETWORK_OBSTACLE_CHARACTERS, nodeNamespace } from '../../resources/instance/index.ts'
import { openDiskWork } from './backup/disk-work.ts'
import { hostCapacity, bootId as readBootId } from './host.ts'
import { type CephLogin, requireCephLogin } from './drivers/storage/ceph-pool.ts'
import { keepFlowsFresh } from './drivers/network/cached-flows.ts'
import { exposeOvnController } from './drivers/network/ovn-controller.ts'
import { keepGuard } from './drivers/network/ovn-guard.ts'
import { openHost } from './host-drivers.ts'
import { LedgerInUse, openLedger } from './ledger.ts'
import { type BackupParts, openAgent } from './loop.ts'
import { openAccess } from './serve/access.ts'
import { openMetadataKeys } from './serve/metadata-keys.ts'
import { archiveRelay, parseAddress } from './serve/archive-relay.ts'
import { startMetadataListener } from './serve/metadata-listener.ts'
import { runMetadataPort } from './serve/metadata-port.ts'
import { VERSION } from '../../resources/version.ts'
import type { RequestingGuest } from './serve/metadata-service.ts'
import { openCertificate } from './serve/certificate.ts'
import { startListener } from './serve/listener.ts'
import { openMetricsToken } from './serve/metrics-token.ts'
import { stopGuests } from './stop-guests.ts'

const Port = z.coerce.number().int().min(0).max(65_535).default(0)
const PortRange = z
  .string()
  .regex(/^\d{1,5}-\d{1,5}$/)
  .transform((text) => {
    const [first = 0, last = 0] = text.split('-').map(Number)
    return { first, last }
  })
  .refine(({ first, last }) => first > 0 && first <= last && last <= 65_535, 'two ports, the lower one first')
/** Answers the places by zone. */
const BackupSources = z
  .string()
  .regex(/^([a-z0-9-]+=[^,]+(,[a-z0-9-]+=[^,]+)*)?$/)
  .transform((text) =>
    Object.fromEntries(
      text
        .split(',')
        .filter((pair) => pair !== '')
        .map((pair): [string, string] => {
          const at = pair.indexOf('=')
          return [pair.slice(0, at), pair.slice(at + 1)]
        }),
    ),
  )
/** Which systemd and shadow give to nobody. */
const GUEST_USERS = '1879048192-2147352575'
const USER_ID_MAXIMUM = 2 ** 32 - 2
const UserRange = z
  .string()
  .regex(/^(none|\d{1,10}-\d{1,10})$/)
  .transform((text) => {
    const [first = 0, last = 0] = text.split('-').map(Number)
    return text === 'none' ? undefined : { first, last }
  })
  .refine(
    (range) => range === undefined || (range.first > 0 && range.first <= range.last && range.last <= USER_ID_MAXIMUM),
    'two ids of users, the lower one first, or none',
  )
const BANDWIDTH_MEBIBYTES_PER_SECOND_MAXIMUM = 16 * 1024
const Settings = z.object({
  SVCCLOUD_NODE_NAME: z
    .string()
    .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/)
    .max(58),
  SVCCLOUD_KUBECONFIG: z.string().min(1),
  SVCCLOUD_DATA: z.string().min(1),
  SVCCLOUD_HYPERVISOR: z.enum(['auto', 'qemu', 'simulated']).default('auto'),
  SVCCLOUD_HOST: z.string().min(1).default('127.0.0.1'),
  SVCCLOUD_PORT: Port,
  SVCCLOUD_IMAGE_CACHE: z.string().min(1).optional(),
  SVCCLOUD_POWER_CYCLE: z.string().max(16).optional(),
  SVCCLOUD_SHARED_VOLUMES: z.string().min(1).default('none'),
  SVCCLOUD_CEPH_POOL: z.string().min(1).optional(),
  SVCCLOUD_CEPH_USER: z.string().min(1).default('svccloud'),
  SVCCLOUD_CEPH_CONFIGURATION: z.string().min(1).default('/etc/ceph/ceph.conf'),
  SVCCLOUD_CEPH_KEYRING: z.string().min(1).optional(),
  SVCCLOUD_MIGRATION_HOST: z.string().min(1).optional(),
  SVCCLOUD_MIGRATION_PORTS: PortRange.optional(),
  SVCCLOUD_MIGRATION_BANDWIDTH: z.coerce.number().int().min(1).max(BANDWIDTH_MEBIBYTES_PER_SECOND_MAXIMUM).optional(),
  SVCCLOUD_BACKUP_STORE: z.string().min(1).default('none'),
  SVCCLOUD_BACKUP_SOURCES: BackupSources.prefault(''),
  SVCCLOUD_BACKUP_BANDWIDTH: z.coerce.number().int().min(1).max(BANDWIDTH_MEBIBYTES_PER_SECOND_MAXIMUM).default(100),
  SVCCLOUD_ARCHIVE_ADDRESS: z
    .string()
    .refine((text) => parseAddress(text) !== undefined, 'must be HOST:PORT')
    .optional(),
  SVCCLOUD_GUEST_NETWORK: z.enum(['ovn', 'outbound', 'isolated']).default('outbound'),
  SVCCLOUD_GUEST_NETWORK_OBSTACLE: z.string().max(NETWORK_OBSTACLE_CHARACTERS).optional(),
  SVCCLOUD_GUEST_NAMESPACE: z.string().min(1).optional(),
  SVCCLOUD_GUEST_NAMESPACE_HOST: z.string().min(1).optional(),
  SVCCLOUD_GUEST_USERS: UserRange.prefault(GUEST_USERS),
  SVCCLOUD_STOP_GUESTS: z.stringbool().default(false),
  SVCCLOUD_METRICS_HOST: z.string().min(1).default('127.0.0.1'),
  SVCCLOUD_METRICS_PORT: Port,
  SVCCLOUD_METRICS_TOKEN_FILE: z.string().min(1).optional(),
  SVCCLOUD_LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
})

const MEBIBYTE = 1_048_576
const READY_POLL_MILLISECONDS = 50

const refuse = (why: string): never => {
  printErrorLine(why)
  return exitProcess(1)
}

const read = Settings.safeParse(environment())
const settings = read.success
  ? read.data
  : refuse(read.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('\n'))
const nodeName = settings.SVCCLOUD_NODE_NAME
const log = openLog('agent', settings.SVCCLOUD_LOG_LEVEL).with({ node: nodeName })
onFatal((error) => log.error('unexpected error', { error }))
const stop = stopSignal()
const traces = await startTraceExport({
  component: 'node-agent',
  version: VERSION,
  attributes: { 'host.name': nodeName },
  environment: environment(),
  log,
}).catch((error: unknown) => refuse(`traces cannot be exported: ${String(error)}`))

const folder = resolve(settings.SVCCLOUD_DATA)
await makeFolder(folder, 0o700).catch((error: unknown) => refuse(`${folder} cannot be used: ${String(error)}`))
const openLedgerOrEnd = () => {
  try {
    return openLedger(join(folder, 'ledger.db'))
  } catch (error) {
    if (error instanceof LedgerInUse) return refuse(error.message)
    throw error
  }
}
const ledger = openLedgerOrEnd()
const bootId = [
  (await readBootId()) ?? 'unknown',
  ...(settings.SVCCLOUD_POWER_CYCLE === undefined ? [] : [settings.SVCCLOUD_POWER_CYCLE]),
].join('.')
const metadataKeys = await openMetadataKeys(folder, random)
const migrationHost = settings.SVCCLOUD_MIGRATION_HOST ?? settings.SVCCLOUD_HOST
const namespace = settings.SVCCLOUD_GUEST_NAMESPACE
const networkObstacle =
  settings.SVCCLOUD_GUEST_NETWORK_OBSTACLE ?? `SVCCLOUD_GUEST_NETWORK is ${settings.SVCCLOUD_GUEST_NETWORK}`
const cephLogin = (pool: string): CephLogin => {
  const user = settings.SVCCLOUD_CEPH_USER
  const login = {
    pool,
    user,
    configurationFile: resolve(settings.SVCCLOUD_CEPH_CONFIGURATION),
    keyringFile: resolve(settings.SVCCLOUD_CEPH_KEYRING ?? `/etc/ceph/ceph.client.${user}.keyring`),
  }
  try {
    requireCephLogin(login)
  } catch (error) {
    return refuse(`Ceph cannot be used: ${String(error)}`)
  }
  if (settings.SVCCLOUD_SHARED_VOLUMES !== 'none')
    return refuse('a host has one shared storage: SVCCLOUD_SHARED_VOLUMES or SVCCLOUD_CEPH_POOL')
  return login
}
const host = await openHost({
  migrationHost,
  migrationPorts: settings.SVCCLOUD_MIGRATION_PORTS,
  migrationMebibytesPerSecond: settings.SVCCLOUD_MIGRATION_BANDWIDTH,
  sharedFolder: settings.SVCCLOUD_SHARED_VOLUMES === 'none' ? undefined : resolve(settings.SVCCLOUD_SHARED_VOLUMES),
  ceph: settings.SVCCLOUD_CEPH_POOL === undefined ? undefined : cephLogin(settings.SVCCLOUD_CEPH_POOL),
  metadata: metadataKeys,
  choice: settings.SVCCLOUD_HYPERVISOR,
  folder,
  imageFolder: resolve(settings.SVCCLOUD_IMAGE_CACHE ?? join(folder, 'images')),
  bootId,
  guestNetwork: settings.SVCCLOUD_GUEST_NETWORK,
  guestNamespace:
    namespace === undefined
      ? undefined
      : { path: namespace, host: settings.SVCCLOUD_GUEST_NAMESPACE_HOST ?? migrationHost },
  guestUsers: settings.SVCCLOUD_GUEST_USERS,
  clock,
  random,
  log,
}).catch((error: unknown) => refuse(`guests cannot be run: ${error instanceof Error ? error.message : String(error)}`))
log.info('hypervisor chosen', { hypervisor: host.hypervisor.kind })

const https = openHttpsTransport(await readKubeconfig(settings.SVCCLOUD_KUBECONFIG, clock))
const store = openClient({ transport: https.transport, fieldManager: 'svccloud-agent', clock, random })
const registry = openRegistry({ isProcessWide: true, build: { component: 'node-agent', version: VERSION } })
const certificate = await openCertificate(folder, clock, random)
const isAuthorized = openAccess({ store, namespace: nodeNamespace(nodeName), clock })
const listener = await startListener({
  host: settings.SVCCLOUD_HOST,
  port: settings.SVCCLOUD_PORT,
  certificate,
  isAuthorized,
  clock,
  log,
  consoleOf: (instance) => agent.consoleOf(instance),
  usage: () => agent.usage.list(),
})
const hasBackups = settings.SVCCLOUD_BACKUP_STORE !== 'none' && host.hypervisor.kind !== 'simulated'
const backupStore = hasBackups ? settings.SVCCLOUD_BACKUP_STORE : 'none'
const placeOf = (location: string): string => (isBucket(location) ? location : resolve(location))
const backupSources = hasBackups ? Object.entries(settings.SVCCLOUD_BACKUP_SOURCES) : []
const backupFolder = join(folder, 'backups')
await mkdir(backupFolder, { recursive: true, mode: 0o700 })
const openBackups = (parts: BackupParts) =>
  openDiskWork({
    ...host,
    ...parts,
    location: backupStore === 'object-storage' ? undefined : placeOf(backupStore),
    sources: Object.fromEntries(backupSources.map(([zone, place]) => [zone, placeOf(place)])),
    environment: environment(),
    bytesPerSecond: settings.SVCCLOUD_BACKUP_BANDWIDTH * MEBIBYTE,
    folder: backupFolder,
    store,
    clock,
    random,
  })
const agent = openAgent({
  ...(hasBackups ? { openBackups } : {}),
  nodeName,
  store,
  ...host,
  isMetadataServed: host.features.includes(NETWORK_FEATURES.metadata),
  ledger,
  clock,
  random,
  log,
  registry,
  report: async () => ({
    agentVersion: VERSION,
    bootId,
    ...(await hostCapacity(folder)),
    hypervisor: host.hypervisor.kind,
    features: [
      ...host.features,
      ...(hasBackups ? [BACKUPS_FEATURE, OBJECT_BACKUPS_FEATURE] : []),
      ...(isBucket(backupStore) ? [VAULT_FEATURE] : []),
      ...backupSources.map(([zone]) => backupSourceFeature(zone)),
    ],
    pools: [...host.volumes.pools],
    migrationHost,
    ...(host.hypervisor.kind === 'simulated' || host.features.includes(NETWORK_FEATURES.public)
      ? {}
      : { networkObstacle }),
    endpoint: { url: listener.url, certificateFingerprint: certificate.fingerprint },
  }),
})
const askingGuest = (name: string | undefined): RequestingGuest | undefined => {
  const guest = name === undefined ? undefined : agent.metadataOf(name)
  return name === undefined || guest === undefined ? undefined : { ...guest, tokenKey: metadataKeys.tokenKeyOf(name) }
}
const metadata = await startMetadataListener({
  clock,
  log,
  guestOf: async (secret) => askingGuest(metadataKeys.guestOf(secret)),
})
await writeDurably(metadataKeys.portFile, `${metadata.port}\n`)
const probes = await startProbes({
  host: settings.SVCCLOUD_METRICS_HOST,
  port: settings.SVCCLOUD_METRICS_PORT,
  metrics: registry,
  missing: () => agent.missing(),
  metricsAccess: openMetricsToken({
    file: settings.SVCCLOUD_METRICS_TOKEN_FILE,
    host: settings.SVCCLOUD_METRICS_HOST,
  }),
})

// Made before anybody asks for a server, so that the first one does not wait for it.
host.images.prepare('tiny-linux')
const archive =
  settings.SVCCLOUD_ARCHIVE_ADDRESS === undefined ? undefined : parseAddress(settings.SVCCLOUD_ARCHIVE_ADDRESS)
const isDatabase = (macAddress: string): boolean => agent.isDatabase(agent.instanceOf(macAddress) ?? '')
const metadataPort = host.features.includes(NETWORK_FEATURES.public)
  ? runMetadataPort(
      {
        clock,
        log,
        namespace,
        zone: () => agent.zone(),
        guestOf: async (macAddress) => askingGuest(agent.instanceOf(macAddress)),
        relay: archive && archiveRelay({ ...archive, isDatabase, clock }),
      },
      stop,
    )
  : undefined
if (host.features.includes(NETWORK_FEATURES.public)) exposeOvnController(registry)
const network = host.features.includes(NETWORK_FEATURES.public)
  ? Promise.all([keepGuard({ clock, log }, stop), keepFlowsFresh({ clock, log }, stop)])
  : undefined
const running = agent.run(stop)
while (!stop.aborted && agent.missing().length > 0) await clock.sleep(READY_POLL_MILLISECONDS, stop)
if (!stop.aborted) sendToParent({ ready: true, url: listener.url, metrics_url: `${probes.url}/metrics` })
await Promise.all([running, metadataPort, network])

if (settings.SVCCLOUD_STOP_GUESTS) await stopGuests(host.hypervisor, clock, log)
for (const { name } of await host.volumes.list()) await host.volumes.stopServing(name)
await Promise.all([listener.stop(), metadata.stop(), probes.stop()])
await host.hypervisor.close()
ledger.close()
await https.close()
await traces.stop()
exitProcess(0)
