/** The process of one node's agent. Environment:
 *  SVCCLOUD_NODE_NAME, SVCCLOUD_KUBECONFIG, SVCCLOUD_DATA (the agent's own folder): required;
 *  SVCCLOUD_HYPERVISOR auto | qemu | simulated (auto), SVCCLOUD_HOST (127.0.0.1), SVCCLOUD_PORT (0),
 *  SVCCLOUD_IMAGE_CACHE (SVCCLOUD_DATA/images),
 *  SVCCLOUD_POWER_CYCLE (which start of its own power this is, where several nodes share one machine and its boot id),
 *  SVCCLOUD_SHARED_VOLUMES (folder that other hosts have mounted too; none when absent or `none`),
 *  SVCCLOUD_MIGRATION_HOST (SVCCLOUD_HOST; where
 *  other hosts reach this one for guests and disks that move), SVCCLOUD_MIGRATION_PORTS (such as 49152-49215; any free
 *  ones),
 *  SVCCLOUD_MIGRATION_BANDWIDTH (MiB per second that one move may take; unlimited),
 *  SVCCLOUD_GUEST_NETWORK ovn | outbound | isolated (outbound), SVCCLOUD_STOP_GUESTS (false),
 *  SVCCLOUD_METRICS_HOST (127.0.0.1), SVCCLOUD_METRICS_PORT (0), SVCCLOUD_LOG_LEVEL (info).
 *  Tells its parent `{ready, url, metrics_url}` when its heartbeat has reached the control plane. */
import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { NETWORK_FEATURES } from '../../domain/guest-network.ts'
import { startProbes } from '../../kit/http/probes.ts'
import { openClient } from '../../kit/kube/client.ts'
import { openHttpsTransport } from '../../kit/kube/https-transport.ts'
import { readKubeconfig } from '../../kit/kube/kubeconfig.ts'
import { systemClock as clock } from '../../kit/sys/clock.ts'
import { writeDurably } from '../../kit/sys/durable-file.ts'
import { openLog } from '../../kit/sys/log.ts'
import { openRegistry } from '../../kit/sys/metrics.ts'
import { environment, exitProcess, onFatal, printErrorLine, stopSignal, sendToParent } from '../../kit/sys/process.ts'
import { systemRandom as random } from '../../kit/sys/random.ts'
import { nodeNamespace } from '../../resources/instance/index.ts'
import { hostCapacity, bootId as readBootId } from './host.ts'
import { openHost } from './host-drivers.ts'
import { LedgerInUse, openLedger } from './ledger.ts'
import { openAgent } from './loop.ts'
import { openAccess } from './serve/access.ts'
import { openMetadataKeys } from './serve/metadata-keys.ts'
import { startMetadataListener } from './serve/metadata-listener.ts'
import { runMetadataPort } from './serve/metadata-port.ts'
import type { RequestingGuest } from './serve/metadata-service.ts'
import { openCertificate } from './serve/certificate.ts'
import { startListener } from './serve/listener.ts'
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
  SVCCLOUD_MIGRATION_HOST: z.string().min(1).optional(),
  SVCCLOUD_MIGRATION_PORTS: PortRange.optional(),
  SVCCLOUD_MIGRATION_BANDWIDTH: z.coerce.number().int().min(1).max(BANDWIDTH_MEBIBYTES_PER_SECOND_MAXIMUM).optional(),
  SVCCLOUD_GUEST_NETWORK: z.enum(['ovn', 'outbound', 'isolated']).default('outbound'),
  SVCCLOUD_STOP_GUESTS: z.stringbool().default(false),
  SVCCLOUD_METRICS_HOST: z.string().min(1).default('127.0.0.1'),
  SVCCLOUD_METRICS_PORT: Port,
  SVCCLOUD_LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
})

const AGENT_VERSION = '0.1.0'
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

const folder = resolve(settings.SVCCLOUD_DATA)
await mkdir(folder, { recursive: true, mode: 0o700 }).catch((error: unknown) =>
  refuse(`${folder} cannot be used: ${String(error)}`),
)
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
const host = await openHost({
  migrationHost,
  migrationPorts: settings.SVCCLOUD_MIGRATION_PORTS,
  migrationMebibytesPerSecond: settings.SVCCLOUD_MIGRATION_BANDWIDTH,
  sharedFolder: settings.SVCCLOUD_SHARED_VOLUMES === 'none' ? undefined : resolve(settings.SVCCLOUD_SHARED_VOLUMES),
  metadata: metadataKeys,
  choice: settings.SVCCLOUD_HYPERVISOR,
  folder,
  imageFolder: resolve(settings.SVCCLOUD_IMAGE_CACHE ?? join(folder, 'images')),
  bootId,
  guestNetwork: settings.SVCCLOUD_GUEST_NETWORK,
  clock,
  random,
  log,
}).catch((error: unknown) => refuse(`guests cannot be run: ${error instanceof Error ? error.message : String(error)}`))
log.info('hypervisor chosen', { hypervisor: host.hypervisor.kind })

const https = openHttpsTransport(await readKubeconfig(settings.SVCCLOUD_KUBECONFIG, clock))
const store = openClient({ transport: https.transport, fieldManager: 'svccloud-agent', clock, random })
const registry = openRegistry({ isProcessWide: true })
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
const agent = openAgent({
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
    agentVersion: AGENT_VERSION,
    bootId,
    ...(await hostCapacity(folder)),
    hypervisor: host.hypervisor.kind,
    features: [...host.features],
    pools: [...host.volumes.pools],
    migrationHost,
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
})

// Made before anybody asks for a server, so that the first one does not wait for it.
host.images.prepare('tiny-linux')
const metadataPort = host.features.includes(NETWORK_FEATURES.public)
  ? runMetadataPort(
      {
        clock,
        log,
        zone: () => agent.zone(),
        guestOf: async (macAddress) => askingGuest(agent.instanceOf(macAddress)),
      },
      stop,
    )
  : undefined
const running = agent.run(stop)
while (!stop.aborted && agent.missing().length > 0) await clock.sleep(READY_POLL_MILLISECONDS, stop)
if (!stop.aborted) sendToParent({ ready: true, url: listener.url, metrics_url: `${probes.url}/metrics` })
await Promise.all([running, metadataPort])

if (settings.SVCCLOUD_STOP_GUESTS) await stopGuests(host.hypervisor, clock, log)
for (const { name } of await host.volumes.list()) await host.volumes.stopServing(name)
await Promise.all([listener.stop(), metadata.stop(), probes.stop()])
await host.hypervisor.close()
ledger.close()
await https.close()
exitProcess(0)
