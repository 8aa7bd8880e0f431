/** The platform's own tenants of the object storage, with a real database: whose each is, and when it goes. */
import { beforeEach, expect, test } from 'vitest'
import { openInternalTenant, sweepInternalTenants } from '../../../controllers/kit/internal-tenant.ts'
import { Unavailable } from '../../../domain/problem.ts'
import { findInternalTenant } from '../../../db/internal-tenant/index.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { createSealing } from '../../../kit/sys/sealing.ts'
import { createAccount } from '../../accounts.ts'
import { useDatabase } from '../../database.ts'
import { until } from '../../eventually.ts'
import { openSimulatedObjectStorage, type SimulatedObjectStorage } from '../../object-storage.ts'

const database = useDatabase()
const sealing = createSealing([{ id: 'k', key: systemRandom.bytes(32) }], systemRandom)
let single: SimulatedObjectStorage
let gateway: SimulatedObjectStorage
const partsOf = (...stores: SimulatedObjectStorage[]) => ({
  db: database.db,
  clock: systemClock,
  random: systemRandom,
  sealing,
  objectStorage: { stores, obstacle: '' },
})
const backupsOf = (owner: string, zone = 'z1') => ({ purpose: 'backups', owner, zone }) as const

beforeEach(() => {
  single = openSimulatedObjectStorage(['z1', 'z2'])
  gateway = openSimulatedObjectStorage(['z1'], 'rgw')
})

test('each account and zone has a separate one, which stays the same', async () => {
  const parts = partsOf(single)
  const [one, two] = [await createAccount(database.db), await createAccount(database.db)]
  const first = await openInternalTenant(parts, backupsOf(one))
  expect(await openInternalTenant(parts, backupsOf(one))).toMatchObject({
    ...first,
    store: { backend: single.backend },
  })
  const others = [
    await openInternalTenant(parts, backupsOf(two)),
    await openInternalTenant(parts, backupsOf(one, 'z2')),
  ]
  const all = [first, ...others]
  for (const field of ['bucket', 'accessKeyId', 'secretAccessKey'] as const)
    expect(new Set(all.map((place) => place[field])).size).toBe(3)
  expect(single.tenants.size).toBe(3)
  expect([...single.tenants.values()].map(({ buckets }) => buckets?.length)).toEqual([1, 1, 1])
})

test('a store that has forgotten one is informed again; an unavailable one is assumed to be unchanged', async () => {
  const parts = partsOf(single)
  const id = backupsOf(await createAccount(database.db))
  const before = await openInternalTenant(parts, id)
  single.tenants.clear()
  const after = await openInternalTenant(parts, id)
  expect(after.secretAccessKey).toBe(before.secretAccessKey)
  expect(single.tenants.size).toBe(1)
  single.isAway = true
  expect((await openInternalTenant(parts, id)).secretAccessKey).toBe(before.secretAccessKey)
  const young = backupsOf(await createAccount(database.db))
  for (const _attempt of [1, 2]) await expect(openInternalTenant(parts, young)).rejects.toBeInstanceOf(Unavailable)
  single.isAway = false
  await openInternalTenant(parts, young)
  expect(single.tenants.size).toBe(2)
})

test('what is there stays there when the zone gets a gateway, which takes what is new', async () => {
  const [old, young] = [await createAccount(database.db), await createAccount(database.db)]
  await openInternalTenant(partsOf(single), backupsOf(old))
  const both = partsOf(single, gateway)
  expect((await openInternalTenant(both, backupsOf(old))).store.backend).toBe('svc-s3-single')
  expect((await openInternalTenant(both, backupsOf(young))).store.backend).toBe('rgw')
})

test('those of deleted accounts are removed, also when the store was unavailable at first', async () => {
  const parts = partsOf(single)
  const [kept, gone] = [await createAccount(database.db), newUuid(systemRandom)]
  for (const owner of [kept, gone]) await openInternalTenant(parts, backupsOf(owner))
  const isKept = async (owner: string) => (await findInternalTenant(database.db, backupsOf(owner))) !== undefined
  single.isAway = true
  await expect(sweepInternalTenants(parts)).rejects.toBeInstanceOf(Unavailable)
  expect(await isKept(gone)).toBe(true)
  single.isAway = false
  await sweepInternalTenants(parts)
  expect([await isKept(kept), await isKept(gone)]).toEqual([true, false])
  expect(single.tenants.size).toBe(1)
})

test('a zone whose store does not answer holds up no other, and is not asked for each', async () => {
  const far = openSimulatedObjectStorage(['z9'])
  const near = partsOf(single, far)
  const gone = Array.from({ length: 12 }, () => newUuid(systemRandom))
  for (const owner of gone) for (const zone of ['z1', 'z9']) await openInternalTenant(near, backupsOf(owner, zone))
  let asked = 0
  let giveUp = (_error: Unavailable): void => {}
  const answer = new Promise<boolean>((_resolve, reject) => (giveUp = reject))
  const silent = { ...single, control: { ...single.control, removeTenant: () => ((asked += 1), answer) } }
  const sweeping = sweepInternalTenants(partsOf(silent as SimulatedObjectStorage, far))
  sweeping.catch(() => {}) // looked at below
  await until(
    'the other zone',
    () => findInternalTenant(database.db, backupsOf(gone.at(-1) ?? '', 'z9')),
    (row) => row === undefined,
  )
  expect([far.tenants.size, asked]).toEqual([0, 1])
  giveUp(new Unavailable('the object storage'))
  await expect(sweeping).rejects.toBeInstanceOf(Unavailable)
  expect(asked).toBe(5)
  await sweepInternalTenants(near)
  expect(single.tenants.size).toBe(0)
})
