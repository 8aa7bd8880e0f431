/** The controllers' process: reads its environment, brings schema, kinds and catalog up to date, and works while it
 *  leads. */
import { z } from 'zod'
import { listRegisteredHosts } from '../db/kubernetes-host/index.ts'
import { type Database, openDatabase } from '../db/open.ts'
import { prepareDatabase } from '../db/prepare.ts'
import { defined } from '../domain/defined.ts'
import { startProbes } from '../kit/http/probes.ts'
import { openCaches } from '../kit/kube/caches.ts'
import { openClient } from '../kit/kube/client.ts'
import { installCrds } from '../kit/kube/crd.ts'
import { crds } from './crds.ts'
import { openOrganisationPlatform } from '../kit/organisation-platform/configuration.ts'
import { openControlPlanesClient } from '../kit/control-planes/client.ts'
import { openControlPlanes } from '../kit/control-planes/configuration.ts'
import { readHostClusters } from '../kit/control-planes/host-clusters.ts'
import { openMadeHosts } from '../kit/control-planes/made-hosts.ts'
import { openObjectStorage } from '../kit/object-storage/configuration.ts'
import { openPayments, type Payments } from '../kit/payments/configuration.ts'
import type { PaymentProcessor } from '../kit/payments/processor.ts'
import { openMetricsAccess } from '../kit/kube/metrics-access.ts'
import { openHttpsTransport } from '../kit/kube/https-transport.ts'
import { NamespaceRights, withNamespaceRights } from '../kit/kube/namespace-rights.ts'
import { readKubeconfig, readServiceAccount } from '../kit/kube/kubeconfig.ts'
import { type KubeObject, Namespace } from '../kit/kube/object.ts'
import { isAlreadyExists, type Store } from '../kit/kube/store.ts'
import type { Transport } from '../kit/kube/transport.ts'
import { LEADER_REQUEST_TIMEOUT_MILLISECONDS, runElected } from '../kit/reconcile/lease.ts'
import { openControllerMetrics } from '../kit/reconcile/metrics.ts'
import { systemClock } from '../kit/sys/clock.ts'
import { type Logger, openLog } from '../kit/sys/log.ts'
import { openRegistry, type Registry } from '../kit/sys/metrics.ts'
import { startTraceExport } from '../kit/sys/trace-export.ts'
import { environment, exitProcess, onFatal, stopSignal, sendToParent } from '../kit/sys/process.ts'
import { createSealing, parseSealingKeys } from '../kit/sys/sealing.ts'
import { newUuid, systemRandom } from '../kit/sys/random.ts'
import { NodePool } from '../resources/node-pool/index.ts'
import { KubernetesCluster } from '../resources/kubernetes-cluster/index.ts'
import { SYSTEM_NAMESPACE } from '../resources/labels.ts'
import { Operation } from '../resources/operation/index.ts'
import { Node } from '../resources/node/index.ts'
import { Server } from '../resources/server/index.ts'
import { Database as DatabaseResource } from '../resources/database/index.ts'
import { ObjectStorage } from '../resources/object-storage/index.ts'
import { Volume } from '../resources/instance/index.ts'
import { Storage } from '../resources/storage/index.ts'
import { VERSION } from '../resources/version.ts'
import { openSweepRate } from './sweep-rate.ts'
import { type Alarms, openAlarms } from './alarms.ts'
import { installCatalog } from './catalog/index.ts'
import { openControllers, runControllers } from './index.ts'
import { countUnowned } from './orphan/index.ts'
import { openOvn } from './ovn/open-ovn.ts'
import type { Ovn } from './ovn/ovn.ts'
import { readTlsFolder } from './ovn/tls.ts'
import { installRoles } from './roles.ts'
import type { Parts } from './parts.ts'
import { openDatabaseMetrics } from './database/index.ts'
import { openKubernetesMetrics } from './kubernetes-cluster/index.ts'
import type { HostClusters } from './kubernetes-host/index.ts'
import { openObjectStorageMetrics } from './object-storage/index.ts'
import { AUDIT_CHECKPOINT_SECONDS } from './audit-checkpoints.ts'
import { openStorageMetrics } from './storage-metrics.ts'
import { inShard, parseShard, type Shard } from './shard.ts'
import { usageFromAgents } from './usage/agents.ts'

const OvsdbRemotes = z
  .string()
  .regex(
    /^(unix:[^,]+|(tcp|ssl):[^,]+:\d+)(,(unix:[^,]+|(tcp|ssl):[^,]+:\d+))*$/,
    'must be unix:<path>, tcp:<host>:<port> or ssl:<host>:<port>',
  )
  .optional()

const Environment = z.object({
  DATABASE_URL: z.string().optional(),
  SVCCLOUD_DATABASE_URL: z.string().optional(),
  SVCCLOUD_DATABASE_CONNECTIONS: z.coerce.number().int().min(1).max(500).default(20),
  SVCCLOUD_KUBECONFIG: z.string().optional(),
  /** What the processes may do in namespaces of accounts and nodes, by bindings there. */
  SVCCLOUD_NAMESPACE_RIGHTS: NamespaceRights,
  SVCCLOUD_INSTALL_CRDS: z.enum(['true', 'false']).default('false'),
  SVCCLOUD_CATALOG_FILE: z.string().optional(),
  /** Of this process in the election: unlike any other, ever. A supervisor gives it to know whom it may call ended. */
  SVCCLOUD_IDENTITY: z.string().min(1).max(253).optional(),
  SVCCLOUD_ENDED_IDENTITY: z.string().min(1).max(253).optional(),
  /** `zones:a,b` or `others:a,b`; the whole when absent. */
  SVCCLOUD_SHARD: z.string().optional(),
  /** Northbound database of OVN: one remote or several that share it, as `unix:<path>`, `tcp:<host>:<port>` or
   *  `ssl:<host>:<port>`. */
  SVCCLOUD_OVN_NORTHBOUND: OvsdbRemotes,
  /** Southbound database of OVN: what nodes have installed is known only with it. */
  SVCCLOUD_OVN_SOUTHBOUND: OvsdbRemotes,
  /** Of tls.key, tls.crt and ca.crt, by which databases at `ssl:` are spoken to; read for each connection. */
  SVCCLOUD_OVN_TLS_FOLDER: z.string().min(1).optional(),
  SVCCLOUD_SEALING_KEYS: z.string().default(''),
  SVCCLOUD_LOST_SEALING_KEYS: z.string().default(''),
  SVCCLOUD_METRICS_HOST: z.string().default('127.0.0.1'),
  SVCCLOUD_METRICS_PORT: z.coerce.number().int().min(0).max(65_535).default(0),
  SVCCLOUD_LOG_LEVEL: z.string().default('info'),
  /** The payment processor; invoices stay unbilled without the file with its key. */
  SVCCLOUD_STRIPE_URL: z.url({ protocol: /^https?$/ }).optional(),
  SVCCLOUD_STRIPE_KEY_FILE: z.string().optional(),
  /** The object storage, or why there is none. */
  SVCCLOUD_OBJECT_STORAGE_CONTROL_URL: z.url({ protocol: /^https?$/ }).optional(),
  SVCCLOUD_OBJECT_STORAGE_TOKEN_FILE: z.string().optional(),
  SVCCLOUD_OBJECT_STORAGE_ENDPOINT: z.string().optional(),
  SVCCLOUD_OBJECT_STORAGE_AUTHORITY_FILE: z.string().optional(),
  SVCCLOUD_OBJECT_STORAGE_ZONES: z.string().optional(),
  SVCCLOUD_OBJECT_STORAGE_OBSTACLE: z.string().optional(),
  SVCCLOUD_RGW_FILE: z.string().min(1).optional(),
  SVCCLOUD_CONTROL_PLANES_URL: z.url({ protocol: /^https?$/ }).optional(),
  SVCCLOUD_CONTROL_PLANES_TOKEN_FILE: z.string().optional(),
  SVCCLOUD_CONTROL_PLANES_AUTHORITY_FILE: z.string().optional(),
  SVCCLOUD_CONTROL_PLANES_FILE: z.string().optional(),
  SVCCLOUD_CONTROL_PLANES_REGIONS: z.string().optional(),
  SVCCLOUD_CONTROL_PLANES_OBSTACLE: z.string().optional(),
  /** How hosts of control planes are made; none is, without it. */
  SVCCLOUD_HOST_CLUSTERS_FILE: z.string().min(1).optional(),
  /** Where organisations of accounts see their clusters. */
  SVCCLOUD_ORGANISATION_PLATFORM_URL: z.url({ protocol: /^https?$/ }).optional(),
  SVCCLOUD_ORGANISATION_PLATFORM_TOKEN_FILE: z.string().min(1).optional(),
  /** The deployment can send no mail, so every address counts as confirmed. */
  SVCCLOUD_ADDRESSES_CONFIRMED: z.enum(['true', 'false']).default('false'),
  /** Between checkpoints of the audit log; the first of a day comes besides. */
  SVCCLOUD_AUDIT_CHECKPOINT_SECONDS: z.coerce.number().int().min(60).max(86_400).default(AUDIT_CHECKPOINT_SECONDS),
})

/** Ended by the loss of the lead: the supervisor starts the process anew. */
const EXIT_LEAD_LOST = 75

type Settings = z.infer<typeof Environment>

const openConfiguredDatabase = (settings: Settings, log: Logger): Database =>
  openDatabase({
    url: required('SVCCLOUD_DATABASE_URL', settings.DATABASE_URL ?? settings.SVCCLOUD_DATABASE_URL),
    connectionsMaximum: settings.SVCCLOUD_DATABASE_CONNECTIONS,
    onConnectionLost: (error) => log.info('database connection lost', { error }),
  })

const rulesOf = (settings: Settings) => ({
  areAddressesConfirmed: settings.SVCCLOUD_ADDRESSES_CONFIRMED === 'true',
  auditCheckpointSeconds: settings.SVCCLOUD_AUDIT_CHECKPOINT_SECONDS,
})

const placeOf = ({ SVCCLOUD_METRICS_HOST: host, SVCCLOUD_METRICS_PORT: port }: Settings) => ({ host, port })

async function run(settings: Settings, log: Logger, stop: AbortSignal): Promise<'stopped' | 'lost'> {
  const [clock, random] = [systemClock, systemRandom]
  const registry = openRegistry({ isProcessWide: true, build: { component: 'controllers', version: VERSION } })
  const db = openConfiguredDatabase(settings, log)
  await prepareDatabase(settings, { db, clock, log })

  const kubernetes = await openKubernetes(settings)
  const { store, differences } = await openStore(settings, kubernetes.transport, log)
  const caches = openCaches({ store, clock, random, log, registry })
  let mayAct = () => false
  const shard = parseShard(settings.SVCCLOUD_SHARD)
  const parts = {
    store,
    caches,
    db,
    clock,
    random,
    log,
    shard,
    sweepRate: openSweepRate(clock),
    ...processorOf(await openPayments(settings)),
    objectStorage: await openObjectStorage(settings, clock),
    ...rulesOf(settings),
    sealing: createSealing(parseSealingKeys(settings.SVCCLOUD_SEALING_KEYS), random),
  }
  const ovn = ovnOf(settings, log)
  const made = openMadeHosts({ read: () => listRegisteredHosts(db, parts.sealing), clock, log })
  const { SVCCLOUD_IDENTITY: identity = newUuid(random), SVCCLOUD_ENDED_IDENTITY: endedIdentity } = settings
  const controllers = openControllers({
    ...parts,
    identity,
    ...defined({ ovn }),
    controlPlanes: { ...(await openControlPlanes(settings, clock)), made: made.hosts },
    hostClusters: await hostClustersOf(settings),
    organisationPlatform: await openOrganisationPlatform(settings, clock),
    metrics: openControllerMetrics(registry),
    mayAct: () => mayAct(),
  })

  const alarms = alarmsOf(parts, registry)
  const missing = async () => [
    ...((await isReachable(db)) ? [] : ['database']),
    ...(mayAct() && !caches.isReady() ? ['caches'] : []),
  ]
  const metricsAccess = openMetricsAccess(kubernetes.transport, clock)
  const probes = await startProbes({ ...placeOf(settings), metrics: registry, metricsAccess, missing })
  sendToParent({ ready: true, metrics_url: `${probes.url}/metrics`, catalog_differences: differences })

  const ended = endedIdentity === undefined ? {} : { endedIdentity }
  const own = { namespace: SYSTEM_NAMESPACE, name: shard.name, identity, ...ended }
  const election = { ...own, store, clock, random, log, registry }
  const end = await runElected(
    election,
    async (lead) => {
      mayAct = lead.mayAct
      // not before: a watch may have fallen silent, and what the leader before did last must be seen
      caches.start(lead.signal)
      const options = { ...parts, usageOf: usageFromAgents(parts), ...toldTo(alarms) }
      await Promise.all([made.run(lead.signal), runControllers(controllers, options, lead.signal)])
    },
    stop,
  )
  if (end === 'lost') return end
  await probes.stop()
  ovn?.close()
  await kubernetes.close()
  await db.destroy()
  return end
}

const processorOf = (payments: Payments | undefined): { processor?: PaymentProcessor } =>
  payments === undefined ? {} : { processor: payments.processor }

/** Undefined where the zones have no network of their own. What nodes have installed, and so whether a firewall holds,
 *  only the southbound database says. */
function ovnOf(
  {
    SVCCLOUD_OVN_NORTHBOUND: northbound,
    SVCCLOUD_OVN_SOUTHBOUND: southbound,
    SVCCLOUD_OVN_TLS_FOLDER: tlsFolder,
  }: Settings,
  log: Logger,
): Ovn | undefined {
  if (northbound === undefined) return undefined
  const remotes = { northbound, southbound: required('SVCCLOUD_OVN_SOUTHBOUND', southbound) }
  if (!Object.values(remotes).some((remote) => remote.includes('ssl:')))
    return openOvn({ ...remotes, clock: systemClock, log })
  const folder = required('SVCCLOUD_OVN_TLS_FOLDER', tlsFolder)
  return openOvn({ ...remotes, readTls: () => readTlsFolder(folder), clock: systemClock, log })
}

/** The connection to the Kubernetes API: of the kubeconfig, or of the pod's service account. */
async function openKubernetes({ SVCCLOUD_KUBECONFIG: file }: Settings) {
  const access =
    file === undefined ? await readServiceAccount(environment(), systemClock) : await readKubeconfig(file, systemClock)
  return openHttpsTransport(required('SVCCLOUD_KUBECONFIG', access))
}

/** The stores' client, once kinds, roles, namespace and catalog are there, and how the catalog differs from them. */
async function openStore(
  settings: Settings,
  transport: Transport,
  log: Logger,
): Promise<{ readonly store: Store; readonly differences: readonly string[] }> {
  const client = openClient({
    transport,
    fieldManager: 'svccloud-controllers',
    clock: systemClock,
    random: systemRandom,
    requestTimeoutMilliseconds: LEADER_REQUEST_TIMEOUT_MILLISECONDS,
  })
  const store = withNamespaceRights(client, { rights: settings.SVCCLOUD_NAMESPACE_RIGHTS, clock: systemClock })
  if (settings.SVCCLOUD_INSTALL_CRDS === 'true') {
    await installCrds(store, crds(), systemClock)
    await installRoles(store)
  }
  await ensureNamespace(store, SYSTEM_NAMESPACE)
  const { SVCCLOUD_CATALOG_FILE: catalog } = settings
  const differences = catalog === undefined ? [] : await installCatalog(store, catalog)
  for (const difference of differences) log.info('the catalog differs from what is stored', { difference })
  return { store, differences }
}

/** How hosts of control planes are made; undefined where none is. */
async function hostClustersOf(settings: Settings): Promise<HostClusters | undefined> {
  const told = await readHostClusters(settings)
  return (
    told && {
      settings: told,
      open(access) {
        const { transport, close } = openHttpsTransport(access)
        const own = { fieldManager: 'svccloud', clock: systemClock, random: systemRandom }
        return { store: openClient({ transport, ...own }), close }
      },
      connect: (host) => openControlPlanesClient({ ...host, clock: systemClock }),
    }
  )
}

const toldTo = ({
  noteSweep: onSwept,
  noteClaims: onClaimsSwept,
  noteBilling: onBilled,
  noteCheckpoint: onCheckpoint,
  noteKubeconfigs: onKubeconfigsAwaiting,
}: Alarms) => ({
  onSwept,
  onClaimsSwept,
  onBilled,
  onCheckpoint,
  onKubeconfigsAwaiting,
})

/** Over what the shard looks after. */
function alarmsOf(
  { caches, shard, sweepRate }: Required<Pick<Parts, 'caches' | 'sweepRate'>> & { readonly shard: Shard },
  registry: Registry,
): Alarms {
  const ofShard = <T extends KubeObject>(objects: readonly T[]) => objects.filter(inShard(shard))
  openStorageMetrics(
    {
      storages: () => ofShard(caches.of(Storage).list()),
      volumes: () => (shard.hasCommonWork ? caches.of(Volume).list() : []),
    },
    registry,
  )
  openDatabaseMetrics(() => ofShard(caches.of(DatabaseResource).list()), registry, systemClock)
  const [clusters, pools] = [caches.of(KubernetesCluster), caches.of(NodePool)]
  openKubernetesMetrics(
    { clusters: () => ofShard(clusters.list()), pools: () => ofShard(pools.list()) },
    registry,
    systemClock,
  )
  openObjectStorageMetrics(() => ofShard(caches.of(ObjectStorage).list()), registry)
  return openAlarms(
    {
      nodes: () => ofShard(caches.of(Node).list()),
      servers: () => ofShard(caches.of(Server).list()),
      operations: () => (shard.hasCommonWork ? caches.of(Operation).list() : []),
      unowned: () => (shard.hasCommonWork ? countUnowned(caches) : new Map()),
      sweepsWaiting: () => sweepRate.waiting(),
    },
    registry,
    systemClock,
  )
}

const isReachable = (db: Database): Promise<boolean> =>
  db
    .selectFrom('node_capacity')
    .select('node')
    .limit(1)
    .execute()
    .then(
      () => true,
      () => false,
    )

async function ensureNamespace(store: Store, name: string): Promise<void> {
  try {
    await store.create(Namespace, { metadata: { name }, spec: undefined })
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
  }
}

function required<T>(name: string, value: T | undefined): T {
  if (value === undefined) throw new Error(`${name} is not set`)
  return value
}

const settings = Environment.parse(environment())
const log = openLog('controllers', settings.SVCCLOUD_LOG_LEVEL)
onFatal((error) => log.error('fatal', { error }))
const traces = await startTraceExport({ component: 'controllers', version: VERSION, environment: environment(), log })
const end = await run(settings, log, stopSignal())
if (end === 'lost') exitProcess(EXIT_LEAD_LOST)
await traces.stop()
exitProcess(0)
