/** The catalog of a deployment that starts again and again, against the embedded Kubernetes API. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { CATALOG_ANNOTATION, installCatalog } from '../../../../controllers/nouns/catalog/index.ts'
import { crds } from '../../../../controllers/kit/crds.ts'
import { ADMIN, openCore } from '../../../../embedded/kubernetes/core/core.ts'
import { memoryStorage } from '../../../../embedded/kubernetes/storage/memory.ts'
import { openClient } from '../../../../kit/kube/client.ts'
import { installCrds } from '../../../../kit/kube/crd.ts'
import type { Store } from '../../../../kit/kube/store.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import { systemRandom } from '../../../../kit/sys/random.ts'
import { Plan, Zone } from '../../../../resources/catalog/index.ts'

let folder: string
let file: string
let store: Store

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-catalog-'))
  file = join(folder, 'catalog.yaml')
})
afterAll(() => rm(folder, { recursive: true, force: true }))
beforeEach(async () => {
  const core = await openCore({ storage: memoryStorage(), clock: systemClock, random: systemRandom, log: silentLog })
  store = openClient({
    transport: (request) => core.handle(request, ADMIN),
    fieldManager: 'test',
    clock: systemClock,
    random: systemRandom,
    requestTimeoutMilliseconds: 60_000,
  })
  await installCrds(store, crds(), systemClock)
})

const ZONE = { displayName: 'EU-1A', region: 'eu-1' }
const PUBLIC_NETWORK = {
  physicalNetwork: 'outside',
  addresses: ['198.19.0.2/24'],
  gateways: ['198.19.0.1'],
}
const zoneOf = async () => (await store.get(Zone, { name: 'eu-1a' }))?.spec

/** What a start does with a catalog of these zones. */
async function start(spec: object, name = 'eu-1a'): Promise<readonly string[]> {
  await writeFile(file, stringify({ apiVersion: 'svccloud.dev/v1alpha1', kind: 'Zone', metadata: { name }, spec }))
  return installCatalog(store, file)
}

it('gives a zone its public network when a later start has one', async () => {
  expect(await start(ZONE)).toEqual([])
  expect(await start({ ...ZONE, publicNetwork: PUBLIC_NETWORK })).toEqual([])
  expect(await zoneOf()).toMatchObject({ ...ZONE, publicNetwork: PUBLIC_NETWORK })
})

it('gives it to a zone of a release that kept no record as well', async () => {
  await store.create(Zone, { metadata: { name: 'eu-1a' }, spec: Zone.spec.parse({ ...ZONE, displayName: 'Mine' }) })
  expect(await start({ ...ZONE, publicNetwork: PUBLIC_NETWORK })).toEqual([
    'Zone eu-1a: displayName differs from the catalog and stays as it is.',
  ])
  expect(await zoneOf()).toMatchObject({ displayName: 'Mine', publicNetwork: PUBLIC_NETWORK })
})

it('follows what the catalog itself gave, and leaves what somebody changed, whose difference it reports', async () => {
  await start({ ...ZONE, publicNetwork: PUBLIC_NETWORK })
  await store.patch(Zone, { name: 'eu-1a' }, { spec: { displayName: 'Mine' } })
  const moved = { ...PUBLIC_NETWORK, gateways: ['198.19.0.254'] }
  const difference = 'Zone eu-1a: displayName differs from the catalog and stays as it is.'
  expect(await start({ ...ZONE, displayName: 'Theirs', publicNetwork: moved })).toEqual([difference])
  expect(await zoneOf()).toMatchObject({ displayName: 'Mine', publicNetwork: moved })
  expect(await start({ ...ZONE, displayName: 'Theirs', publicNetwork: moved })).toEqual([difference])
})

it('removes nothing that a later catalog lacks', async () => {
  await start({ ...ZONE, publicNetwork: PUBLIC_NETWORK })
  expect(await start(ZONE)).toEqual([])
  expect(await start(ZONE, 'eu-1b')).toEqual([])
  expect(await zoneOf()).toMatchObject({ publicNetwork: PUBLIC_NETWORK })
})

it('reports a field that cannot follow, and continues', async () => {
  await start(ZONE)
  expect(await start({ ...ZONE, region: 'eu-2' })).toMatchObject([
    expect.stringContaining('Zone eu-1a: region cannot follow the catalog: '),
  ])
  expect(await zoneOf()).toMatchObject({ region: 'eu-1' })
})

it('writes nothing at a start that changes nothing', async () => {
  await start({ ...ZONE, publicNetwork: PUBLIC_NETWORK })
  const before = await store.get(Zone, { name: 'eu-1a' })
  await start({ ...ZONE, publicNetwork: PUBLIC_NETWORK })
  expect(await store.get(Zone, { name: 'eu-1a' })).toEqual(before)
})

it('takes no text of somebody else for its record', async () => {
  const plan = { family: 'starter', cores: 1, memoryMebibytes: 192, storageGibibytes: 1, priceMonthlyCents: 100 }
  const text = (cents: number) =>
    stringify({ kind: 'Plan', metadata: { name: 'tiny' }, spec: { ...plan, priceMonthlyCents: cents } })
  await writeFile(file, text(100))
  await installCatalog(store, file)
  await store.patch(Plan, { name: 'tiny' }, { metadata: { annotations: { [CATALOG_ANNOTATION]: '[1' } } })
  await writeFile(file, text(200))
  expect(await installCatalog(store, file)).toEqual([
    'Plan tiny: priceMonthlyCents differs from the catalog and stays as it is.',
  ])
})
