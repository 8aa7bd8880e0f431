/** A PostgreSQL that may be of yesterday gives nothing unique before it is known what objects use. */
import { type RawBuilder, sql } from 'kysely'
import { beforeAll, expect, test } from 'vitest'
import { look } from '../../apiserver/look.ts'
import type { Parts } from '../../apiserver/kit/parts.ts'
import { claimMacAddress } from '../../db/claim/index.ts'
import { claimFloatingIp, releaseFloatingIp } from '../../db/floating-ip/index.ts'
import { wasLookedAt } from '../../db/look/index.ts'
import { addRoom, claimPlacement, findCandidate, mirrorNode } from '../../db/placement/index.ts'
import { claimAddresses, mirrorPool } from '../../db/public-pool/index.ts'
import { Unavailable } from '../../domain/problem.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { type Logger, silentLog } from '../../kit/sys/log.ts'
import { newUuid, systemRandom } from '../../kit/sys/random.ts'
import { accountNamespace } from '../../resources/index.ts'
import { NODE_REPORT_NAME, nodeNamespace } from '../../resources/instance/index.ts'
import { createAccount } from '../accounts.ts'
import { useDatabase } from '../database.ts'

const db = useDatabase()
const ZONE = 'eu-1a'
/** What Kubernetes has, by kind; of an account whose claims PostgreSQL has forgotten. */
const forgotten: Record<string, readonly object[]> = {}
/** The same of what nodes have. */
const onNodes: Record<string, readonly object[]> = {}
let accountId: string

beforeAll(async () => {
  accountId = await createAccount(db.db)
  const metadata = { name: 'old', uid: 'of the old', namespace: accountNamespace(newUuid(systemRandom)) }
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
const caches = {
  of: ({ kind }: { kind: string }) => ({
    list: () => forgotten[kind] ?? [],
    get: (key: Named) => (forgotten[kind] ?? []).find((object) => isNamed(object as { metadata: Named }, key)),
  }),
}
type Named = { readonly namespace: string; readonly name: string }
const isNamed = ({ metadata }: { readonly metadata: Named }, { namespace, name }: Named): boolean =>
  metadata.namespace === namespace && metadata.name === name
const store = { list: async ({ kind }: { kind: string }) => ({ items: onNodes[kind] ?? [] }) }
const lookNow = (log: Logger = silentLog) =>
  look({
    db: db.db,
    clock: systemClock,
    log,
    store: store as unknown as Parts['store'],
    caches: caches as unknown as Parts['caches'],
  })

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

test('what objects use is given to nobody, until they are deleted', async () => {
  expect([await newFloatingIp(), await newServer()]).toEqual(['198.51.100.3', '198.51.100.13'])
  const held = async () => (await db.db.selectFrom('host_use').select('holder').execute()).map(({ holder }) => holder)
  expect((await held()).toSorted()).toEqual([
    'floating_ip/old',
    'load_balancer/old',
    'router/old',
    'server/old',
    'server/old',
  ])
  const { account_id, uid } = await db.db.selectFrom('host_use').select(['account_id', 'uid']).executeTakeFirstOrThrow()
  expect(uid).toBe('of the old')
  await db.db.updateTable('host_use').set({ uid: 'of one that had its name before' }).execute()
  await sql`update look set database = 'another start'`.execute(db.db)
  await lookNow()
  expect(await db.db.selectFrom('host_use').select('uid').distinct().execute()).toEqual([{ uid }])
  await transaction((tx) => releaseFloatingIp(tx, { accountId: account_id, floatingIpId: 'old' }))
  expect(await held()).not.toContain('floating_ip/old')
})

test('what guests use is given to nobody, whatever their servers report', async () => {
  const [zone, gateway] = ['eu-1b', 'fe80::1']
  for (const [id, use, cidr] of [
    ['p', 'server_ipv6_prefix', '2001:db8:7::/61'],
    ['q', 'server_ipv4', '203.0.113.0/29'],
  ] as const) {
    const family = use === 'server_ipv4' ? 'ipv4' : 'ipv6'
    await transaction((tx) => mirrorPool(tx, { id, zone, family, cidr, use, state: 'active' }))
  }
  const namespace = accountNamespace(newUuid(systemRandom))
  // It has replaced two prefixes, and reports the newest.
  const renumbered = { namespace, name: 'renumbered', uid: 'of the server' }
  forgotten['Server'] = [
    { metadata: renumbered, spec: { zone, hostname: 'web' }, status: { publicIpv6: '2001:db8:7:2::1' } },
  ]
  const size = { cores: 0, memoryMebibytes: 0, disks: [] }
  const guestOf = (server: object, ofPublic: object) => ({
    metadata: { namespace: nodeNamespace('n2'), name: newUuid(systemRandom) },
    spec: {
      ...size,
      server,
      interfaces: [
        { kind: 'public', macAddress: '52:54:00:00:00:01', ...ofPublic },
        { kind: 'private', macAddress: '52:54:00:00:00:02', ipv4: { address: '203.0.113.3' } },
      ],
    },
  })
  onNodes['Instance'] = [
    guestOf(
      { ...renumbered, uid: 'of a server before' },
      {
        ipv6: { address: '2001:db8:7:2::1', prefix: 64, gateway },
        routedPrefixes: ['2001:db8:7:2::/64', '2001:db8:7::/64', '2001:db8:7:1::/64'],
      },
    ),
    // It is being created: its server reports nothing yet.
    guestOf({ namespace, name: 'new', uid: 'of the new' }, { ipv4: { address: '203.0.113.2', prefix: 29, gateway } }),
  ]
  await sql`update look set database = 'another start'`.execute(db.db)
  await lookNow()
  const holding = { accountId, holder: `server/${newUuid(systemRandom)}` } as const
  const given = await transaction((tx) => claimAddresses(tx, holding, { zone, publicIpv4: true }))
  expect(given.map(({ address }) => address)).toEqual(['203.0.113.3', '2001:db8:7:3::1'])
  const kept = await db.db.selectFrom('host_use').select(['value', 'uid']).where('kind', '<>', 'hostname').execute()
  expect(kept.filter(({ value }) => /^2001:db8:7:|^203|^52/.test(value)).toSorted(byValue)).toEqual([
    { value: '2001:db8:7:1::1', uid: 'of the server' },
    { value: '2001:db8:7:2::1', uid: 'of the server' },
    { value: '2001:db8:7::1', uid: 'of the server' },
    { value: '203.0.113.2', uid: 'of the new' },
    { value: '52:54:00:00:00:01', uid: 'of the server' },
    { value: '52:54:00:00:00:02', uid: 'of the server' },
  ])
  onNodes['Instance'] = []
})
const byValue = (one: { readonly value: string }, other: { readonly value: string }): number =>
  one.value < other.value ? -1 : 1

test('the room of guests without claims is not given again', async () => {
  await mirrorNode(db.db, {
    node: 'n1',
    zone: ZONE,
    rack: 'r',
    cpuPool: null,
    dedicatedAccountId: null,
    isSchedulable: true,
    total: { cores: 4, memoryMebibytes: 4_096, storageGibibytes: 100 },
  })
  const demandOf = (serverId: string) => ({
    accountId,
    serverId,
    zone: ZONE,
    cores: 1,
    memoryMebibytes: 512,
    storageGibibytes: 10,
  })
  const place = (serverId: string) => transaction((tx) => claimPlacement(tx, demandOf(serverId), new Date()))
  await place('known')
  const server = (name: string) => ({ namespace: accountNamespace(accountId), name, uid: name })
  const size = { cores: 1, memoryMebibytes: 512 }
  const node = { namespace: nodeNamespace('n1') }
  Object.assign(onNodes, {
    Instance: [
      {
        metadata: { ...node, name: 'a' },
        spec: { ...size, server: server('known'), disks: [{ volume: 'a' }], interfaces: [] },
      },
      {
        metadata: { ...node, name: 'b' },
        spec: { ...size, server: server('lost'), disks: [{ volume: 'b' }], interfaces: [] },
      },
      {
        metadata: { ...node, name: 'c', deletionTimestamp: 'now' },
        spec: { ...size, server: server('leaving'), disks: [], interfaces: [] },
      },
    ],
    Volume: ['a', 'b'].map((name) => ({ metadata: { ...node, name }, spec: { sizeGibibytes: 10 } })),
    NodeReport: [
      {
        metadata: { ...node, name: NODE_REPORT_NAME },
        spec: {},
        status: { unnamed: [{ name: 'd', ...size, storageGibibytes: 20 }] },
      },
    ],
  })
  await sql`update look set database = 'another start'`.execute(db.db)
  await expect(place('early')).rejects.toThrow(Unavailable)
  await lookNow()
  expect(await findCandidate(db.db, 'n1')).toMatchObject({
    used: { cores: 3, memoryMebibytes: 1_536, storageGibibytes: 40 },
    forgotten: { cores: 2, memoryMebibytes: 1_024, storageGibibytes: 30 },
  })
  await place('new')
  await expect(place('another')).rejects.toMatchObject({ members: { reason: 'no_capacity' } })
  await expect(transaction((tx) => addRoom(tx, 'n1', demandOf('grows')))).resolves.toBe(false)
})

test('objects about to be deleted that have released their claims are not reported', async () => {
  const errors: unknown[] = []
  const log = { ...silentLog, error: (_message: string, fields?: object) => void errors.push(fields) }
  const balancer = (name: string, publicIpv4: string, more: object = {}, account = accountId) => ({
    metadata: { name, namespace: accountNamespace(account), ...more },
    spec: { networkId: 'n' },
    status: { publicIpv4 },
  })
  const now = new Date().toISOString()
  forgotten['LoadBalancer'] = [
    balancer('stays', '198.51.100.14'),
    balancer('leaves', '198.51.100.15', { deletionTimestamp: now }),
    // another account deletes one of the same name
    balancer('stays', '198.51.100.16', { deletionTimestamp: now }, newUuid(systemRandom)),
  ]
  await sql`update look set database = 'another start'`.execute(db.db)
  await lookNow(log)
  expect(errors).toEqual([{ found: 1 }])
  forgotten['LoadBalancer'] = [balancer('leaves-too', '198.51.100.11', { deletionTimestamp: now })]
  await sql`update look set database = 'another start'`.execute(db.db)
  await lookNow(log)
  expect(errors).toHaveLength(1)
})
