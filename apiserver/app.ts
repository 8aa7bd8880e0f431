/** The API: routes, their handlers and the pipeline. It knows no socket, so tests and the simulation call it as a
 *  function. */
import { deploymentSecret } from '../db/deployment/index.ts'
import { databaseUnavailable } from '../db/kit/failures.ts'
import { answerIdempotencyKey, releaseIdempotencyKey, takeIdempotencyKey } from '../db/request/index.ts'
import { forAccount } from '../db/kit/account-share.ts'
import type { Database } from '../db/kit/open.ts'
import { createCursors } from '../kit/http/cursor.ts'
import type { Endpoint } from '../kit/http/endpoint.ts'
import type { HttpService } from '../kit/http/exchange.ts'
import type { IdempotencyKeys } from '../kit/http/idempotency.ts'
import { withDryRuns } from '../kit/kube/dry-run-store.ts'
import { createPipeline, type RequestRefusal, requestDurations } from '../kit/http/pipeline.ts'
import type { Route } from '../kit/http/route.ts'
import { ownOrigins } from '../kit/http/steps/origin.ts'
import type { Transport } from '../kit/kube/transport.ts'
import type { Registry } from '../kit/sys/metrics.ts'
import { ROUTES } from '../resources/index.ts'
import { VERSION } from '../domain/version.ts'
import { storeRefusal } from './kit/change/store-refusal.ts'
import { dryRunDescription } from './kit/dry-run.ts'
import { OutcomeUnknown } from './kit/change/accept.ts'
import type { AgentConnections } from './console/index.ts'
import { changesEndpoints } from './feed/index.ts'
import { openIdentity } from './identity/identity.ts'
import type { ProviderConfiguration } from './identity/providers/configuration.ts'
import { auditRefused } from './kit/change/staff-audit.ts'
import type { SealingKey } from '../kit/sys/sealing.ts'
import { NOUNS, openNouns } from './nouns.ts'
import { mcpEndpoint } from './mcp/mcp.ts'
import { searchEndpoint } from './search/index.ts'
import { filterList } from './kit/list/filters.ts'
import type { Parts } from './kit/parts.ts'
import { openCatchUp } from './kit/change/catch-up.ts'
import { openAuditCommit } from './kit/change/commit-audit.ts'

export interface AppOptions
  extends Pick<
    Parts,
    | 'store'
    | 'caches'
    | 'db'
    | 'clock'
    | 'random'
    | 'log'
    | 'hasPeers'
    | 'isWebhookCalled'
    | 'loopbackTwins'
    | 'payments'
    | 'objectStorage'
    | 'controlPlanes'
    | 'hostClusters'
    | 'hasOrganisationPlatform'
  > {
  readonly metrics: Registry
  /** Reaches the consoles on the hosts. */
  readonly agents: AgentConnections
  /** Origin of the portal. Cookies are sent over HTTPS only when it is https. */
  readonly publicUrl: string
  /** URL of the portal of the staff; undefined where its address is not known. */
  readonly staffPortalUrl?: string | undefined
  readonly canSendMail: boolean
  /** Keys that seal authenticator secrets, the newest first. */
  readonly sealingKeys?: readonly SealingKey[]
  /** The management cluster, which knows the operators' tokens. */
  readonly kubernetes?: Transport
  /** Whether read-only support sessions need the customer's consent; default yes. */
  readonly needsReadOnlyConsent?: boolean
  /** Identity providers in button order. */
  readonly providers?: readonly ProviderConfiguration[]
  readonly trustedProxies?: readonly string[]
  /** Checks every answer against its route's schema: for tests. */
  readonly checkAnswers?: boolean
}

const CURSOR_KEY_BYTES = 32

export interface App {
  readonly customers: HttpService
  readonly operators: HttpService
}

/** Opens the API. Its caches fill once the caller has started them. */
export async function createApp(base: AppOptions): Promise<App> {
  const options = { ...base, store: withDryRuns(base.store) }
  const { db } = options
  const identity = await openIdentity(options)
  const parts: Parts = {
    ...options,
    commitAudit: openAuditCommit(options),
    catchUp: openCatchUp(options),
    requireAccess: identity.requireAccess,
    cursors: createCursors(await deploymentSecret(db, 'cursor', CURSOR_KEY_BYTES, options)),
  }
  const all = openNouns(parts, identity.parts, options.agents)
  const shared = {
    ...options,
    ...identity,
    // The intent of a change whose outcome is open gets its entry from the sweeper.
    auditRefusal: async (refusal: RequestRefusal) =>
      refusal.problem.cause instanceof OutcomeUnknown ? undefined : auditRefused(refusal, options),
    translate: (error: unknown) => storeRefusal(databaseUnavailable(error)),
    trustedProxies: options.trustedProxies ?? [],
    origins: ownOrigins(options.publicUrl),
    idempotencyKeys: idempotencyKeysIn(db),
    describeDryRun: dryRunDescription(options),
    forAccount,
    isSecure: options.publicUrl.startsWith('https:'),
    checkAnswers: options.checkAnswers ?? false,
    durations: requestDurations(options.metrics),
  }
  let customers: HttpService | undefined
  const mcp = mcpEndpoint({
    version: VERSION,
    service: (request) => {
      if (customers === undefined) throw new Error('a message came before there was an API')
      return customers(request)
    },
  })
  const feeds = NOUNS.flatMap((noun) => noun.feeds(all))
  const endpoints = complete([
    ...NOUNS.flatMap((noun) => noun.endpoints(all)),
    ...changesEndpoints(parts, feeds, options.metrics),
    searchEndpoint(parts, feeds),
    mcp,
  ]).map((endpoint) => filterList(endpoint, options))
  const of = (audience: Route['audience']) => endpoints.filter(({ route }) => route.audience === audience)
  customers = createPipeline({ ...shared, endpoints: of('customer') })
  return {
    customers,
    operators: createPipeline({
      ...shared,
      endpoints: of('operator'),
      authenticate: identity.authenticateOperator,
      isSecure: (options.staffPortalUrl ?? options.publicUrl).startsWith('https:'),
    }),
  }
}

const idempotencyKeysIn = (db: Database): IdempotencyKeys => ({
  take: (key, hash, now) => takeIdempotencyKey(db, key, hash, now),
  answered: (key, answer) => answerIdempotencyKey(db, key, answer),
  release: (key) => releaseIdempotencyKey(db, key),
})

/** Every route has one handler, and every handler belongs to a listed route. */
function complete(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  const unpaired = [
    ...ROUTES.filter((route) => endpoints.filter((endpoint) => endpoint.route === route).length !== 1),
    ...endpoints.map(({ route }) => route).filter((route) => !ROUTES.includes(route)),
  ]
  if (unpaired.length > 0)
    throw new Error(`not exactly one handler and one route: ${unpaired.map((route) => route.id).join(', ')}`)
  return endpoints
}
