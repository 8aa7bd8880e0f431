/** The controllers' process: reads its settings, brings schema, kinds and catalog up to date, and reconciles while it
 *  leads. */
import { listRegisteredHosts } from '../db/kubernetes-host/index.ts'
import { type Database, openDatabase } from '../db/kit/open.ts'
import { prepareDatabase } from '../db/prepare.ts'
import { showProcess } from '../db/process/index.ts'
import { defined } from '../domain/defined.ts'
import { startProbes } from '../kit/http/probes.ts'
import { openCaches } from '../kit/kube/caches.ts'
import { openClient } from '../kit/kube/client.ts'
import { installCrds } from '../kit/kube/crd.ts'
import { crds } from './kit/crds.ts'
import { openOrganisationPlatform } from '../integrations/organisation-platform/configuration.ts'
import { openControlPlanesClient } from '../integrations/control-planes/client.ts'
import { openControlPlanes } from '../integrations/control-planes/configuration.ts'
import { readHostClusters } from '../integrations/control-planes/host-clusters.ts'
import { openMadeHosts } from '../integrations/control-planes/made-hosts.ts'
import { openObjectStorage } from '../integrations/object-storage/configuration.ts'
import { openPayments, type Payments } from '../integrations/payments/configuration.ts'
import type { PaymentProcessor } from '../integrations/payments/processor.ts'
import { openMetricsAccess } from '../kit/kube/metrics-access.ts'
import { openHttpsTransport } from '../kit/kube/https-transport.ts'
import { withNamespaceRights } from '../kit/kube/namespace-rights.ts'
import { readKubeconfig, readServiceAccount } from '../kit/kube/kubeconfig.ts'
import { type KubeObject, Namespace } from '../kit/kube/object.ts'
import { isAlreadyExists, type Store } from '../kit/kube/store.ts'
import type { Transport } from '../kit/kube/transport.ts'
import { LEADER_REQUEST_TIMEOUT_MILLISECONDS, runElected } from '../kit/reconcile/lease.ts'
import { openControllerMetrics } from '../kit/reconcile/metrics.ts'
import { systemClock } from '../kit/sys/clock.ts'
import type { Logger } from '../kit/sys/log.ts'
import { openRegistry, type Registry } from '../kit/sys/metrics.ts'
import { startTraceExport } from '../kit/sys/trace-export.ts'
import { environment, exitProcess, sendToParent } from '../kit/sys/process.ts'
import { startProcess } from '../kit/sys/start-process.ts'
import { createSealing, parseSealingKeys } from '../kit/sys/sealing.ts'
import { newUuid, systemRandom } from '../kit/sys/random.ts'
import { NodePool } from '../resources/node-pool/index.ts'
import { KubernetesCluster } from '../resources/kubernetes-cluster/index.ts'
import { SYSTEM_NAMESPACE } from '../resources/kit/labels.ts'
import { Operation } from '../resources/operation/index.ts'
import { Node } from '../resources/node/index.ts'
import { Server } from '../resources/server/index.ts'
import { Database as DatabaseResource } from '../resources/database/index.ts'
import { ObjectStorage } from '../resources/object-storage/index.ts'
import { Volume } from '../resources/instance/index.ts'
import { Storage } from '../resources/storage/index.ts'
import { VERSION } from '../domain/version.ts'
import { openSweepRate } from './kit/sweep-rate.ts'
import { type Alarms, openAlarms } from './alarms.ts'
import { installCatalog } from './nouns/catalog/index.ts'
import { openControllers, runControllers } from './index.ts'
import { countUnowned } from './nouns/orphan/index.ts'
import { openOvn } from './network/ovn/open-ovn.ts'
import type { Ovn } from './network/ovn/ovn.ts'
import { readTlsFolder } from './network/ovn/tls.ts'
import { installRoles } from './kit/roles.ts'
import type { Parts } from './kit/parts.ts'
import { openDatabaseMetrics } from './nouns/database/index.ts'
import { openKubernetesMetrics } from './nouns/kubernetes-cluster/index.ts'
import type { HostClusters } from './nouns/kubernetes-host/index.ts'
import { openObjectStorageMetrics } from './nouns/object-storage/index.ts'
import { openStorageMetrics } from './kit/storage-metrics.ts'
import { ControllersSettings } from './settings.ts'
import { inShard, parseShard, type Shard } from './kit/shard.ts'
import { usageFromAgents } from './nouns/usage/index.ts'
import { required } from '../kit/sys/settings.ts'

/** The exit code after losing the lead: the supervisor restarts the process. */
const EXIT_LEAD_LOST = 75

const openConfiguredDatabase = (settings: ControllersSettings, log: Logger): Database =>
  openDatabase({
    url: settings.databaseUrl,
    connectionsMaximum: settings.databaseConnections,
    onConnectionLost: (error) => log.info('database connection lost', { error }),
  })

const rulesOf = (settings: ControllersSettings) => ({
  areAddressesConfirmed: settings.addressesConfirmed,
  auditCheckpointSeconds: settings.auditCheckpointSeconds,
})

const placeOf = ({ metricsHost: host, metricsPort: port }: ControllersSettings) => ({ host, port })

async function run(settings: ControllersSettings, log: Logger, stop: AbortSignal): Promise<'stopped' | 'lost'> {
  const [clock, random] = [systemClock, systemRandom]
  const registry = openRegistry({ isProcessWide: true, build: { component: 'controllers', version: VERSION } })
  const db = openConfiguredDatabase(settings, log)
  await prepareDatabase(settings, { db, clock, log })

  const kubernetes = await openKubernetes(settings)
  const { store, differences } = await openStore(settings, kubernetes.transport, log)
  const caches = openCaches({ store, clock, random, log, registry })
  let mayAct = () => false
  const shard = parseShard(settings.shard)
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
    sealing: createSealing(parseSealingKeys(settings.sealingKeys), random),
  }
  const ovn = ovnOf(settings, log)
  const hosts = openMadeHosts({ read: () => listRegisteredHosts(db, parts.sealing), clock, log })
  const { identity = newUuid(random), endedIdentity } = settings
  const controllers = openControllers({
    ...parts,
    identity,
    ...defined({ ovn }),
    controlPlanes: { ...(await openControlPlanes(settings, clock)), ownHosts: hosts.hosts },
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

  const ending = new AbortController()
  const showing = showProcess({ component: 'controllers', version: VERSION }, parts, ending.signal)
  const ended = endedIdentity === undefined ? {} : { endedIdentity }
  const own = { namespace: SYSTEM_NAMESPACE, name: shard.name, identity, ...ended }
  const election = { ...own, store, clock, random, log, registry }
  const end = await runElected(
    election,
    async (lead) => {
      mayAct = lead.mayAct
      // Not earlier: a watch may have fallen silent, and the last writes of the previous leader must be in the caches.
      caches.start(lead.signal)
      const options = { ...parts, usageOf: usageFromAgents(parts), ...toldTo(alarms) }
      await Promise.all([hosts.run(lead.signal), runControllers(controllers, options, lead.signal)])
    },
    stop,
  )
  if (end === 'lost') return end
  await probes.stop()
  ending.abort()
  await showing
  ovn?.close()
  await kubernetes.close()
  await db.destroy()
  return end
}

const processorOf = (payments: Payments | undefined): { processor?: PaymentProcessor } =>
  payments === undefined ? {} : { processor: payments.processor }

/** Undefined where the zones have no private networks. Only the southbound database shows what nodes have installed,
 *  and so whether a firewall is in force. */
function ovnOf(
  { ovnNorthbound: northbound, ovnSouthbound: southbound, ovnTlsFolder: tlsFolder }: ControllersSettings,
  log: Logger,
): Ovn | undefined {
  if (northbound === undefined) return undefined
  const remotes = { northbound, southbound: required('SVCCLOUD_OVN_SOUTHBOUND', southbound) }
  if (!Object.values(remotes).some((remote) => remote.includes('ssl:')))
    return openOvn({ ...remotes, clock: systemClock, log })
  const folder = required('SVCCLOUD_OVN_TLS_FOLDER', tlsFolder)
  return openOvn({ ...remotes, readTls: () => readTlsFolder(folder), clock: systemClock, log })
}

/** The connection to the Kubernetes API: from the kubeconfig, or from the pod's service account. */
async function openKubernetes({ kubeconfig: file }: ControllersSettings) {
  const access =
    file === undefined ? await readServiceAccount(environment(), systemClock) : await readKubeconfig(file, systemClock)
  return openHttpsTransport(required('SVCCLOUD_KUBECONFIG', access))
}

/** The client of the store, once kinds, roles, namespace and catalog exist, and how the catalog differs from them. */
async function openStore(
  settings: ControllersSettings,
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
  const store = withNamespaceRights(client, { rights: settings.namespaceRights, clock: systemClock })
  if (settings.installCrds) {
    await installCrds(store, crds(), systemClock)
    await installRoles(store)
  }
  await ensureNamespace(store, SYSTEM_NAMESPACE)
  const { catalogFile: catalog } = settings
  const differences = catalog === undefined ? [] : await installCatalog(store, catalog)
  for (const difference of differences) log.info('the catalog differs from what is stored', { difference })
  return { store, differences }
}

/** How hosts of control planes are created; undefined where there are none. */
async function hostClustersOf(settings: ControllersSettings): Promise<HostClusters | undefined> {
  const hostClusters = await readHostClusters(settings)
  return (
    hostClusters && {
      settings: hostClusters,
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
  noteDeliveries: onDeliveries,
  noteAuditSinks: onAuditSinks,
}: Alarms) => ({
  onSwept,
  onClaimsSwept,
  onBilled,
  onCheckpoint,
  onKubeconfigsAwaiting,
  onDeliveries,
  onAuditSinks,
})

/** Alarms over the zones of the shard. */
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

const { settings, log, stop } = await startProcess('controllers', ControllersSettings)
const traces = await startTraceExport({ component: 'controllers', version: VERSION, environment: environment(), log })
const end = await run(settings, log, stop)
if (end === 'lost') exitProcess(EXIT_LEAD_LOST)
await traces.stop()
exitProcess(0)
