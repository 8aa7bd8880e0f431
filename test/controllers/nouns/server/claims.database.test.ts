/** What servers made with kubectl at the same time claim, and what is written of it in their account's log. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { sql } from 'kysely'
import { openSweepRate } from '../../../../controllers/kit/sweep-rate.ts'
import type { Parts } from '../../../../controllers/kit/parts.ts'
import { serverEffects } from '../../../../controllers/nouns/server/effects.ts'
import { serverController } from '../../../../controllers/nouns/server/index.ts'
import type { Observed as ObservedServer } from '../../../../controllers/nouns/server/observed.ts'
import { storageController } from '../../../../controllers/nouns/storage/index.ts'
import type { Observed as ObservedStorage } from '../../../../controllers/nouns/storage/observed.ts'
import { listAudit, verifyAudit } from '../../../../db/audit/index.ts'
import { mirrorNode } from '../../../../db/placement/index.ts'
import { listQuotas } from '../../../../db/account/index.ts'
import { findServersClaims } from '../../../../db/server/claims.ts'
import { openCaches } from '../../../../kit/kube/caches.ts'
import type { KubeObject } from '../../../../kit/kube/object.ts'
import type { EffectReport } from '../../../../kit/reconcile/reconciler.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import { openRegistry } from '../../../../kit/sys/metrics.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Server, type ServerSpec, type ServerStatus } from '../../../../resources/server/index.ts'
import { Storage, type StorageSpec } from '../../../../resources/storage/index.ts'
import { createAccount, setQuotas } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, fastClock, openCloud, ZONE } from '../../cloud.ts'
import { reconcilerOf } from '../../reconciler-of.ts'

const database = useDatabase()
const NAMES = ['one', 'two', 'three', 'four', 'five', 'six']
let cloud: Cloud
let accountId: string

beforeAll(async () => {
  cloud = await openCloud(database.db)
  await mirrorNode(database.db, {
    node: 'n1',
    zone: ZONE,
    rack: 'r',
    cpuPool: null,
    dedicatedAccountId: null,
    isSchedulable: true,
    total: { cores: 100, memoryMebibytes: 100_000, storageGibibytes: 1_000 },
  })
})
afterAll(() => cloud.close())
beforeEach(async () => {
  accountId = await createAccount(database.db)
  await cloud.openAccount(accountId)
})

function partsWith(db: Parts['db']): Parts {
  const { kubectl: store } = cloud
  const caches = openCaches({
    store,
    clock: fastClock,
    random: systemRandom,
    log: silentLog,
    registry: openRegistry({ isProcessWide: false }),
  })
  return {
    store,
    caches,
    db,
    clock: fastClock,
    random: systemRandom,
    log: silentLog,
    sweepRate: openSweepRate(fastClock),
  }
}

const effects = () => serverEffects(partsWith(database.db), new Map())

const create = (name: string) =>
  cloud.kubectl.create(Server, {
    metadata: { namespace: accountNamespace(accountId), name },
    spec: {
      hostname: name,
      zone: ZONE,
      plan: 'tiny',
      template: 'tiny-linux',
      desiredPower: 'stopped',
    } as unknown as ServerSpec, // the API server fills in the defaults
  })
const demandOf = ({ metadata: { name } }: KubeObject, hostname = name) => ({
  accountId,
  serverId: name,
  hostname,
  zone: ZONE,
  cores: 1,
  memoryMebibytes: 192,
  storageGibibytes: 1,
  publicIpv4: false,
})
type ServerObject = KubeObject<ServerSpec, ServerStatus>
const reasonOf = (report: EffectReport | undefined) => report?.conditions?.map(({ reason }) => reason).join()
const transactionsIn = async (table: 'placement' | 'audit_entry') =>
  (
    await sql<{
      count: number
    }>`select count(distinct xmin::text) as count from ${sql.table(table)} where account_id = ${accountId}`.execute(
      database.db,
    )
  ).rows[0]?.count ?? 0
const held = async () =>
  (
    await findServersClaims(
      database.db,
      NAMES.map((serverId) => ({ accountId, serverId })),
    )
  ).flatMap((claims) => claims?.placement.serverId ?? [])

test('servers that are alike are claimed together, each once', async () => {
  const { claim } = effects()
  const servers = await Promise.all(NAMES.map(create))
  const claimAll = async (asking: readonly ServerObject[]) =>
    (await Promise.all(asking.map((server) => claim(demandOf(server), server)))).map(reasonOf)
  expect(await claimAll(servers)).toEqual(NAMES.map(() => 'Claimed'))
  const claims = await findServersClaims(
    database.db,
    NAMES.map((serverId) => ({ accountId, serverId })),
  )
  expect(await transactionsIn('placement')).toBeLessThan(NAMES.length)
  expect(await claimAll([...servers, ...servers])).toEqual([...NAMES, ...NAMES].map(() => 'Claimed'))
  expect(
    await findServersClaims(
      database.db,
      NAMES.map((serverId) => ({ accountId, serverId })),
    ),
  ).toEqual(claims)
  expect(await held()).toEqual(NAMES)
  expect((await listQuotas(database.db, accountId)).find(({ name }) => name === 'servers')?.used).toBe(NAMES.length)
})

test('a server that is refused takes no other with it', async () => {
  const { claim } = effects()
  const servers = await Promise.all(NAMES.map(create))
  const answers = await Promise.all(
    servers.map((server) => claim(demandOf(server, server.metadata.name === 'four' ? 'one' : undefined), server)),
  )
  expect(answers.map(reasonOf).filter((reason) => reason !== 'Claimed')).toEqual(['NameTaken'])
  expect(await held()).toHaveLength(NAMES.length - 1)
  await setQuotas(database.db, NAMES.length, { accountId, name: 'servers' })
  const late = await Promise.all(['seven', 'eight', 'nine'].map(create))
  expect((await Promise.all(late.map((server) => claim(demandOf(server), server)))).map(reasonOf).sort()).toEqual([
    'Claimed',
    'QuotaExceeded',
    'QuotaExceeded',
  ])
})

test('turns at the same time read what their servers hold by one statement', async () => {
  const { claim } = effects()
  const servers = await Promise.all(NAMES.map(create))
  const unclaimed = await create('late')
  await Promise.all(servers.map((server) => claim(demandOf(server), server)))
  let statements = 0
  const counting = database.db.withPlugin({
    transformQuery({ node }) {
      if (JSON.stringify(node).includes('size_change')) statements += 1
      return node
    },
    transformResult: async ({ result }) => result,
  })
  const reconciler = reconcilerOf(serverController, partsWith(counting))
  const observed = await Promise.all(
    [...servers, unclaimed].map(
      async (server) => (await reconciler.observe(server, fastClock.now())) as ObservedServer, // of this noun
    ),
  )
  expect(observed.map(({ claims }) => claims?.placement.serverId)).toEqual([...NAMES, undefined])
  expect(statements).toBe(1)

  const storages = reconcilerOf(storageController, partsWith(counting))
  const boot = (name: string) =>
    cloud.kubectl.create(Storage, {
      metadata: { namespace: accountNamespace(accountId), name },
      spec: { zone: ZONE, sizeGibibytes: 1, isBoot: true, serverId: name } as unknown as StorageSpec, // as above
    })
  const disks = await Promise.all(
    (await Promise.all([...NAMES, 'late'].map(boot))).map(
      async (storage) => (await storages.observe(storage, fastClock.now())) as ObservedStorage, // of this noun
    ),
  )
  expect(disks.map(({ node }) => node)).toEqual([...NAMES.map(() => 'n1'), undefined])
  expect(statements).toBe(2)
})

test('the entries of an account go into its chain together, each once', async () => {
  const { audit } = effects()
  const servers = await Promise.all(NAMES.map(create))
  const requestId = new Map(servers.map(({ metadata: { name } }) => [name, newUuid(systemRandom)]))
  const write = (server: ServerObject) =>
    audit(
      { action: 'server.create', actor: 'user:kubernetes', requestId: requestId.get(server.metadata.name) ?? '' },
      server,
    )
  await Promise.all([...servers, ...servers].map(write))
  await Promise.all(servers.map(write))
  expect(
    (await listAudit(database.db, accountId, { limit: 100 })).map(({ resource_id }) => resource_id).sort(),
  ).toEqual(NAMES.toSorted())
  expect((await verifyAudit(database.db, accountId, fastClock)).status).toBe('verified')
})
