/** The life of a database with real controllers and a real PostgreSQL of the platform, through the door of kubectl. The
 *  guest is played: no simulated host runs its programs. */
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { listQuotas } from '../../../db/account/index.ts'
import { DATABASE_TEMPLATE } from '../../../domain/managed-machine.ts'
import { Plan, Template, Zone } from '../../../resources/catalog/index.ts'
import { Database, type DatabaseSpec } from '../../../resources/database/index.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { ManagedMachine } from '../../../resources/managed-machine/index.ts'
import { Network, type NetworkSpec } from '../../../resources/network/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import { createAccount } from '../../accounts.ts'
import { useDatabase } from '../../database.ts'
import { type Cloud, openCloud, ZONE } from '../cloud.ts'
import { until } from '../until.ts'

const database = useDatabase()
let cloud: Cloud
let stop: (() => Promise<void>)[] = []
let accountId: string
let namespace: string

beforeAll(async () => {
  cloud = await openCloud(database.db)
  stop = [cloud.startControllers(), cloud.startAgent()]
  const template = await cloud.kubectl.get(Template, { name: 'tiny-linux' })
  if (template !== undefined)
    await cloud.kubectl.create(Template, { metadata: { name: DATABASE_TEMPLATE }, spec: template.spec })
  const tiny = await cloud.kubectl.get(Plan, { name: 'tiny' })
  if (tiny !== undefined) await cloud.kubectl.create(Plan, { metadata: { name: 'db-1c-2g' }, spec: tiny.spec })
  accountId = await createAccount(database.db)
  await cloud.openAccount(accountId)
  namespace = accountNamespace(accountId)
  await until(
    'private networks',
    () => cloud.kubectl.get(Zone, { name: ZONE }),
    (zone) => zone?.status?.hasPrivateNetworks === true,
  )
})
afterAll(async () => {
  for (const each of stop) await each()
  await cloud.close()
})

const key = () => ({ namespace, name: 'shop' })
const read = () => cloud.kubectl.get(Database, key())
const machines = async () =>
  (await cloud.kubectl.list(ManagedMachine, {})).items.filter(({ spec }) => spec.managedBy === 'database:shop')

/** The guest says that it runs what was delivered. */
async function answer(): Promise<void> {
  for (const { metadata, spec } of await machines()) {
    if (spec.configuration === undefined) continue
    const { generation, fingerprint } = spec.configuration
    const status = { running: { generation, fingerprint }, isHealthy: true, detail: '' }
    const at = { namespace: metadata.namespace ?? '', name: metadata.name }
    await cloud.kubectl.patch(ManagedMachine, at, { status }, 'status')
  }
}

test('it is made of a machine with a storage, and leaves nothing', { timeout: 180_000 }, async () => {
  const example = parse(await readFile('examples/databases/database.yaml', 'utf8'))
  const back = { zone: ZONE, name: 'back', ipv4Cidr: '10.1.0.0/24' } as NetworkSpec
  await cloud.kubectl.create(Network, { metadata: { namespace, name: 'back' }, spec: back })
  const spec = { ...Database.spec.parse({ ...example.spec, zone: ZONE }) } as DatabaseSpec
  await cloud.kubectl.create(Database, { metadata: key(), spec })
  const made = await until(
    'the database',
    async () => {
      await answer()
      return read()
    },
    (found) => found?.status?.isMade === true,
  )
  expect(made?.status).toMatchObject({
    host: expect.stringMatching(/^10\.1\.0\./),
    isConfigurationApplied: true,
    passwordGeneration: 1,
  })
  const [storage] = (await cloud.kubectl.list(Storage, { namespace })).items.filter(({ spec: { isBoot } }) => !isBoot)
  const [server] = (await cloud.kubectl.list(Server, { namespace })).items
  expect(storage).toMatchObject({ spec: { sizeGibibytes: 10, serverId: server?.metadata.name } })
  expect(server?.spec).toMatchObject({ managedBy: 'database:shop', template: DATABASE_TEMPLATE })
  // The machine is exchanged: its data comes back to the new one.
  const before = server?.metadata.uid
  await cloud.kubectl.delete(Server, { namespace, name: server?.metadata.name ?? '' })
  await until(
    'another machine with the same storage',
    async () => {
      await answer()
      const now = (await cloud.kubectl.list(Server, { namespace })).items[0]
      const data = await cloud.kubectl.get(Storage, { namespace, name: storage?.metadata.name ?? '' })
      return { now, data, database: await read() }
    },
    ({ now, data, database: found }) =>
      now !== undefined &&
      now.metadata.uid !== before &&
      data?.status?.serverId === now.metadata.name &&
      found?.status?.isHealthy === true,
  )
  const kept = await cloud.kubectl.get(Storage, { namespace, name: storage?.metadata.name ?? '' })
  expect(kept?.metadata.uid).toBe(storage?.metadata.uid)
  await cloud.kubectl.delete(Database, key())
  await until('its end', read, (found) => found === undefined)
  const left = await Promise.all([
    database.db.selectFrom('database').select('id').execute(),
    cloud.kubectl.list(Storage, { namespace }).then(({ items }) => items),
    cloud.kubectl.list(Server, { namespace }).then(({ items }) => items),
  ])
  expect(left).toEqual([[], [], []])
  const quotas = (await listQuotas(database.db, accountId)).filter(({ used }) => used > 0).map(({ name }) => name)
  expect(quotas).toEqual(['networks'])
})
