/** The API for benchmarks: the real pipeline and handlers on a real PostgreSQL and the embedded Kubernetes API in
 *  process. One account
 *  with room for everything and with many tokens, so that no request budget is what gets measured. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createApp } from '../apiserver/app.ts'
import { formatToken } from '../apiserver/identity/token-format.ts'
import { openChain } from '../db/audit/index.ts'
import { mirrorNode } from '../db/placement/index.ts'
import { openQuotas } from '../db/account/index.ts'
import { createToken } from '../db/identity/index.ts'
import { ADMIN, openCore } from '../embedded/kubernetes/core/core.ts'
import { openLogStorage } from '../embedded/kubernetes/storage/log.ts'
import { openCaches } from '../kit/kube/caches.ts'
import { openClient } from '../kit/kube/client.ts'
import { installCrds, readCrds } from '../kit/kube/crd.ts'
import { Namespace } from '../kit/kube/object.ts'
import type { Store } from '../kit/kube/store.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { silentLog as log } from '../kit/sys/log.ts'
import { openRegistry } from '../kit/sys/metrics.ts'
import { newBase62, newUuid, systemRandom as random } from '../kit/sys/random.ts'
import { accountNamespace } from '../resources/index.ts'
import { Node } from '../resources/node/index.ts'
import { Plan, Region, Template, Zone } from '../resources/catalog/index.ts'
import { startPostgres } from '../test/database.ts'

export const ZONE = 'zone-1'
export const PLAN = 'tiny'
export const TEMPLATE = 'tiny-linux'
const TOKENS = 400
const PLENTY = 1_000_000_000

export async function openCloud(nodes: readonly string[]) {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-bench-'))
  const postgres = await startPostgres()
  const { db } = await postgres.createDatabase()
  const storage = await openLogStorage({ folder, log })
  const core = await openCore({ clock, random, log, storage })
  const storeOf = (fieldManager: string): Store =>
    openClient({ transport: (request) => core.handle(request, ADMIN), fieldManager, clock, random })
  const store = storeOf('svccloud-apiserver')
  await installCrds(store, await readCrds('crds'), clock)
  await store.create(Region, { metadata: { name: 'region-1' }, spec: { displayName: 'Region', country: 'DE' } })
  await store.create(Zone, {
    metadata: { name: ZONE },
    spec: { displayName: 'Zone', region: 'region-1', isClosed: false, capabilities: [] },
  })
  await store.create(Plan, {
    metadata: { name: PLAN },
    spec: { family: 'starter', cores: 1, memoryMebibytes: 256, storageGibibytes: 1, priceMonthlyCents: 100 },
  })
  await store.create(Template, {
    metadata: { name: TEMPLATE },
    spec: {
      title: 'Tiny',
      osFamily: 'linux',
      osVersion: '1',
      architecture: 'x86_64',
      defaultUser: 'root',
      minStorageGibibytes: 1,
      minMemoryMebibytes: 128,
      zones: [],
      image: { built: 'tiny-linux' },
      isHidden: false,
    },
  })
  for (const node of nodes) {
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

  const accountId = newUuid(random)
  const tokens = Array.from({ length: TOKENS }, () => formatToken('read_write', newBase62(random, 40)))
  const [userId, now] = [newUuid(random), clock.now()]
  await db.transaction().execute(async (tx) => {
    await tx.insertInto('account').values({ id: accountId, name: 'Bench', created_at: now }).execute()
    await tx
      .insertInto('app_user')
      .values({
        id: userId,
        email: 'bench@example.com',
        name: null,
        password_hash: null,
        email_verified_at: now,
        own_account_id: accountId,
        active_account_id: accountId,
        created_at: now,
      })
      .execute()
    await tx
      .insertInto('membership')
      .values({ account_id: accountId, user_id: userId, role: 'owner', joined_at: now })
      .execute()
    await tx
      .insertInto('credit')
      .values({
        id: newUuid(random),
        account_id: accountId,
        label: 'Bench',
        source: 'sign_up',
        amount_cents: 1_000_000,
        created_at: now,
      })
      .execute()
    await openChain(tx, accountId)
    await openQuotas(tx, accountId)
    await tx.updateTable('account_quota').set({ limit: PLENTY }).where('account_id', '=', accountId).execute()
    for (const [index, token] of tokens.entries()) {
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
    }
  })
  const namespace = accountNamespace(accountId)
  await store.create(Namespace, {
    metadata: { name: namespace, labels: { 'svccloud.dev/account': accountId } },
    spec: undefined,
  })

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
    agents: {
      async *follow() {
        throw new Error('there are no hosts')
      },
      write: async () => 'unreachable',
    },
  })
  const startCaches = async () => {
    caches.start(stop.signal)
    await caches.ready()
  }
  return {
    app,
    core,
    store,
    storeOf,
    db,
    accountId,
    namespace,
    tokens,
    startCaches,
    async close() {
      stop.abort()
      await core.close()
      await postgres.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBv7nS1hUS8W4v8Yw0OeTZcJ6pHJXnpmmGBR9XdKLMDu bench'
