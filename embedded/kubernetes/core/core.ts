/** The server without a network: one function from a request and its user to a response. */
import { type CallWebhook, webhookAdmission } from '../admission/webhooks.ts'
import { openAuthorizer } from '../access/rbac.ts'
import { accountOfToken } from '../access/service-accounts.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import type { Random } from '../../../kit/sys/random.ts'
import type { Storage } from '../storage/storage.ts'
import { builtInDefinitions } from './builtin.ts'
import { CRD_KEY, customDefinitions, nameConflict } from './crd.ts'
import type { Answer, Engine } from './engine.ts'
import type { KubeObject, User } from './object.ts'
import { openRegistry, type Registry } from './registry.ts'
import type { Request, Response } from './request.ts'
import { route } from './route.ts'
import { internal, NoSuchPath, Refusal, toStatus } from './status.ts'
import { openStore } from './store.ts'
import { openWatchHub } from './watch-hub.ts'
import { bootstrap } from './bootstrap.ts'
import { startCollector } from './collector.ts'

export interface CoreOptions {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly storage: Storage
  /** Finds the user of a token that does not belong to a service account. */
  readonly authenticate?: (token: string) => User | undefined
  /** Calls validating webhooks; without it they count as unreachable. */
  readonly callWebhook?: CallWebhook
  /** Signs the tokens of service accounts; without it they become invalid when the process exits. */
  readonly tokenKey?: Buffer
}

export interface Core {
  /** Answers every request; never throws. */
  handle(request: Request, user: User): Promise<Response>
  readonly engine: Engine
  /** Ends all watches, then waits until everything is durable. */
  close(): Promise<void>
}

/** The user with all rights. */
export const ADMIN: User = { name: 'system:admin', groups: ['system:masters', 'system:authenticated'] }

const TOKEN_KEY_BYTES = 32
const unreachable: CallWebhook = () => Promise.reject(new Error('this server has no network'))

export async function openCore({
  clock,
  random,
  log,
  storage,
  authenticate,
  tokenKey,
  callWebhook = unreachable,
}: CoreOptions): Promise<Core> {
  const store = await openStore({ storage, clock })
  const registry: Registry = openRegistry(builtInDefinitions((crd) => nameConflict(registry.all(), crd)))
  const learn = (name: string, crd: KubeObject | undefined) => {
    const definitions = crd ? customDefinitions(crd) : []
    for (const { storageKey } of definitions) store.begin(storageKey)
    registry.setCustom(name, definitions)
  }
  for (const [name, crd] of store.table(CRD_KEY).entries()) learn(name, crd)
  store.onApplied((storageKey, { key, object }) => {
    if (storageKey === CRD_KEY) learn(key, object)
  })
  const engine: Engine = {
    store,
    registry,
    watches: openWatchHub(store),
    clock,
    random,
    log,
    admit: webhookAdmission({ store, random, call: callWebhook }),
    authorizer: openAuthorizer(store),
    authenticate: (token) => authenticate?.(token) ?? accountOfToken(engine, token),
    tokenKey: tokenKey ?? random.bytes(TOKEN_KEY_BYTES),
  }
  const collector = startCollector(engine)
  bootstrap(engine)
  await store.durable()
  return {
    engine,
    handle: async (request, user) => respond(await answer(engine, request, user)),
    async close() {
      collector.stop()
      engine.watches.endAll()
      await store.close()
    },
  }
}

async function answer(engine: Engine, request: Request, user: User): Promise<Answer> {
  try {
    return await route(engine, request, user)
  } catch (error) {
    if (error instanceof NoSuchPath)
      return { status: 404, headers: { 'content-type': 'text/plain; charset=utf-8' }, body: '404 page not found\n' }
    if (error instanceof Refusal) return refused(error)
    engine.log.error('request failed', { method: request.method, path: request.path.split('?')[0], error })
    return refused(internal(error instanceof Error ? error.message : 'unknown'))
  }
}

function refused(refusal: Refusal): Answer {
  const seconds = refusal.details?.retryAfterSeconds
  return {
    status: refusal.code,
    headers: {
      'content-type': 'application/json',
      ...(seconds === undefined ? {} : { 'retry-after': String(seconds) }),
    },
    body: JSON.stringify(toStatus(refusal)),
  }
}

function respond({ status, headers, body }: Answer): Response {
  return {
    status,
    headers,
    isStream: typeof body !== 'string',
    async text() {
      if (typeof body === 'string') return body
      let whole = ''
      for await (const line of body) whole += `${line}\n`
      return whole
    },
    async *lines() {
      if (typeof body === 'string') yield* body.split('\n').filter((line) => line !== '')
      else yield* body
    },
  }
}
