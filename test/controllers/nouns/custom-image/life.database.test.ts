/** Custom images with kubectl, with real controllers, a real database and a simulated node. */
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { listAudit } from '../../../../db/audit/index.ts'
import { listQuotas } from '../../../../db/account/index.ts'
import { recordKubernetesRequest } from '../../../../db/request/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { CustomImage, type CustomImageSpec } from '../../../../resources/custom-image/index.ts'
import { Image, nodeNamespace, Volume } from '../../../../resources/instance/index.ts'
import { Backup, type BackupSpec } from '../../../../resources/backup/index.ts'
import { Server } from '../../../../resources/server/index.ts'
import { Snapshot, type SnapshotSpec } from '../../../../resources/snapshot/index.ts'
import { Storage } from '../../../../resources/storage/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { eventually } from '../../../eventually.ts'
import { type Cloud, NODE, openCloud, ZONE } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let accountId: string
let namespace: string

beforeAll(async () => {
  cloud = await openCloud(database.db)
  cloud.startAgent()
  cloud.startControllers()
  accountId = await createAccount(database.db)
  namespace = accountNamespace(accountId)
  await cloud.openAccount(accountId)
})
afterAll(() => cloud.close())

const source = { url: 'https://images.example.com/disk.qcow2', checksum: 'a'.repeat(64) }
const make = (name: string, zone = ZONE) =>
  cloud.kubectl.create(CustomImage, {
    metadata: { name, namespace },
    spec: { zone, title: 'Mine', source, labels: {} },
  })
const read = (name: string) => cloud.kubectl.get(CustomImage, { namespace, name })
const stateOf = async (name: string) => (await read(name))?.status?.state
const used = async () => (await listQuotas(database.db, accountId)).find(({ name }) => name === 'custom_images')?.used
const held = async () => (await cloud.kubectl.list(Image, { namespace: nodeNamespace(NODE) })).items

test('an image is held by the node of its zone, and gone with what it held', async () => {
  await make('mine')
  await eventually('the image', async () => (await stateOf('mine')) === 'online' || undefined)
  expect((await read('mine'))?.status).toMatchObject({ sizeGibibytes: 1, operation: { status: 'succeeded' } })
  expect([(await held()).map(({ metadata }) => metadata.name), await used()]).toEqual([[`${namespace}.mine`], 1])
  const { uid = '', generation = 0 } = (await read('mine'))?.metadata ?? {}
  // The second name is that of an API server that is not upgraded yet.
  for (const action of ['template.delete', 'custom_image.delete'])
    await recordKubernetesRequest(database.db, {
      uid,
      action,
      generation: generation + 1,
      username: 'grace@example.com',
      requestedAt: new Date(),
      changes: [],
    })
  await cloud.kubectl.delete(CustomImage, { namespace, name: 'mine' })
  await eventually('its end', async () => (await read('mine')) === undefined || undefined)
  expect([await held(), await used()]).toEqual([[], 0])
  const entries = await listAudit(database.db, accountId, { limit: 10 })
  expect(entries.map(({ action, actor_email }) => `${action} ${actor_email}`)).toEqual([
    'custom_image.delete user:grace@example.com',
    'custom_image.create user:kubernetes',
  ])
})

test('in no zone it is in error, and can be deleted', async () => {
  await make('nowhere', 'nowhere')
  await eventually('the error', async () => (await stateOf('nowhere')) === 'error' || undefined)
  await cloud.kubectl.delete(CustomImage, { namespace, name: 'nowhere' })
  await eventually('its end', async () => (await read('nowhere')) === undefined || undefined)
})

test('an image of a snapshot, and of a backup, while their server runs', { timeout: 180_000 }, async () => {
  await makeServer('origin', { template: TEMPLATE })
  await untilServer('origin', 'started')
  const boot = (await cloud.kubectl.list(Storage, { namespace })).items.find(({ spec }) => spec.serverId === 'origin')
  const storageId = boot?.metadata.name ?? ''
  const [point, kept] = ['data-1', 'from-git-1'] // as the examples name them
  await cloud.kubectl.create(Snapshot, { metadata: { name: point, namespace }, spec: { storageId } as SnapshotSpec })
  await cloud.kubectl.create(Backup, { metadata: { name: kept, namespace }, spec: { storageId } as BackupSpec })
  for (const kind of ['snapshot', 'backup']) {
    // Each waits for what it is made from.
    const example = parse(await readFile(`examples/from-existing/custom-image-of-a-${kind}.yaml`, 'utf8')) as {
      readonly metadata: { readonly name: string }
      readonly spec: CustomImageSpec
    }
    const { name } = example.metadata
    await cloud.kubectl.create(CustomImage, {
      metadata: { name, namespace },
      spec: { ...example.spec, zone: ZONE, labels: {} },
    })
    await eventually(`image ${name}`, async () => (await stateOf(name)) === 'online' || undefined)
    // Guests need the kernel of the template that the disk began as.
    expect((await read(name))?.status).toMatchObject({ origin: { name: TEMPLATE }, sizeGibibytes: 1 })
  }
  expect(cloud.filled.get(`${namespace}.of-backup`)).toBe(kept)
  await cloud.kubectl.delete(Snapshot, { namespace, name: point })
  await cloud.kubectl.delete(Backup, { namespace, name: kept })
  await makeServer('of-image', { customImageId: 'of-snapshot' })
  await untilServer('of-image', 'started')
  for (const name of ['of-snapshot', 'of-backup']) {
    await cloud.kubectl.delete(CustomImage, { namespace, name })
    await eventually('its end', async () => (await read(name)) === undefined || undefined)
  }
  expect(await held()).toEqual([])
})

test.each([
  ['a snapshot', { snapshotId: 'nothing' }, 'There is no snapshot nothing'],
  ['a backup', { backupId: 'nothing' }, 'There is no backup nothing'],
])('of %s that is not there it is in error', async (_what, from, why) => {
  const name = `lost-${Object.keys(from)[0]?.toLowerCase()}`
  await cloud.kubectl.create(CustomImage, {
    metadata: { name, namespace },
    spec: { zone: ZONE, title: 'Lost', labels: {}, source: from },
  })
  await eventually('the error', async () => (await stateOf(name)) === 'error' || undefined)
  expect((await read(name))?.status?.stateDetail).toContain(why)
})

const TEMPLATE = 'tiny-linux'
const makeServer = (name: string, system: { readonly template: string } | { readonly customImageId: string }) =>
  cloud.kubectl.create(Server, {
    metadata: { name, namespace },
    spec: Server.spec.parse({ ...system, hostname: name, zone: ZONE, plan: 'tiny', sshKeys: ['ssh-ed25519 AAAA'] }),
  })
const readServer = (name: string) => cloud.kubectl.get(Server, { namespace, name })
const untilServer = (name: string, state: string) =>
  eventually(`server ${name} ${state}`, async () => {
    const status = (await readServer(name))?.status
    return (status?.state === state && status.operation?.status !== 'running') || undefined
  })

test('an image of a stopped server, a server of the image, and the image may go', { timeout: 180_000 }, async () => {
  await makeServer('first', { template: TEMPLATE })
  await untilServer('first', 'started')
  await cloud.kubectl.create(CustomImage, {
    metadata: { name: 'copy', namespace },
    spec: { zone: ZONE, title: 'Copy', labels: {}, source: { storageId: 'first' } },
  })
  await eventually('the wait for the guest', async () =>
    (await read('copy'))?.status?.stateDetail?.includes('to be stopped'),
  )
  await cloud.kubectl.patch(Server, { namespace, name: 'first' }, { spec: { desiredPower: 'stopped' } })
  await eventually('the image', async () => (await stateOf('copy')) === 'online' || undefined)
  // Guests need the kernel of the template that the disk began as.
  expect((await read('copy'))?.status).toMatchObject({ origin: { name: TEMPLATE } })

  await makeServer('second', { customImageId: 'copy' })
  await untilServer('second', 'started')
  const [boot] = (await cloud.kubectl.list(Storage, { namespace })).items.filter(
    ({ spec }) => spec.serverId === 'second',
  )
  expect(boot?.spec.source).toEqual({ kind: 'image', id: 'copy' })
  const [volume] = (await cloud.kubectl.list(Volume, { namespace: nodeNamespace(NODE) })).items.filter(
    ({ spec }) => spec.storage.name === 'second',
  )
  expect(volume).toMatchObject({
    spec: { source: { kind: 'image', name: `${namespace}.copy` } },
    status: { origin: { name: TEMPLATE } },
  })

  await cloud.kubectl.delete(CustomImage, { namespace, name: 'copy' })
  await eventually('its end', async () => (await read('copy')) === undefined || undefined)
  expect([(await readServer('second'))?.status?.state, await held()]).toEqual(['started', []])
  await makeServer('third', { customImageId: 'copy' })
  await untilServer('third', 'error')
  expect((await readServer('third'))?.status?.stateDetail).toContain('There is no custom image copy')
})
