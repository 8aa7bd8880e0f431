/** The API for benchmarks: the real pipeline and handlers on a real PostgreSQL and the embedded Kubernetes API in
 *  process. Accounts have high quotas and many tokens, so that request budgets do not affect the result. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createApp } from '../apiserver/app.ts'
import type { AgentConnections } from '../apiserver/console/consoles.ts'
import { formatToken } from '../kit/sys/token-format.ts'
import { mirrorNode } from '../db/placement/index.ts'
import { createAccount } from '../db/account/index.ts'
import { createToken } from '../db/identity/index.ts'
import type { Database } from '../db/kit/open.ts'
import { ADMIN, openCore } from '../embedded/kubernetes/core/core.ts'
import { openLogStorage } from '../embedded/kubernetes/storage/log.ts'
import { openCaches } from '../kit/kube/caches.ts'
import { openClient } from '../kit/kube/client.ts'
import { installCrds } from '../kit/kube/crd.ts'
import { crds } from '../controllers/kit/crds.ts'
import { Namespace } from '../kit/kube/object.ts'
import type { Store } from '../kit/kube/store.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { silentLog as log } from '../kit/sys/log.ts'
import { openRegistry } from '../kit/sys/metrics.ts'
import { newBase62, newUuid, systemRandom as random } from '../kit/sys/random.ts'
import { accountNamespace } from '../resources/index.ts'
import { SYSTEM_NAMESPACE } from '../resources/kit/labels.ts'
import { Node } from '../resources/node/index.ts'
import { Plan, Region, Template, Zone } from '../resources/catalog/index.ts'
import type { ServerSpec } from '../resources/server/index.ts'
import { createDatabase } from './postgres.ts'
import { TINY_LINUX, TINY_PLAN } from '../test/catalog.ts'
import { setQuotas } from '../test/accounts.ts'

export const ZONE = 'zone-1'
export const PLAN = 'tiny'
export const TEMPLATE = 'tiny-linux'
const TOKENS = 400
const PLENTY = 1_000_000_000

export const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBv7nS1hUS8W4v8Yw0OeTZcJ6pHJXnpmmGBR9XdKLMDu bench'

export interface BenchAccount {
  readonly accountId: string
  readonly namespace: string
  readonly tokens: readonly string[]
}

export type Cloud = Awaited<ReturnType<typeof openCloud>>

/** The spec of a server that must run. */
export const serverSpec = (number: number, changes: Partial<ServerSpec> = {}): ServerSpec => ({
  hostname: `server-${number}`,
  title: '',
  zone: ZONE,
  plan: PLAN,
  template: TEMPLATE,
  labels: {},
  desiredPower: 'running',
  sshKeys: [KEY],
  haPolicy: 'restart',
  migrationPolicy: 'default',
  publicIpv4: false,
  metadataEnabled: true,
  isProtected: false,
  ...changes,
})

export interface CloudOptions {
  /** How many there are; 1 when absent. */
  readonly accounts?: number
  /** Of each account. */
  readonly tokens?: number
  /** Of the hosts; absent without hosts. */
  readonly agents?: AgentConnections
  /** Wraps the store of the API server. */
  readonly counting?: (store: Store) => Store
}

const NO_AGENTS: AgentConnections = {
  async *follow() {
    throw new Error('there are no hosts')
  },
  write: async () => 'unreachable',
}

/** The API of a cloud with these nodes. */
export async function openCloud(nodes: readonly string[], options: CloudOptions = {}) {
  const { accounts: count = 1, tokens = TOKENS, counting = (uncounted: Store) => uncounted } = options
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-bench-'))
  const database = await createDatabase()
  const { db } = database
  const storage = await openLogStorage({ folder, log })
  const core = await openCore({ clock, random, log, storage })
  const storeOf = (fieldManager: string): Store =>
    openClient({ transport: (request) => core.handle(request, ADMIN), fieldManager, clock, random })
  const store = counting(storeOf('svccloud-apiserver'))
  await installCrds(store, crds(), clock)
  await createCatalog(store)
  for (const node of nodes) await createNode(store, db, node)
  const accounts: BenchAccount[] = []
  for (let number = 0; number < count; number++) accounts.push(await createBenchAccount(store, db, number, tokens))
  const [first] = accounts
  if (first === undefined) throw new Error('a cloud needs an account')

  const stop = new AbortController()
  const metrics = openRegistry({ isProcessWide: false })
  const caches = openCaches({ store, clock, random, log, registry: metrics })
  const app = await createApp({
    store,
    caches,
    db,
    clock,
    random,
    log,
    metrics,
    publicUrl: 'http://127.0.0.1:8080',
    canSendMail: true,
    agents: options.agents ?? NO_AGENTS,
  })
  return {
    ...first,
    accounts,
    app,
    caches,
    core,
    store,
    storeOf,
    db,
    async startCaches() {
      caches.start(stop.signal)
      await caches.ready()
    },
    async close() {
      stop.abort()
      await core.close()
      await database.drop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function createCatalog(store: Store): Promise<void> {
  await store.create(Namespace, { metadata: { name: SYSTEM_NAMESPACE }, spec: undefined })
  await store.create(Region, { metadata: { name: 'region-1' }, spec: { displayName: 'Region', country: 'DE' } })
  await store.create(Zone, {
    metadata: { name: ZONE },
    spec: { displayName: 'Zone', region: 'region-1', isClosed: false, capabilities: [] },
  })
  await store.create(Plan, {
    metadata: { name: PLAN },
    spec: { ...TINY_PLAN, memoryMebibytes: 256 },
  })
  await store.create(Template, {
    metadata: { name: TEMPLATE },
    spec: TINY_LINUX,
  })
}

async function createNode(store: Store, db: Database, node: string): Promise<void> {
  await store.create(Node, {
    metadata: { name: node },
    spec: {
      zone: ZONE,
      rack: 'rack-1',
      roles: ['compute'],
      isCordoned: false,
      cpuOvercommit: 64,
      reservedMemoryMebibytes: 0,
    },
  })
  await mirrorNode(db, {
    node,
    zone: ZONE,
    rack: 'rack-1',
    cpuPool: null,
    dedicatedAccountId: null,
    isSchedulable: true,
    total: { cores: PLENTY, memoryMebibytes: PLENTY, storageGibibytes: PLENTY },
  })
}

/** An account whose owner has the tokens, with its namespace. */
async function createBenchAccount(store: Store, db: Database, number: number, count: number): Promise<BenchAccount> {
  const [accountId, userId, now] = [newUuid(random), newUuid(random), clock.now()]
  const tokens = Array.from({ length: count }, () => formatToken('read_write', newBase62(random, 40)))
  await db.transaction().execute(async (tx) => {
    await createAccount(tx, {
      accountId,
      userId,
      creditId: newUuid(random),
      accountName: 'Bench',
      email: `bench-${number}@example.com`,
      name: null,
      passwordHash: null,
      emailVerifiedAt: now,
      now,
    })
    await setQuotas(tx, PLENTY, { accountId })
    for (const [index, token] of tokens.entries())
      await createToken(tx, {
        id: newUuid(random),
        accountId,
        userId,
        name: `token ${index}`,
        token,
        scope: 'read_write',
        allowedCidrs: [],
        createdAt: now,
        expiresAt: null,
      })
  })
  const namespace = accountNamespace(accountId)
  await store.create(Namespace, {
    metadata: { name: namespace, labels: { 'svccloud.dev/account': accountId } },
    spec: undefined,
  })
  return { accountId, namespace, tokens }
}
