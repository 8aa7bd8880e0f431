/** A PostgreSQL that may be of yesterday gives nothing unique before it is known what objects use. */
import { type RawBuilder, sql } from 'kysely'
import { beforeAll, expect, test } from 'vitest'
import { look } from '../../apiserver/look.ts'
import type { Parts } from '../../apiserver/parts.ts'
import { claimMacAddress } from '../../db/claim/index.ts'
import { claimFloatingIp, releaseFloatingIp } from '../../db/floating-ip/index.ts'
import { wasLookedAt } from '../../db/look/index.ts'
import { claimAddresses, mirrorPool } from '../../db/public-pool/index.ts'
import { Unavailable } from '../../domain/problem.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { silentLog } from '../../kit/sys/log.ts'
import { newUuid, systemRandom } from '../../kit/sys/random.ts'
import { accountNamespace } from '../../resources/index.ts'
import { createAccount } from '../accounts.ts'
import { useDatabase } from '../database.ts'

const db = useDatabase()
const ZONE = 'eu-1a'
/** What Kubernetes has, by kind; of an account whose claims PostgreSQL has forgotten. */
const forgotten: Record<string, readonly object[]> = {}
let accountId: string

beforeAll(async () => {
  accountId = await createAccount(db.db)
  const metadata = { name: 'old', namespace: accountNamespace(newUuid(systemRandom)) }
  const [floating, servers] = ['198.51.100.0/29', '198.51.100.8/29']
  await transaction((tx) =>
    mirrorPool(tx, { id: 'f', zone: ZONE, family: 'ipv4', cidr: floating, use: 'floating_ipv4', state: 'active' }),
  )
  await transaction((tx) =>
    mirrorPool(tx, { id: 's', zone: ZONE, family: 'ipv4', cidr: servers, use: 'server_ipv4', state: 'active' }),
  )
  Object.assign(forgotten, {
    FloatingIP: [{ metadata, spec: { zone: ZONE }, status: { address: '198.51.100.2' } }],
    Router: [{ metadata, spec: {}, status: { publicIpv4: '198.51.100.10' } }],
    LoadBalancer: [{ metadata, spec: { networkId: 'n' }, status: { publicIpv4: '198.51.100.11' } }],
    Server: [{ metadata, spec: { zone: ZONE, hostname: 'web' }, status: { publicIpv4: '198.51.100.12' } }],
  })
})

type Transaction = Parameters<Parameters<ReturnType<(typeof db)['db']['transaction']>['execute']>[0]>[0]
const transaction = <T>(work: (tx: Transaction) => Promise<T>): Promise<T> => db.db.transaction().execute(work)
const newFloatingIp = async (): Promise<string> => {
  const demand = { accountId, floatingIpId: newUuid(systemRandom), zone: ZONE }
  return (await transaction((tx) => claimFloatingIp(tx, demand))).address
}
const newServer = async (): Promise<string | undefined> => {
  const holding = { accountId, holder: `server/${newUuid(systemRandom)}` } as const
  return (await transaction((tx) => claimAddresses(tx, holding, { zone: ZONE, publicIpv4: true })))[0]?.address
}
const newName = (): Promise<unknown> =>
  transaction((tx) =>
    claimMacAddress(tx, { accountId, holder: 'server/new' }, { now: new Date(), random: systemRandom }),
  )
const caches = { of: ({ kind }: { kind: string }) => ({ list: () => forgotten[kind] ?? [] }) }
const lookNow = () =>
  look({ db: db.db, caches: caches as unknown as Parts['caches'], clock: systemClock, log: silentLog })

test.each<[string, RawBuilder<unknown>]>([
  ['another start', sql`update look set database = 'another start'`],
  ['a dump that was loaded into the running one', sql`update look set writer = '3'`],
])('after %s nothing unique is given before a look', async (_why, restore) => {
  expect(await wasLookedAt(db.db)).toBe(true)
  await restore.execute(db.db)
  for (const claim of [newFloatingIp, newServer, newName]) await expect(claim()).rejects.toThrow(Unavailable)
  await lookNow()
  expect(await wasLookedAt(db.db)).toBe(true)
})

test('what objects use is given to nobody, until they have gone', async () => {
  expect([await newFloatingIp(), await newServer()]).toEqual(['198.51.100.3', '198.51.100.13'])
  const held = async () => (await db.db.selectFrom('host_use').select('holder').execute()).map(({ holder }) => holder)
  expect((await held()).toSorted()).toEqual([
    'floating_ip/old',
    'load_balancer/old',
    'router/old',
    'server/old',
    'server/old',
  ])
  const { account_id } = await db.db.selectFrom('host_use').select('account_id').executeTakeFirstOrThrow()
  await transaction((tx) => releaseFloatingIp(tx, { accountId: account_id, floatingIpId: 'old' }))
  expect(await held()).not.toContain('floating_ip/old')
})
