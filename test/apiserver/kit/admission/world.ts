/** The webhook over HTTPS, which the embedded Kubernetes API asks about what people do there. */
import { afterAll, beforeAll, beforeEach } from 'vitest'
import { startAdmission } from '../../../../apiserver/kit/admission/start.ts'
import { KINDS } from '../../../../apiserver/nouns.ts'
import { listAudit } from '../../../../db/audit/index.ts'
import { mirrorNode } from '../../../../db/placement/index.ts'
import { listKubernetesRequests } from '../../../../db/request/index.ts'
import { type Core, openCore } from '../../../../embedded/kubernetes/core/core.ts'
import { webhookCaller } from '../../../../embedded/kubernetes/server/call-webhook.ts'
import { memoryStorage } from '../../../../embedded/kubernetes/storage/memory.ts'
import { type Caches, openCaches } from '../../../../kit/kube/caches.ts'
import { openClient } from '../../../../kit/kube/client.ts'
import { installCrds } from '../../../../kit/kube/crd.ts'
import { crds } from '../../../../controllers/kit/crds.ts'
import { type KubeObject, Namespace } from '../../../../kit/kube/object.ts'
import { ApiError, type Store } from '../../../../kit/kube/store.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import { openRegistry } from '../../../../kit/sys/metrics.ts'
import { newUuid, systemRandom as random } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Plan, Region, Template, Zone } from '../../../../resources/catalog/index.ts'
import { finalizerOf } from '../../../../resources/kit/define.ts'
import { Server, type ServerSpec, type ServerState, type ServerStatus } from '../../../../resources/server/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { progressOf } from '../../../progress.ts'
import { PUBLIC_KEY } from '../../cloud.ts'
import { TINY_LINUX, TINY_PLAN } from '../../../catalog.ts'

export const TOKEN = 'the-token-of-the-kubernetes-api'
export const PLATFORM = 'system:svccloud:apiserver'
export const AT = '2026-01-01T00:00:00Z'

/** What every file of tests has; read its members inside tests and hooks only. Each test gets a new account. */
export function useWorld() {
  const database = useDatabase()
  const world = new World(() => database.db)
  beforeAll(() => world.open())
  afterAll(() => world.close())
  beforeEach(() => world.renewAccount())
  return world
}

export const bare = {
  hostname: 'web',
  zone: 'z1',
  plan: 'tiny',
  template: 'tiny-linux',
  sshKeys: [PUBLIC_KEY],
} as unknown as ServerSpec // the API server fills in the defaults

class World {
  readonly #db: () => ReturnType<typeof useDatabase>['db']
  readonly #stop = new AbortController()
  #opened: { readonly core: Core; readonly caches: Caches; readonly listener: Listener } | undefined
  #accountId = ''

  constructor(db: () => ReturnType<typeof useDatabase>['db']) {
    this.#db = db
  }

  get db() {
    return this.#db()
  }
  get core(): Core {
    return this.#parts.core
  }
  get caches(): Caches {
    return this.#parts.caches
  }
  get listener(): Listener {
    return this.#parts.listener
  }
  get #parts() {
    if (this.#opened === undefined) throw new Error('the world is there while tests run, not before')
    return this.#opened
  }
  /** The account of the test, and its namespace. */
  get accountId(): string {
    return this.#accountId
  }
  get namespace(): string {
    return accountNamespace(this.#accountId)
  }
  get platform(): Store {
    return storeOf(this.core, PLATFORM)
  }
  /** A person with every right of Kubernetes. */
  get grace(): Store {
    return storeOf(this.core, 'grace@example.com')
  }

  async open(): Promise<void> {
    const core = await openCore({ clock, random, log, storage: memoryStorage(), callWebhook: webhookCaller(TOKEN) })
    const platform = storeOf(core, PLATFORM)
    await installCrds(platform, crds(), clock)
    await platform.create(Region, { metadata: { name: 'r1' }, spec: { displayName: 'One', country: 'DE' } })
    for (const name of ['z1', 'full'])
      await platform.create(Zone, {
        metadata: { name },
        spec: { displayName: name, region: 'r1', isClosed: false, capabilities: [] },
      })
    await platform.create(Plan, { metadata: { name: 'tiny' }, spec: TINY_PLAN })
    await platform.create(Template, { metadata: { name: 'tiny-linux' }, spec: TINY_LINUX })
    await mirrorNode(this.db, {
      node: 'n1',
      zone: 'z1',
      rack: 'r',
      cpuPool: null,
      dedicatedAccountId: null,
      isSchedulable: true,
      total: { cores: 64, memoryMebibytes: 65_536, storageGibibytes: 1_024 },
    })
    const caches = openedCaches(platform)
    const admission = this.#start(platform, caches)
    caches.start(this.#stop.signal)
    this.#opened = { core, caches, listener: await admission }
    await caches.ready()
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#opened?.listener.stop()
    await this.#opened?.core.close()
  }

  async renewAccount(): Promise<void> {
    this.#accountId = await this.openAccount({ isVerified: true, hasCredit: true })
  }

  /** Another listener, which is registered instead of the first one. */
  startAnother(): Promise<Listener> {
    return this.#start(this.platform, openedCaches(this.platform))
  }

  #start(store: Store, caches: Caches): Promise<Listener> {
    return startAdmission({
      store,
      caches,
      db: this.db,
      clock,
      random,
      log,
      platformUsers: [PLATFORM],
      kinds: KINDS,
      host: '127.0.0.1',
      port: 0,
      callers: { token: TOKEN },
      certificateFiles: undefined,
      isRegistering: true,
      configurationName: 'svccloud',
    })
  }

  /** Answers its id. */
  async openAccount({
    isVerified,
    hasCredit,
  }: {
    readonly isVerified: boolean
    readonly hasCredit: boolean
  }): Promise<string> {
    const { db } = this
    const id = await createAccount(db)
    const userId = newUuid(random)
    await db
      .insertInto('app_user')
      .values({
        id: userId,
        email: `${id}@example.com`,
        name: null,
        password_hash: null,
        email_verified_at: isVerified ? new Date(AT) : null,
        own_account_id: id,
        active_account_id: id,
        created_at: new Date(AT),
      })
      .execute()
    await db
      .insertInto('membership')
      .values({ account_id: id, user_id: userId, role: 'owner', joined_at: new Date(AT) })
      .execute()
    if (hasCredit)
      await db
        .insertInto('credit')
        .values({
          id: newUuid(random),
          account_id: id,
          label: 'Welcome',
          source: 'staff',
          amount_cents: 1_000,
          spent_cents: 0,
          created_at: new Date(AT),
        })
        .execute()
    await this.platform.create(Namespace, { metadata: { name: accountNamespace(id) }, spec: {} })
    return id
  }

  create(
    spec: Partial<ServerSpec> = {},
    by: Store = this.grace,
    namespace = this.namespace,
    metadata: Partial<KubeObject['metadata']> = {},
  ) {
    return by.create(Server, { metadata: { ...metadata, name: 'web', namespace }, spec: { ...bare, ...spec } })
  }
  edit(patch: object, by: Store = this.grace, subresource?: 'status') {
    return by.patch(Server, { namespace: this.namespace, name: 'web' }, patch, subresource)
  }
  remove(by: Store = this.grace) {
    return by.delete(Server, { namespace: this.namespace, name: 'web' })
  }

  /** A server that the platform made, in the state. */
  async standing(state: ServerState, spec: Partial<ServerSpec> = {}): Promise<KubeObject<ServerSpec, ServerStatus>> {
    const id = newUuid(random)
    const operation = {
      id,
      kind: 'server.start',
      requestedAt: AT,
      deadlineAt: AT,
      actor: 'user:1',
      requestId: 'r',
    } as const
    const finalizers = [finalizerOf(Server)]
    await this.create({ ...spec, operation }, this.platform, this.namespace, { finalizers })
    return this.edit({ status: { state, operation: progressOf(operation) } }, this.platform, 'status')
  }

  /** Who asked, and for what, as the controller will find it. */
  async asked(server: KubeObject) {
    return (await listKubernetesRequests(this.db, server.metadata.uid ?? '', { after: 0, upTo: 99 })).map(
      ({ action, username, generation, changes }) => ({ action, username, generation, changes }),
    )
  }

  async audited(): Promise<readonly string[]> {
    return (await listAudit(this.db, this.accountId, { limit: 100 })).map(
      ({ action, actor_email, outcome, detail }) =>
        `${action} ${actor_email} ${outcome} ${detail['reason'] ?? detail['status'] ?? ''}`,
    )
  }
}
type Listener = Awaited<ReturnType<typeof startAdmission>>

const storeOf = (core: Core, name: string): Store =>
  openClient({
    transport: (call) => core.handle(call, { name, groups: ['system:masters'] }),
    fieldManager: 'tests',
    clock,
    random,
  })

const openedCaches = (store: Store): Caches =>
  openCaches({ store, clock, random, log, registry: openRegistry({ isProcessWide: false }) })

/** The refusal in words: its status and its message. */
export async function refusalOf(write: Promise<unknown>): Promise<string> {
  const answer = await write.catch((error: unknown) => error)
  if (!(answer instanceof ApiError)) throw new Error(`it was not refused: ${JSON.stringify(answer)}`)
  const { code, message } = answer
  return `${code} ${message.replace('admission webhook "admission.svccloud.dev" denied the request: ', '')}`
}
