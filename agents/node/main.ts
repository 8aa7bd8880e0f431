/** The process of one node's agent. Environment:
 *  SVCCLOUD_NODE_NAME, SVCCLOUD_KUBECONFIG, SVCCLOUD_DATA (the agent's own folder): required;
 *  SVCCLOUD_HYPERVISOR auto | qemu | simulated (auto), SVCCLOUD_HOST (127.0.0.1), SVCCLOUD_PORT (0),
 *  SVCCLOUD_IMAGE_CACHE (SVCCLOUD_DATA/images),
 *  SVCCLOUD_POWER_CYCLE (number of its power cycle, where several nodes share one machine and its boot id),
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
 *  SVCCLOUD_METRICS_HOST (127.0.0.1), SVCCLOUD_METRICS_PORT (0), SVCCLOUD_METRICS_TOKEN_FILE (token for
 *  readers of the metrics; without it metrics are for the loopback only), SVCCLOUD_LOG_LEVEL (info).
 *  Sends its parent `{ready, url, metrics_url}` when its heartbeat has reached the control plane. */
import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { NETWORK_FEATURES } from '../../domain/network/guest-network.ts'
import { isBucket } from '../../kit/chunks/locate.ts'
import { startProbes } from '../../kit/http/probes.ts'
import { openClient } from '../../kit/kube/client.ts'
import { openHttpsTransport } from '../../kit/kube/https-transport.ts'
import { readKubeconfig } from '../../kit/kube/kubeconfig.ts'
import { systemClock as clock } from '../../kit/sys/clock.ts'
import { writeDurably } from '../../kit/sys/durable-file.ts'
import { makeFolder } from '../../kit/sys/make-folder.ts'
import { openRegistry } from '../../kit/sys/metrics.ts'
import { startTraceExport } from '../../kit/sys/trace-export.ts'
import { environment, exitProcess, printErrorLine, sendToParent } from '../../kit/sys/process.ts'
import { startProcess } from '../../kit/sys/start-process.ts'
import { systemRandom as random } from '../../kit/sys/random.ts'
import {
  BACKUPS_FEATURE,
  backupSourceFeature,
  OBJECT_BACKUPS_FEATURE,
  VAULT_FEATURE,
} from '../../resources/backup-job/index.ts'
import { nodeNamespace } from '../../resources/instance/index.ts'
import { openDiskWork } from './backup/disk-work.ts'
import { hostCapacity, bootId as readBootId } from './host.ts'
import { type CephLogin, requireCephLogin } from './drivers/storage/ceph-pool.ts'
import { keepFlowsFresh } from './drivers/network/cached-flows.ts'
import { exposeOvnController } from './drivers/network/ovn-controller.ts'
import { keepGuard } from './drivers/network/ovn-guard.ts'
import { openHostDrivers } from './host-drivers.ts'
import { LedgerInUse, openLedger } from './ledger.ts'
import { type BackupParts, openAgent } from './loop.ts'
import { openAccess } from './serve/access.ts'
import { openMetadataKeys } from './serve/metadata-keys.ts'
import { archiveRelay, parseHostPort } from './serve/archive-relay.ts'
import { startMetadataListener } from './serve/metadata-listener.ts'
import { runMetadataPort } from './serve/metadata-port.ts'
import { VERSION } from '../../domain/version.ts'
import type { RequestingGuest } from './serve/metadata-service.ts'
import { openCertificate } from './serve/certificate.ts'
import { startListener } from './serve/listener.ts'
import { openMetricsToken } from './serve/metrics-token.ts'
import { NodeAgentSettings } from './settings.ts'
import { stopGuests } from './stop-guests.ts'

const MEBIBYTE = 1_048_576
const READY_POLL_MILLISECONDS = 50

const refuse = (why: string): never => {
  printErrorLine(why)
  return exitProcess(1)
}

const { settings, log: plainLog, stop } = await startProcess('agent', NodeAgentSettings)
const { nodeName } = settings
const log = plainLog.with({ node: nodeName })
const traces = await startTraceExport({
  component: 'node-agent',
  version: VERSION,
  attributes: { 'host.name': nodeName },
  environment: environment(),
  log,
}).catch((error: unknown) => refuse(`traces cannot be exported: ${String(error)}`))

const folder = resolve(settings.data)
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
  ...(settings.powerCycle === undefined ? [] : [settings.powerCycle]),
].join('.')
const metadataKeys = await openMetadataKeys(folder, random)
const migrationHost = settings.migrationHost ?? settings.host
const namespace = settings.guestNamespace
const networkObstacle = settings.guestNetworkObstacle ?? `SVCCLOUD_GUEST_NETWORK is ${settings.guestNetwork}`
const cephLogin = (pool: string): CephLogin => {
  const user = settings.cephUser
  const login = {
    pool,
    user,
    configurationFile: resolve(settings.cephConfiguration),
    keyringFile: resolve(settings.cephKeyring ?? `/etc/ceph/ceph.client.${user}.keyring`),
  }
  try {
    requireCephLogin(login)
  } catch (error) {
    return refuse(`Ceph cannot be used: ${String(error)}`)
  }
  if (settings.sharedVolumes !== 'none')
    return refuse('a host has one shared storage: SVCCLOUD_SHARED_VOLUMES or SVCCLOUD_CEPH_POOL')
  return login
}
const host = await openHostDrivers({
  migrationHost,
  migrationPorts: settings.migrationPorts,
  migrationMebibytesPerSecond: settings.migrationBandwidth,
  sharedFolder: settings.sharedVolumes === 'none' ? undefined : resolve(settings.sharedVolumes),
  ceph: settings.cephPool === undefined ? undefined : cephLogin(settings.cephPool),
  metadata: metadataKeys,
  choice: settings.hypervisor,
  folder,
  imageFolder: resolve(settings.imageCache ?? join(folder, 'images')),
  bootId,
  guestNetwork: settings.guestNetwork,
  guestNamespace:
    namespace === undefined ? undefined : { path: namespace, host: settings.guestNamespaceHost ?? migrationHost },
  guestUsers: settings.guestUsers,
  clock,
  random,
  log,
}).catch((error: unknown) => refuse(`guests cannot be run: ${error instanceof Error ? error.message : String(error)}`))
log.info('hypervisor chosen', { hypervisor: host.hypervisor.kind })

const https = openHttpsTransport(await readKubeconfig(settings.kubeconfig, clock))
const store = openClient({ transport: https.transport, fieldManager: 'svccloud-agent', clock, random })
const registry = openRegistry({ isProcessWide: true, build: { component: 'node-agent', version: VERSION } })
const certificate = await openCertificate(folder, clock, random)
const isAuthorized = openAccess({ store, namespace: nodeNamespace(nodeName), clock })
const listener = await startListener({
  host: settings.host,
  port: settings.port,
  certificate,
  isAuthorized,
  clock,
  log,
  consoleOf: (instance) => agent.consoleOf(instance),
  usage: () => agent.usage.list(),
})
const hasBackups = settings.backupStore !== 'none' && host.hypervisor.kind !== 'simulated'
const backupStore = hasBackups ? settings.backupStore : 'none'
const placeOf = (location: string): string => (isBucket(location) ? location : resolve(location))
const backupSources = hasBackups ? Object.entries(settings.backupSources) : []
const backupFolder = join(folder, 'backups')
await mkdir(backupFolder, { recursive: true, mode: 0o700 })
const openBackups = (parts: BackupParts) =>
  openDiskWork({
    ...host,
    ...parts,
    location: backupStore === 'object-storage' ? undefined : placeOf(backupStore),
    sources: Object.fromEntries(backupSources.map(([zone, place]) => [zone, placeOf(place)])),
    environment: environment(),
    bytesPerSecond: settings.backupBandwidth * MEBIBYTE,
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
  host: settings.metricsHost,
  port: settings.metricsPort,
  metrics: registry,
  missing: () => agent.missing(),
  metricsAccess: openMetricsToken({
    file: settings.metricsTokenFile,
    host: settings.metricsHost,
  }),
})

// Built before the first server is requested, so that it does not wait for the template.
host.images.prepare('tiny-linux')
const archive = settings.archiveAddress === undefined ? undefined : parseHostPort(settings.archiveAddress)
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

if (settings.stopGuests) await stopGuests(host.hypervisor, clock, log)
for (const { name } of await host.volumes.list()) await host.volumes.stopServing(name)
await Promise.all([listener.stop(), metadata.stop(), probes.stop()])
await host.hypervisor.close()
ledger.close()
await https.close()
await traces.stop()
exitProcess(0)
