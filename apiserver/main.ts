/** The API server's process: reads its environment, opens its dependencies, serves customers and operators, and stops
 *  cleanly. */
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { defined } from '../domain/defined.ts'
import { parseLoopbackTwins } from '../domain/loopback-twins.ts'
import { Problem } from '../domain/problem.ts'
import { listRegisteredHosts } from '../db/kubernetes-host/index.ts'
import { type Database, openDatabase } from '../db/open.ts'
import { prepareDatabase } from '../db/prepare.ts'
import { VERSION } from '../resources/version.ts'
import type { HttpService } from '../kit/http/exchange.ts'
import { renderProblem } from '../kit/http/render.ts'
import { startServer } from '../kit/http/server.ts'
import { type Caches, openCaches } from '../kit/kube/caches.ts'
import { openClient } from '../kit/kube/client.ts'
import { openControlPlanes } from '../kit/control-planes/configuration.ts'
import { readHostClusters } from '../kit/control-planes/host-clusters.ts'
import { openMadeHosts } from '../kit/control-planes/made-hosts.ts'
import { type ObjectStorageOffer, openObjectStorage } from '../kit/object-storage/configuration.ts'
import { openPayments } from '../kit/payments/configuration.ts'
import { openMetricsAccess } from '../kit/kube/metrics-access.ts'
import { openHttpsTransport } from '../kit/kube/https-transport.ts'
import { NamespaceRights, withNamespaceRights } from '../kit/kube/namespace-rights.ts'
import { readKubeconfig, readServiceAccount } from '../kit/kube/kubeconfig.ts'
import type { Store } from '../kit/kube/store.ts'
import type { Transport } from '../kit/kube/transport.ts'
import { type Clock, systemClock } from '../kit/sys/clock.ts'
import { type Logger, openLog } from '../kit/sys/log.ts'
import { openRegistry } from '../kit/sys/metrics.ts'
import { startTraceExport } from '../kit/sys/trace-export.ts'
import { environment, exitProcess, onFatal, stopSignal, sendToParent } from '../kit/sys/process.ts'
import { newUuid, type Random, systemRandom } from '../kit/sys/random.ts'
import { startAdmission, type WebhookOptions } from './admission/start.ts'
import type { Listener } from './admission/listener.ts'
import { createApp } from './app.ts'
import { openAgents } from './console/index.ts'
import { documentFor } from './pages/documents.ts'
import { openAdmissionMetrics } from './admission/metrics.ts'
import { openIdentityMetrics } from './identity/metrics.ts'
import { PAGES } from './identity/pages.ts'
import { parseProviders } from './identity/providers/configuration.ts'
import { createSealing, parseSealingKeys } from '../kit/sys/sealing.ts'
import { AUDIT_RETENTION_DAYS, AUDIT_VERIFY_SECONDS, runUpkeep } from './identity/upkeep.ts'
import { look, runLooks } from './look.ts'
import { type MailTransport, openMailTransport } from './mail/transport.ts'
import { type MailWorkerParts, runMailWorker } from './mail/worker.ts'
import { KINDS } from './nouns.ts'
import { createOperatorPages } from './pages/operator.ts'
import { createPages } from './pages/customer.ts'

const Port = z.coerce.number().int().min(0).max(65_535)
/** Comma separated. */
const List = z
  .string()
  .default('')
  .transform((list) =>
    list
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== ''),
  )
const Environment = z.object({
  SVCCLOUD_HOST: z.string().default('127.0.0.1'),
  SVCCLOUD_PORT: Port.default(8080),
  SVCCLOUD_OPERATOR_HOST: z.string().default('127.0.0.1'),
  SVCCLOUD_OPERATOR_PORT: Port.default(8081),
  DATABASE_URL: z.string().optional(),
  SVCCLOUD_DATABASE_URL: z.string().optional(),
  SVCCLOUD_DATABASE_CONNECTIONS: z.coerce.number().int().min(1).max(500).default(20),
  SVCCLOUD_KUBECONFIG: z.string().optional(),
  /** What the processes may do in namespaces of accounts and nodes, by bindings there. */
  SVCCLOUD_NAMESPACE_RIGHTS: NamespaceRights,
  SVCCLOUD_PUBLIC_URL: z.url().optional(),
  SVCCLOUD_SMTP_URL: z.string().optional(),
  SVCCLOUD_SMTP_ALLOW_PLAIN: z.enum(['true', 'false']).default('false'),
  SVCCLOUD_MAIL_DIRECTORY: z.string().optional(),
  SVCCLOUD_MAIL_FROM: z.string().default('svccloud <no-reply@localhost>'),
  SVCCLOUD_TRUSTED_PROXIES: List,
  /** `true` where more than one of these processes answers. */
  SVCCLOUD_HAS_PEERS: z.enum(['true', 'false']).default('false'),
  /** Such as `198.18=127.18:22`: where this machine reaches the SSH port of servers, by the halves of addresses. */
  SVCCLOUD_LOOPBACK_TWINS: z.string().transform(parseLoopbackTwins).optional(),
  SVCCLOUD_SEALING_KEYS: z.string().default(''),
  SVCCLOUD_LOST_SEALING_KEYS: z.string().default(''),
  SVCCLOUD_SUPPORT_READ_NEEDS_CONSENT: z.enum(['true', 'false']).default('true'),
  SVCCLOUD_AUDIT_VERIFY_SECONDS: z.coerce.number().int().min(1).default(AUDIT_VERIFY_SECONDS),
  SVCCLOUD_AUDIT_RETENTION_DAYS: z.coerce.number().int().min(1).default(AUDIT_RETENTION_DAYS),
  SVCCLOUD_IDENTITY_PROVIDERS: z.string().default(''),
  /** The validating webhook listens when it has a port. */
  SVCCLOUD_WEBHOOK_HOST: z.string().default('127.0.0.1'),
  SVCCLOUD_WEBHOOK_PORT: Port.optional(),
  SVCCLOUD_WEBHOOK_CERTIFICATE_FILE: z.string().optional(),
  SVCCLOUD_WEBHOOK_KEY_FILE: z.string().optional(),
  /** How the Kubernetes API proves itself to the webhook: a bearer token, an authority of client certificates. */
  SVCCLOUD_WEBHOOK_TOKEN_FILE: z.string().optional(),
  SVCCLOUD_WEBHOOK_CLIENT_AUTHORITY_FILE: z.string().optional(),
  SVCCLOUD_WEBHOOK_REGISTER: z.enum(['true', 'false']).default('false'),
  SVCCLOUD_PLATFORM_USERS: List,
  SVCCLOUD_LOG_LEVEL: z.string().default('info'),
  /** How long it goes on serving once it has been asked to stop, while whoever sends it requests learns of it. */
  SVCCLOUD_DRAIN_SECONDS: z.coerce.number().int().min(0).max(300).default(0),
  /** The payment processor; invoices stay unbilled without the file with its key. */
  SVCCLOUD_STRIPE_URL: z.url({ protocol: /^https?$/ }).optional(),
  SVCCLOUD_STRIPE_KEY_FILE: z.string().optional(),
  SVCCLOUD_STRIPE_WEBHOOK_SECRET_FILE: z.string().optional(),
  SVCCLOUD_STRIPE_PUBLISHABLE_KEY: z.string().optional(),
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
  /** The controllers speak to it; here it is only known that there is one. */
  SVCCLOUD_ORGANISATION_PLATFORM_URL: z.url({ protocol: /^https?$/ }).optional(),
})

/** How long running requests may take to finish once the process has been asked to stop. */
const GRACE_MILLISECONDS = 10_000

type Settings = z.infer<typeof Environment>

async function run(settings: Settings, log: Logger, asked: AbortSignal): Promise<void> {
  const ending = new AbortController()
  const stop = ending.signal
  const clock = systemClock
  const random = systemRandom
  const metrics = openRegistry({ isProcessWide: true, build: { component: 'apiserver', version: VERSION } })
  const db = openConfiguredDatabase(settings, log)
  await prepareDatabase(settings, { db, clock, log })
  openIdentityMetrics(db, metrics)
  const isWebhookServed = settings.SVCCLOUD_WEBHOOK_PORT !== undefined
  openAdmissionMetrics(metrics, isWebhookServed)

  const kubernetes = await openKubernetes(settings)
  const store = openStore(settings, kubernetes.transport)
  const caches = openCaches({ store, clock, random, log, registry: metrics })

  let customerApi: HttpService = notReady(random)
  const customers = await startForCustomers(settings, { clock, random, log }, (request) => customerApi(request))
  const apiUrl = `http://${hostInUrl(settings.SVCCLOUD_HOST)}:${customers.port}`

  const mail = openMail(settings)
  const objectStorage = await openObjectStorage(settings, clock)
  const payments = await openPayments(settings)
  const hosts = await openHosts(settings, { db, log }, stop)
  const parts = { store, caches, db, clock, random, log, areAddressesConfirmed: mail === undefined }
  const app = await createApp({
    ...appSettings(settings),
    ...parts,
    metrics,
    agents: openAgents({ store, caches, clock }),
    publicUrl: settings.SVCCLOUD_PUBLIC_URL ?? apiUrl,
    canSendMail: mail !== undefined,
    ...defined({ payments }),
    objectStorage,
    ...hosts.parts,
    hasOrganisationPlatform: settings.SVCCLOUD_ORGANISATION_PLATFORM_URL !== undefined,
    kubernetes: kubernetes.transport,
    isWebhookServed,
  })
  const isServing = () => customerApi === app.customers && !asked.aborted
  const operator = await startServer({
    host: settings.SVCCLOUD_OPERATOR_HOST,
    port: settings.SVCCLOUD_OPERATOR_PORT,
    service: app.operators,
    clock,
    random,
    log,
    pages: createOperatorPages(documentFor('operator'), {
      metrics,
      missing: async () => [...(isServing() ? [] : ['listeners']), ...(await missing(db, caches))],
      metricsAccess: openMetricsAccess(kubernetes.transport, clock),
    }),
  })
  caches.start(stop)
  const background = runInBackground(settings, { db, clock, random, log, mail, objectStorage }, stop)

  // Lists are answered from the caches, so customers are served only once those are filled.
  await Promise.race([caches.ready(), aborted(asked)])
  if (!asked.aborted)
    await look(parts).catch((error: unknown) => log.info('what is in use is not known yet', { error }))
  const looks = runLooks(parts, stop)
  const admission = asked.aborted ? undefined : await openAdmission(settings, parts)
  customerApi = app.customers
  const operatorUrl = `http://${hostInUrl(settings.SVCCLOUD_OPERATOR_HOST)}:${operator.port}`
  sendToParent({ ready: true, api_url: apiUrl, operator_url: operatorUrl, metrics_url: `${operatorUrl}/metrics` })
  log.info('ready', { port: customers.port, operator_port: operator.port })

  await aborted(asked)
  await drain(settings, { clock, log }, [customers, admission])
  ending.abort()
  await Promise.all([customers.stop(GRACE_MILLISECONDS), operator.stop(GRACE_MILLISECONDS), admission?.stop()])
  await Promise.all([background, looks, hosts.ended])
  await kubernetes.close()
  await db.destroy()
}

/** Hosts of control planes; those that the platform makes are read until the signal aborts. */
async function openHosts(
  settings: Settings,
  { db, log }: { readonly db: Database; readonly log: Logger },
  signal: AbortSignal,
) {
  const [configured, hostClusters] = [await openControlPlanes(settings, systemClock), await readHostClusters(settings)]
  const sealing = createSealing(parseSealingKeys(settings.SVCCLOUD_SEALING_KEYS), systemRandom)
  const made = openMadeHosts({ read: () => listRegisteredHosts(db, sealing), clock: systemClock, log })
  return { parts: { controlPlanes: { ...configured, made: made.hosts }, hostClusters }, ended: made.run(signal) }
}

/** Serves on while whoever sends it requests learns that it ends. */
async function drain(
  settings: Settings,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  servers: readonly (Drainable | undefined)[],
): Promise<void> {
  log.info('stopping')
  for (const server of servers) server?.drain()
  await clock.sleep(settings.SVCCLOUD_DRAIN_SECONDS * 1_000)
}
type Drainable = Pick<Listener, 'drain'>

const startForCustomers = (
  settings: Settings,
  own: Pick<Parameters<typeof startServer>[0], 'clock' | 'random' | 'log'>,
  service: HttpService,
) =>
  startServer({
    ...own,
    host: settings.SVCCLOUD_HOST,
    port: settings.SVCCLOUD_PORT,
    service,
    isSecure: settings.SVCCLOUD_PUBLIC_URL?.startsWith('https:') === true,
    pages: createPages({ document: documentFor('customer'), random: own.random, pages: PAGES }),
  })

const openConfiguredDatabase = (settings: Settings, log: Logger): Database =>
  openDatabase({
    url: required('SVCCLOUD_DATABASE_URL', settings.DATABASE_URL ?? settings.SVCCLOUD_DATABASE_URL),
    connectionsMaximum: settings.SVCCLOUD_DATABASE_CONNECTIONS,
    onConnectionLost: (error) => log.info('database connection lost', { error }),
  })

/** The parts of the application that only settings decide. */
const appSettings = (settings: Settings) => ({
  needsReadOnlyConsent: settings.SVCCLOUD_SUPPORT_READ_NEEDS_CONSENT === 'true',
  sealingKeys: parseSealingKeys(settings.SVCCLOUD_SEALING_KEYS),
  providers: parseProviders(settings.SVCCLOUD_IDENTITY_PROVIDERS),
  trustedProxies: settings.SVCCLOUD_TRUSTED_PROXIES,
  hasPeers: settings.SVCCLOUD_HAS_PEERS === 'true',
  loopbackTwins: settings.SVCCLOUD_LOOPBACK_TWINS,
})

/** Undefined where no way to send mail is set. */
const openMail = (settings: Settings): MailTransport | undefined =>
  openMailTransport({
    smtpUrl: settings.SVCCLOUD_SMTP_URL,
    allowsPlain: settings.SVCCLOUD_SMTP_ALLOW_PLAIN === 'true',
    folder: settings.SVCCLOUD_MAIL_DIRECTORY,
  })

/** Binds its rights in the namespaces of accounts and nodes. */
const openStore = ({ SVCCLOUD_NAMESPACE_RIGHTS: rights }: Settings, transport: Transport): Store => {
  const own = { fieldManager: 'svccloud-apiserver', clock: systemClock, random: systemRandom }
  return withNamespaceRights(openClient({ transport, ...own }), { rights, clock: systemClock })
}

async function openKubernetes(settings: Settings) {
  const access =
    settings.SVCCLOUD_KUBECONFIG === undefined
      ? await readServiceAccount(environment(), systemClock)
      : await readKubeconfig(settings.SVCCLOUD_KUBECONFIG, systemClock)
  return openHttpsTransport(required('SVCCLOUD_KUBECONFIG', access))
}

/** The dependencies of which the process is not ready: `database`, `caches`. */
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

interface BackgroundParts extends Omit<MailWorkerParts, 'transport' | 'from'> {
  readonly mail: MailTransport | undefined
  readonly objectStorage: ObjectStorageOffer
}

/** Maintains identities and sends mail until `stop`. */
async function runInBackground(settings: Settings, parts: BackgroundParts, stop: AbortSignal): Promise<void> {
  const { db, clock, random, log, mail, objectStorage } = parts
  const upkeep = runUpkeep(
    {
      db,
      clock,
      random,
      log,
      auditVerifySeconds: settings.SVCCLOUD_AUDIT_VERIFY_SECONDS,
      auditRetentionDays: settings.SVCCLOUD_AUDIT_RETENTION_DAYS,
      objectStorage,
      sealing: createSealing(parseSealingKeys(settings.SVCCLOUD_SEALING_KEYS), random),
    },
    stop,
  )
  const mailing =
    mail === undefined
      ? undefined
      : runMailWorker({ db, clock, random, log, transport: mail, from: settings.SVCCLOUD_MAIL_FROM }, stop)
  await Promise.all([upkeep, mailing])
}

async function openAdmission(
  settings: Settings,
  parts: Pick<WebhookOptions, 'store' | 'caches' | 'db' | 'clock' | 'random' | 'log' | 'areAddressesConfirmed'>,
): Promise<Listener | undefined> {
  const {
    SVCCLOUD_WEBHOOK_PORT: port,
    SVCCLOUD_WEBHOOK_CERTIFICATE_FILE: certificate,
    SVCCLOUD_WEBHOOK_KEY_FILE: key,
    SVCCLOUD_WEBHOOK_TOKEN_FILE: token,
    SVCCLOUD_WEBHOOK_CLIENT_AUTHORITY_FILE: clientAuthority,
  } = settings
  if (port === undefined) {
    parts.log.warn('no webhook: what people write to Kubernetes is judged only after it is stored')
    return undefined
  }
  return startAdmission({
    ...parts,
    kinds: KINDS,
    host: settings.SVCCLOUD_WEBHOOK_HOST,
    port,
    callers: {
      token: token === undefined ? undefined : (await readFile(token, 'utf8')).trim(),
      clientAuthority: clientAuthority === undefined ? undefined : await readFile(clientAuthority, 'utf8'),
    },
    certificateFiles: certificate === undefined || key === undefined ? undefined : { certificate, key },
    isRegistering: settings.SVCCLOUD_WEBHOOK_REGISTER === 'true',
    platformUsers: settings.SVCCLOUD_PLATFORM_USERS,
  })
}

/** Answers until the caches are filled. */
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

function required<T>(name: string, value: T | undefined): T {
  if (value === undefined) throw new Error(`${name} is not set`)
  return value
}

const settings = Environment.parse(environment())
const log = openLog('apiserver', settings.SVCCLOUD_LOG_LEVEL)
onFatal((error) => log.error('fatal', { error }))
const traces = await startTraceExport({ component: 'apiserver', version: VERSION, environment: environment(), log })
await run(settings, log, stopSignal())
await traces.stop()
exitProcess(0)
