/** A PostgreSQL of yesterday: servers whose claims it no longer has keep running, report it, and what they use is given
 *  to nobody else. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { KubeObject } from '../../../../kit/kube/object.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Instance, nodeNamespace, Volume } from '../../../../resources/instance/index.ts'
import { PublicPool } from '../../../../resources/public-pool/index.ts'
import { factsOf } from '../../../../resources/server/routes.ts'
import { Server, type ServerSpec, type ServerStatus } from '../../../../resources/server/index.ts'
import { Storage } from '../../../../resources/storage/index.ts'
import { requireStoppable } from '../../../../domain/server/rules.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, NODE, openCloud, ZONE } from '../../cloud.ts'
import { until } from '../../until.ts'

const database = useDatabase()
/** Its agent comes later. */
const OTHER = 'n2'
let cloud: Cloud
let accountId: string
let namespace: string
const spec = { hostname: 'web', zone: ZONE, plan: 'tiny', template: 'tiny-linux', publicIpv4: true } as ServerSpec

beforeAll(async () => {
  cloud = await openCloud(database.db, undefined, [NODE, OTHER])
  cloud.startAgent()
  cloud.startControllers()
  accountId = await createAccount(database.db)
  namespace = accountNamespace(accountId)
  await cloud.openAccount(accountId)
  await cloud.kubectl.create(PublicPool, {
    metadata: { name: 'public' },
    spec: PublicPool.spec.parse({
      zone: ZONE,
      family: 'ipv4',
      use: 'server_ipv4',
      cidr: '198.51.100.0/29',
      gateway: '198.51.100.1',
    }),
  })
})
afterAll(() => cloud.close())

type ServerObject = KubeObject<ServerSpec, ServerStatus>
const create = (name: string, hostname = name) =>
  cloud.kubectl.create(Server, { metadata: { name, namespace }, spec: { ...spec, hostname } })
const read = (name: string) => cloud.kubectl.get(Server, { namespace, name })
const claimed = ({ status }: ServerObject) => status?.conditions?.find(({ type }) => type === 'Claimed')
const seen = (what: string, name: string, is: (server: ServerObject) => boolean) =>
  until(
    what,
    () => read(name),
    (server) => server !== undefined && is(server),
  ) as Promise<ServerObject>
const isIdle = ({ spec: { operation }, status }: ServerObject) =>
  operation?.id === status?.operation?.id && status?.operation?.finishedAt !== undefined
const started = (name: string) => seen('started', name, (one) => one.status?.state === 'started' && isIdle(one))

test('it runs on as an error, obeys its owner, and shares nothing with others', async () => {
  const nextIndex = async () =>
    (await database.db.selectFrom('public_pool').select('next_index').executeTakeFirstOrThrow()).next_index
  await create('web')
  const before = await started('web')
  const { publicIpv4, macAddress } = before.status ?? {}
  expect(publicIpv4).toMatch(/^198\.51\.100\./)

  // Yesterday nothing of it was there.
  for (const table of ['placement', 'address_claim', 'quota_holding', 'public_address'] as const)
    await database.db.deleteFrom(table).execute()
  await database.db
    .updateTable('public_pool')
    .set({ next_index: (await nextIndex()) - 1 })
    .execute()
  await cloud.kubectl.patch(Server, { namespace, name: 'web' }, { metadata: { labels: { look: 'again' } } })
  const lost = await seen('an error', 'web', (server) => server.status?.state === 'error')
  expect(claimed(lost)).toMatchObject({ status: 'False', reason: 'Forgotten' })
  expect([lost.status?.publicIpv4, cloud.host.running().length]).toEqual([publicIpv4, 1])
  await cloud.kubectl.patch(Storage, { namespace, name: 'web' }, { metadata: { labels: { look: 'again' } } })
  await until(
    'the storage to say it',
    () => cloud.kubectl.get(Storage, { namespace, name: 'web' }),
    (storage) => storage?.status?.conditions?.some(({ reason }) => reason === 'Forgotten') === true,
  )
  expect((await cloud.kubectl.get(Storage, { namespace, name: 'web' }))?.status?.state).toBe('online')

  // What it uses is not given again.
  await create('other')
  expect((await started('other')).status?.publicIpv4).not.toBe(publicIpv4)
  await create('same', 'web')
  await seen('a refusal', 'same', (server) => claimed(server)?.reason === 'NameTaken')
  expect(await database.db.selectFrom('host_use').select('value').execute()).toEqual(
    expect.arrayContaining([{ value: publicIpv4 }, { value: macAddress }, { value: 'web' }]),
  )

  const facts = factsOf({ ...lost, name: 'web', isDeleting: false } as unknown as Parameters<typeof factsOf>[0])
  expect(() => requireStoppable(facts)).not.toThrow()
  const power = async (desiredPower: 'running' | 'stopped', guests: number) => {
    await cloud.kubectl.patch(Server, { namespace, name: 'web' }, { spec: { desiredPower } })
    const kind = desiredPower === 'running' ? 'server.start' : 'server.stop'
    const ended = await seen(kind, 'web', (one) => isIdle(one) && one.status?.operation?.kind === kind)
    expect([ended.status?.operation?.status, cloud.host.running().length]).toEqual(['succeeded', guests])
  }
  await power('stopped', 1)
  await seen('the error again', 'web', (one) => one.status?.state === 'error')
  await power('running', 2)
  // It runs as it was: nothing is claimed for it again.
  expect((await seen('the error', 'web', (one) => one.status?.state === 'error')).status?.publicIpv4).toBe(publicIpv4)
  expect(await database.db.selectFrom('placement').select('server_id').execute()).not.toContainEqual({
    server_id: 'web',
  })
  await cloud.kubectl.delete(Server, { namespace, name: 'web' })
  await until(
    'gone',
    () => read('web'),
    (server) => server === undefined,
  )
  const on = { namespace: nodeNamespace(NODE) }
  const left = async () => [
    (await cloud.kubectl.list(Instance, on)).items.length,
    (await cloud.kubectl.list(Volume, on)).items.length,
  ]
  expect(await left()).toEqual([1, 1])
  // And then it is free.
  expect(await database.db.selectFrom('host_use').selectAll().execute()).toEqual([])
})

test('another change of it ends at once, and says why', async () => {
  await create('small')
  await started('small')
  await database.db.deleteFrom('placement').where('server_id', '=', 'small').execute()
  await cloud.kubectl.patch(Server, { namespace, name: 'small' }, { spec: { metadataEnabled: false } })
  const ended = await seen(
    'the end',
    'small',
    (one) => isIdle(one) && one.status?.operation?.kind === 'server.metadata',
  )
  expect(ended.status?.operation).toMatchObject({ status: 'failed', error: expect.stringContaining('no record') })
})

test('claims that place it where nothing of it is begin no second guest', async () => {
  await create('moved')
  await started('moved')
  const guests = cloud.host.running().length
  cloud.startAgent(OTHER)
  await until(
    'the other node',
    () => database.db.selectFrom('node_capacity').select('node').where('node', '=', OTHER).executeTakeFirst(),
    (node) => node !== undefined,
  )
  // Yesterday it was on another node.
  const place = (node: string) =>
    database.db.updateTable('placement').set({ node }).where('server_id', '=', 'moved').execute()
  await place(OTHER)
  await cloud.kubectl.patch(Server, { namespace, name: 'moved' }, { metadata: { labels: { look: 'again' } } })
  const lost = await seen('an error', 'moved', (server) => server.status?.state === 'error')
  expect(claimed(lost)).toMatchObject({ status: 'False', reason: 'Forgotten' })
  expect(lost.status?.nodeName).toBe(NODE)
  const on = (node: string) => cloud.kubectl.list(Instance, { namespace: nodeNamespace(node) })
  expect([(await on(OTHER)).items.length, cloud.hostOf(OTHER).running().length, cloud.host.running().length]).toEqual([
    0,
    0,
    guests,
  ])

  // The newer one is back.
  await place(NODE)
  await cloud.kubectl.patch(Server, { namespace, name: 'moved' }, { metadata: { labels: { look: 'more' } } })
  await started('moved')
  expect(cloud.host.running()).toHaveLength(guests)
})
