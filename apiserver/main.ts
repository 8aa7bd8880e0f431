/** The API server's process: reads its settings, opens its dependencies, serves customers and operators, and stops
 *  cleanly. */
import { defined } from '../domain/defined.ts'
import { Problem } from '../domain/problem.ts'
import { listRegisteredHosts } from '../db/kubernetes-host/index.ts'
import { type Database, openDatabase } from '../db/kit/open.ts'
import { prepareDatabase } from '../db/prepare.ts'
import { showProcess } from '../db/process/index.ts'
import { VERSION } from '../domain/version.ts'
import type { HttpService } from '../kit/http/exchange.ts'
import type { ProbeOptions } from '../kit/http/probes.ts'
import { renderProblem } from '../kit/http/render.ts'
import { startServer } from '../kit/http/server.ts'
import { type Caches, openCaches } from '../kit/kube/caches.ts'
import { openClient } from '../kit/kube/client.ts'
import { openControlPlanes } from '../integrations/control-planes/configuration.ts'
import { readHostClusters } from '../integrations/control-planes/host-clusters.ts'
import { openMadeHosts } from '../integrations/control-planes/made-hosts.ts'
import { type ObjectStorageOffer, openObjectStorage } from '../integrations/object-storage/configuration.ts'
import { openPayments } from '../integrations/payments/configuration.ts'
import { openMetricsAccess } from '../kit/kube/metrics-access.ts'
import { openHttpsTransport } from '../kit/kube/https-transport.ts'
import { withNamespaceRights } from '../kit/kube/namespace-rights.ts'
import { readKubeconfig, readServiceAccount } from '../kit/kube/kubeconfig.ts'
import type { Store } from '../kit/kube/store.ts'
import type { Transport } from '../kit/kube/transport.ts'
import { type Clock, systemClock } from '../kit/sys/clock.ts'
import type { Logger } from '../kit/sys/log.ts'
import { openRegistry } from '../kit/sys/metrics.ts'
import { startTraceExport } from '../kit/sys/trace-export.ts'
import { environment, exitProcess, sendToParent } from '../kit/sys/process.ts'
import { endRefused, startProcess } from '../kit/sys/start-process.ts'
import { newUuid, type Random, systemRandom } from '../kit/sys/random.ts'
import { type Admission, startAdmission, type WebhookOptions } from './kit/admission/start.ts'
import type { Listener } from './kit/admission/listener.ts'
import { createApp } from './app.ts'
import { openAgents } from './console/index.ts'
import { documentFor } from './kit/pages/documents.ts'
import { openAdmissionMetrics } from './kit/admission/metrics.ts'
import { openIdentityMetrics } from './identity/metrics.ts'
import { PAGES } from './identity/pages.ts'
import { parseProviders } from './identity/providers/configuration.ts'
import { createSealing, parseSealingKeys } from '../kit/sys/sealing.ts'
import { readPemFile, readSecretFile } from '../kit/sys/secret-file.ts'
import { runUpkeep } from './identity/upkeep.ts'
import { look, runLooks } from './look.ts'
import { type MailTransport, openMailTransport } from './mail/transport.ts'
import { type MailWorkerParts, runMailWorker } from './mail/worker.ts'
import { KINDS } from './nouns.ts'
import { createOperatorPages } from './kit/pages/operator.ts'
import { createPages } from './kit/pages/customer.ts'
import { type Brand, openBrand, senderOf } from './kit/pages/brand.ts'
import { openPortal, originsOf, type Portal, portalPages } from './kit/pages/portal.ts'
import { type ProviderRegistry, providerRegistryPages, readProviderRegistry } from './kit/pages/provider-registry.ts'
import { ApiServerSettings } from './settings.ts'
import { required } from '../kit/sys/settings.ts'

/** How long running requests may take to finish once the process has been asked to stop. */
const GRACE_MILLISECONDS = 10_000

async function run(settings: ApiServerSettings, brand: Brand, log: Logger, stopSignal: AbortSignal): Promise<void> {
  const ending = new AbortController()
  const stop = ending.signal
  const clock = systemClock
  const random = systemRandom
  const metrics = openRegistry({ isProcessWide: true, build: { component: 'apiserver', version: VERSION } })
  const db = openConfiguredDatabase(settings, log)
  await prepareDatabase(settings, { db, clock, log })
  openIdentityMetrics(db, metrics)
  let admission: Admission | undefined
  const isWebhookCalled = () => admission?.isRegistered() === true
  openAdmissionMetrics(metrics, isWebhookCalled)

  const kubernetes = await openKubernetes(settings)
  const store = openStore(settings, kubernetes.transport)
  const caches = openCaches({ store, clock, random, log, registry: metrics })

  const portal = await openPortal(settings.portalDirectory, brand)
  if (portal === undefined) log.info('there is no portal: it is off or not built')
  let customerApi: HttpService = notReady(random)
  const objectStorage = await openObjectStorage(settings, clock)
  const providers =
    settings.terraformDirectory === undefined ? undefined : await readProviderRegistry(settings.terraformDirectory)
  const own = { clock, random, log, portal, objectStorage, providers }
  const customers = await startForCustomers(settings, own, (request) => customerApi(request))
  const apiUrl = `http://${hostInUrl(settings.host)}:${customers.port}`

  const mail = openMail(settings)
  const payments = await openPayments(settings)
  const hosts = await openHosts(settings, { db, log }, stop)
  const parts = { store, caches, db, clock, random, log, areAddressesConfirmed: mail === undefined }
  const app = await createApp({
    ...appSettings(settings),
    ...parts,
    metrics,
    agents: openAgents({ store, caches, clock }),
    publicUrl: settings.publicUrl ?? apiUrl,
    canSendMail: mail !== undefined,
    ...defined({ payments }),
    objectStorage,
    ...hosts.parts,
    hasOrganisationPlatform: settings.organisationPlatformUrl !== undefined,
    kubernetes: kubernetes.transport,
    isWebhookCalled,
  })
  const isServing = () => customerApi === app.customers && !stopSignal.aborted
  const operator = await startForOperators(settings, { clock, random, log, portal }, app.operators, {
    metrics,
    missing: async () => [...(isServing() ? [] : ['listeners']), ...(await missing(db, caches))],
    metricsAccess: openMetricsAccess(kubernetes.transport, clock),
  })
  caches.start(stop)
  const background = runInBackground(settings, { db, clock, random, log, mail, brand, objectStorage }, stop)

  // Lists are answered from the caches, so customers are served only once those are filled.
  await Promise.race([caches.ready(), aborted(stopSignal)])
  if (!stopSignal.aborted)
    await look(parts).catch((error: unknown) => log.info('what is in use is not known yet', { error }))
  const looks = runLooks(parts, stop)
  admission = stopSignal.aborted ? undefined : await openAdmission(settings, parts)
  customerApi = app.customers
  const operatorUrl = `http://${hostInUrl(settings.operatorHost)}:${operator.port}`
  sendToParent({ ready: true, api_url: apiUrl, operator_url: operatorUrl, metrics_url: `${operatorUrl}/metrics` })
  log.info('ready', { port: customers.port, operator_port: operator.port })

  await aborted(stopSignal)
  await drain(settings, { clock, log }, [customers, admission])
  ending.abort()
  await Promise.all([customers.stop(GRACE_MILLISECONDS), operator.stop(GRACE_MILLISECONDS), admission?.stop()])
  await Promise.all([background, looks, hosts.ended])
  await kubernetes.close()
  await db.destroy()
}

/** Hosts of control planes; those that the platform creates are read until the signal aborts. */
async function openHosts(
  settings: ApiServerSettings,
  { db, log }: { readonly db: Database; readonly log: Logger },
  signal: AbortSignal,
) {
  const [configured, hostClusters] = [await openControlPlanes(settings, systemClock), await readHostClusters(settings)]
  const sealing = createSealing(parseSealingKeys(settings.sealingKeys), systemRandom)
  const hosts = openMadeHosts({ read: () => listRegisteredHosts(db, sealing), clock: systemClock, log })
  return { parts: { controlPlanes: { ...configured, ownHosts: hosts.hosts }, hostClusters }, ended: hosts.run(signal) }
}

/** Keeps serving while clients and load balancers learn that the process stops. */
async function drain(
  settings: ApiServerSettings,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  servers: readonly (Drainable | undefined)[],
): Promise<void> {
  log.info('stopping')
  for (const server of servers) server?.drain()
  await clock.sleep(settings.drainSeconds * 1_000)
}
type Drainable = Pick<Listener, 'drain'>

interface ListenerParts extends Pick<Parameters<typeof startServer>[0], 'clock' | 'random' | 'log'> {
  readonly portal: Portal | undefined
}

const startForCustomers = (
  settings: ApiServerSettings,
  {
    portal,
    objectStorage,
    providers,
    ...own
  }: ListenerParts & {
    readonly objectStorage: ObjectStorageOffer
    readonly providers: ProviderRegistry | undefined
  },
  service: HttpService,
) =>
  startServer({
    ...own,
    host: settings.host,
    port: settings.port,
    service,
    isSecure: settings.publicUrl?.startsWith('https:') === true,
    pages: firstOf(
      providerRegistryPages(providers, own.random),
      portalPages(
        {
          portal,
          page: 'index.html',
          home: '/dashboard',
          publicUrl: settings.publicUrl ?? `http://${hostInUrl(settings.host)}:${settings.port}`,
          connects: originsOf(
            objectStorage.stores.flatMap(({ zones, endpointOf }) => zones.map((zone) => endpointOf(zone))),
          ),
        },
        createPages({ document: documentFor('customer'), random: own.random, pages: PAGES }),
      ),
    ),
  })

type Pages = NonNullable<Parameters<typeof startServer>[0]['pages']>
const firstOf =
  (...all: readonly Pages[]): Pages =>
  (request, response) =>
    all.some((pages) => pages(request, response))

const startForOperators = (
  settings: ApiServerSettings,
  { portal, ...own }: ListenerParts,
  service: HttpService,
  probes: ProbeOptions,
) =>
  startServer({
    ...own,
    host: settings.operatorHost,
    port: settings.operatorPort,
    service,
    isSecure: settings.staffPortalUrl?.startsWith('https:') === true,
    pages: portalPages(
      { portal, page: 'operator.html', home: '/dashboard', publicUrl: settings.staffPortalUrl },
      createOperatorPages(documentFor('operator'), probes),
    ),
  })

const openConfiguredDatabase = (settings: ApiServerSettings, log: Logger): Database =>
  openDatabase({
    url: settings.databaseUrl,
    connectionsMaximum: settings.databaseConnections,
    onConnectionLost: (error) => log.info('database connection lost', { error }),
  })

/** The parts of the application that only settings decide. */
const appSettings = (settings: ApiServerSettings) => ({
  staffPortalUrl: settings.staffPortalUrl,
  needsReadOnlyConsent: settings.supportReadNeedsConsent,
  sealingKeys: parseSealingKeys(settings.sealingKeys),
  providers: parseProviders(settings.identityProviders),
  trustedProxies: settings.trustedProxies,
  hasPeers: settings.hasPeers,
  loopbackTwins: settings.loopbackTwins,
})

/** Undefined when no way to send mail is configured. */
const openMail = (settings: ApiServerSettings): MailTransport | undefined =>
  openMailTransport({
    smtpUrl: settings.smtpUrl,
    allowsPlain: settings.smtpAllowPlain,
    folder: settings.mailDirectory,
  })

/** Binds its rights in the namespaces of accounts and nodes. */
const openStore = ({ namespaceRights: rights }: ApiServerSettings, transport: Transport): Store => {
  const own = { fieldManager: 'svccloud-apiserver', clock: systemClock, random: systemRandom }
  return withNamespaceRights(openClient({ transport, ...own }), { rights, clock: systemClock })
}

async function openKubernetes(settings: ApiServerSettings) {
  const access =
    settings.kubeconfig === undefined
      ? await readServiceAccount(environment(), systemClock)
      : await readKubeconfig(settings.kubeconfig, systemClock)
  return openHttpsTransport(required('SVCCLOUD_KUBECONFIG', access))
}

/** The dependencies because of which the process is not ready: `database`, `caches`. */
async function missing(db: Database, caches: Caches): Promise<readonly string[]> {
  const isDatabaseThere = await db
    .selectFrom('deployment_secret')
    .select('name')
    .limit(1)
    .execute()
    .then(
      () => true,
      () => false,
    )
  return [...(isDatabaseThere ? [] : ['database']), ...(caches.isReady() ? [] : ['caches'])]
}

interface BackgroundParts extends Omit<MailWorkerParts, 'transport' | 'from' | 'language' | 'style'> {
  readonly brand: Brand
  readonly mail: MailTransport | undefined
  readonly objectStorage: ObjectStorageOffer
}

/** Maintains identities and sends mail until `stop`. */
async function runInBackground(settings: ApiServerSettings, parts: BackgroundParts, stop: AbortSignal): Promise<void> {
  const { db, clock, random, log, mail, brand, objectStorage } = parts
  const upkeep = runUpkeep(
    {
      db,
      clock,
      random,
      log,
      auditVerifySeconds: settings.auditVerifySeconds,
      auditRetentionDays: settings.auditRetentionDays,
      objectStorage,
      sealing: createSealing(parseSealingKeys(settings.sealingKeys), random),
    },
    stop,
  )
  const mailing =
    mail === undefined
      ? undefined
      : runMailWorker(
          {
            db,
            clock,
            random,
            log,
            transport: mail,
            from: senderOf(settings.mailFrom, brand),
            language: brand.language,
            style: brand.mails,
          },
          stop,
        )
  const showing = showProcess({ component: 'apiserver', version: VERSION }, parts, stop)
  await Promise.all([upkeep, mailing, showing])
}

async function openAdmission(
  settings: ApiServerSettings,
  parts: Pick<WebhookOptions, 'store' | 'caches' | 'db' | 'clock' | 'random' | 'log' | 'areAddressesConfirmed'>,
): Promise<Admission | undefined> {
  const {
    webhookPort: port,
    webhookCertificateFile: certificate,
    webhookKeyFile: key,
    webhookTokenFile: token,
    webhookClientAuthorityFile: clientAuthority,
  } = settings
  if (port === undefined) {
    parts.log.warn('no webhook: what people write to Kubernetes is judged only after it is stored')
    return undefined
  }
  return startAdmission({
    ...parts,
    kinds: KINDS,
    host: settings.webhookHost,
    port,
    callers: {
      token: token === undefined ? undefined : await readSecretFile(token),
      clientAuthority: clientAuthority === undefined ? undefined : await readPemFile(clientAuthority),
    },
    certificateFiles: certificate === undefined || key === undefined ? undefined : { certificate, key },
    isRegistering: settings.webhookRegister,
    configurationName: settings.webhookConfiguration,
    platformUsers: settings.platformUsers,
  })
}

/** Answers requests until the caches are filled. */
const notReady =
  (random: Random): HttpService =>
  async () =>
    renderProblem(new Problem(503, 'The service is starting. Try again in a moment.', { retryAfterSeconds: 1 }), {
      'x-request-id': newUuid(random),
    })

const hostInUrl = (host: string): string => (host.includes(':') ? `[${host}]` : host)

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) =>
    signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve(), { once: true }),
  )

const { settings, log, stop } = await startProcess('apiserver', ApiServerSettings)
const brand = await openBrand(settings.brandFile).catch((error: unknown) => endRefused('apiserver', error))
const traces = await startTraceExport({ component: 'apiserver', version: VERSION, environment: environment(), log })
await run(settings, brand, log, stop)
await traces.stop()
exitProcess(0)
