/** Identity as the rest of the API server sees it: the caller, what is counted, and what the nouns of people and
 *  credentials are built from. */
import { createHmac } from 'node:crypto'
import type { CustomFetch } from 'openid-client'
import { defined } from '../../domain/defined.ts'
import { checkStanding, type StandingFacts, standingOf } from '../../domain/account/standing.ts'
import { deploymentSecret } from '../../db/deployment/index.ts'
import type { Database } from '../../db/kit/open.ts'
import { countRequest } from '../../db/request/index.ts'
import { readStanding } from '../../db/account/index.ts'
import type { Caller, Customer, Operator, RequestFacts } from '../../kit/http/call.ts'
import { createCursors } from '../../kit/http/cursor.ts'
import type { CountRequest } from '../../kit/http/rates.ts'
import type { OperatorAccess } from '../../kit/http/route.ts'
import type { Transport } from '../../kit/kube/transport.ts'
import { inBatches } from '../../kit/sys/batches.ts'
import type { ObjectStorageOffer } from '../../integrations/object-storage/configuration.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Store } from '../../kit/kube/store.ts'
import type { Logger } from '../../kit/sys/log.ts'
import type { Random } from '../../kit/sys/random.ts'
import { createCallers } from './callers.ts'
import type { IdentityParts } from './parts.ts'
import { createPasswords } from './passwords.ts'
import type { ProviderConfiguration } from './providers/configuration.ts'
import { createProvider } from './providers/protocol.ts'
import { createAccessReview, createStaffAuthentication } from './staff.ts'
import { createSealing, type SealingKey } from '../../kit/sys/sealing.ts'
import { createTickets } from './tickets.ts'

const KEY_BYTES = 32
const MINUTE_SECONDS = 60
const HOUR_SECONDS = 3600

export interface IdentityOptions {
  readonly db: Database
  /** For the namespaces of new accounts. */
  readonly store: Store
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Origin of the portal: links in mails start with it. */
  readonly publicUrl: string
  /** URL of the portal of the staff; undefined where its address is not known. */
  readonly staffPortalUrl?: string | undefined
  /** False when neither an SMTP server nor a folder for mails is configured. */
  readonly canSendMail: boolean
  /** Keys that seal authenticator secrets, the newest first; none: second factors are not available. */
  readonly sealingKeys?: readonly SealingKey[]
  readonly providers?: readonly ProviderConfiguration[]
  /** Whether read-only support sessions need the customer's consent; default yes. */
  readonly needsReadOnlyConsent?: boolean
  /** Where checkpoints of the audit log are; nowhere when absent. */
  readonly objectStorage?: ObjectStorageOffer
  /** The management cluster, which knows the operators' tokens. */
  readonly kubernetes?: Transport
  /** Reaches providers; for tests that stand in for a provider that cannot run here. */
  readonly providerFetch?: CustomFetch
}

export interface Identity {
  /** Undefined without credentials or with a dead session. Throws 401 for a bad bearer token, 403 for one used from a
   *  wrong address. */
  authenticate(request: RequestFacts): Promise<Caller | undefined>
  /** The same for the operator listener: staff sessions and tokens of the management cluster. */
  authenticateOperator(request: RequestFacts): Promise<Caller | undefined>
  /** Throws 403 unless the management cluster authorizes the operator; staff sessions always pass, because they have
   *  roles. */
  requireAccess(
    operator: Operator,
    access: Pick<OperatorAccess, 'verb' | 'resource'>,
    namespace?: string,
  ): Promise<void>
  /** Counts a request in a window that all replicas share. */
  readonly countRequest: CountRequest
  /** Throws 402 when the account may not create billable resources now. */
  requireStanding(customer: Customer): Promise<void>
  /** What the endpoints of people and credentials are built from. */
  readonly parts: IdentityParts
}

/** Creates the deployment's own secrets if they do not exist yet. */
export async function openIdentity(options: IdentityOptions): Promise<Identity> {
  const { db, clock } = options
  const csrfKey = await deploymentSecret(db, 'csrf', KEY_BYTES, options)
  const csrfTokenOf = (sessionId: string) => createHmac('sha256', csrfKey).update(sessionId).digest('base64url')
  const callers = createCallers({ ...options, csrfTokenOf })
  const parts: IdentityParts = {
    ...options,
    origin: new URL(options.publicUrl).origin,
    staffOrigin: options.staffPortalUrl === undefined ? '' : new URL(options.staffPortalUrl).origin,
    callers,
    csrfTokenOf,
    cursors: createCursors(await deploymentSecret(db, 'cursor', KEY_BYTES, options)),
    passwords: await createPasswords(options.random),
    sealing: createSealing(options.sealingKeys ?? [], options.random),
    tickets: createTickets(await deploymentSecret(db, 'tickets', KEY_BYTES, options), clock),
    providers: (options.providers ?? []).map((provider) =>
      createProvider(provider, {
        clock,
        ...defined({ fetch: options.providerFetch }),
      }),
    ),
    needsReadOnlyConsent: options.needsReadOnlyConsent ?? true,
    recoveryKey: await deploymentSecret(db, 'recovery-codes', KEY_BYTES, options),
  }
  /** Callers that ask for the same account while it is being read share the next read. */
  const standings = inBatches<undefined, StandingFacts>({
    async work(batch, accountId) {
      const reading = readStanding(db, accountId, clock.now())
      for (const { resolve } of batch) resolve(reading)
      await reading.catch(() => {}) // the callers get the error
    },
  })
  return {
    authenticate: callers.authenticate,
    requireAccess: createAccessReview(options),
    authenticateOperator: createStaffAuthentication({ db, clock, csrfTokenOf, kubernetes: options.kubernetes }),
    async countRequest(rule, key) {
      const windows = [
        { requestsMaximum: rule.perMinute, windowSeconds: MINUTE_SECONDS },
        { requestsMaximum: rule.perHour, windowSeconds: HOUR_SECONDS },
      ]
      let waitSeconds = 0
      for (const { requestsMaximum, windowSeconds } of windows) {
        if (requestsMaximum === undefined) continue
        waitSeconds = Math.max(
          waitSeconds,
          await countRequest(
            db,
            `${rule.name} ${windowSeconds} ${key}`,
            { requestsMaximum, windowSeconds },
            clock.now(),
          ),
        )
      }
      return waitSeconds
    },
    async requireStanding(customer) {
      checkStanding(standingOf(await standings(customer.accountId, undefined)))
    },
    parts,
  }
}
