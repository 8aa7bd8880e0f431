/** Templates of files, with real controllers, a real database and simulated nodes of two zones. */
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { listAudit, STAFF_CHAIN } from '../../../db/audit/index.ts'
import { Namespace } from '../../../kit/kube/object.ts'
import { Template, type TemplateSpec } from '../../../resources/catalog/index.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { Image, Instance, nodeNamespace, Volume } from '../../../resources/instance/index.ts'
import { SYSTEM_NAMESPACE } from '../../../resources/labels.ts'
import { Server } from '../../../resources/server/index.ts'
import { createAccount } from '../../accounts.ts'
import { TINY_LINUX } from '../../catalog.ts'
import { useDatabase } from '../../database.ts'
import { eventually } from '../../eventually.ts'
import { type Cloud, NODE, openCloud, ZONE } from '../cloud.ts'

const [OTHER_NODE, OTHER_ZONE] = ['n2', 'zone-2']
const database = useDatabase()
let cloud: Cloud
let namespace: string

beforeAll(async () => {
  cloud = await openCloud(database.db, undefined, [NODE, OTHER_NODE], { [OTHER_NODE]: OTHER_ZONE })
  // As whoever leads makes it: operations on what is in no namespace are kept there.
  await cloud.kubectl.create(Namespace, { metadata: { name: SYSTEM_NAMESPACE }, spec: undefined })
  for (const node of [NODE, OTHER_NODE]) cloud.startAgent(node)
  cloud.startControllers()
  const accountId = await createAccount(database.db)
  namespace = accountNamespace(accountId)
  await cloud.openAccount(accountId)
})
afterAll(() => cloud.close())

const image = { url: 'https://images.example.com/debian-12.qcow2', checksum: 'a'.repeat(64) }
const make = (name: string, spec: Partial<TemplateSpec> = {}) =>
  cloud.kubectl.create(Template, { metadata: { name }, spec: { ...TINY_LINUX, image, zones: [ZONE], ...spec } })
const read = (name: string) => cloud.kubectl.get(Template, { name })
const becomes = (name: string, state: string) =>
  eventually(`${name} ${state}`, async () => {
    const { spec, status } = (await read(name)) ?? {}
    const isNewest = status?.operation?.id === spec?.operation?.id
    return (status?.state === state && isNewest && status.operation?.finishedAt !== undefined) || undefined
  })
const gone = (name: string) => eventually('its end', async () => (await read(name)) === undefined || undefined)
const heldOn = async (node: string) =>
  (await cloud.kubectl.list(Image, { namespace: nodeNamespace(node) })).items.map(({ metadata }) => metadata.name)
const makeServer = (name: string, zone: string, template: string) =>
  cloud.kubectl.create(Server, {
    metadata: { name, namespace },
    spec: Server.spec.parse({ template, hostname: name, zone, plan: 'tiny', sshKeys: ['ssh-ed25519 AAAA'] }),
  })
const untilServer = (name: string, state: string) =>
  eventually(`server ${name} ${state}`, async () => {
    const status = (await cloud.kubectl.get(Server, { namespace, name }))?.status
    return (status?.state === state && status.operation?.status !== 'running' && status) || undefined
  })

test('servers are made of it in its zones, and keep working when it is deleted', { timeout: 180_000 }, async () => {
  const example = parse(await readFile('examples/operators/template.yaml', 'utf8')) as { readonly spec: TemplateSpec }
  const fitting = { defaultUser: 'deb', zones: [ZONE], minStorageGibibytes: 1, minMemoryMebibytes: 128 }
  await make('debian-12', { ...example.spec, ...fitting })
  await becomes('debian-12', 'online')
  expect((await read('debian-12'))?.status).toMatchObject({
    zones: [ZONE],
    sizeGibibytes: 1,
    operation: { kind: 'template.create', status: 'succeeded' },
  })
  expect([await heldOn(NODE), await heldOn(OTHER_NODE)]).toEqual([['template.debian-12'], []])

  await makeServer('web', ZONE, 'debian-12')
  await untilServer('web', 'started')
  const [volume] = (await cloud.kubectl.list(Volume, { namespace: nodeNamespace(NODE) })).items
  expect(volume).toMatchObject({ spec: { source: { kind: 'image', name: 'template.debian-12' } } })
  expect(volume?.status).not.toHaveProperty('origin')
  await makeServer('elsewhere', OTHER_ZONE, 'debian-12')
  expect((await untilServer('elsewhere', 'error')).stateDetail).toContain('template debian-12')

  // A zone that is added with kubectl gets it too.
  await cloud.kubectl.patch(Template, { name: 'debian-12' }, { spec: { zones: [ZONE, OTHER_ZONE] } })
  await eventually('the other zone', async () => (await read('debian-12'))?.status?.zones?.length === 2 || undefined)
  await makeServer('there', OTHER_ZONE, 'debian-12')
  await untilServer('there', 'started')
  await cloud.kubectl.patch(Template, { name: 'debian-12' }, { spec: { zones: [ZONE] } })
  await eventually('its end there', async () => (await heldOn(OTHER_NODE)).length === 0 || undefined)

  await cloud.kubectl.delete(Template, { name: 'debian-12' })
  await gone('debian-12')
  expect(await heldOn(NODE)).toEqual([])
  const restart = { spec: { desiredPower: 'stopped' } } as const
  await cloud.kubectl.patch(Server, { namespace, name: 'web' }, restart)
  await untilServer('web', 'stopped')
  await cloud.kubectl.patch(Server, { namespace, name: 'web' }, { spec: { desiredPower: 'running' } })
  expect(await untilServer('web', 'started')).toMatchObject({ sshUser: 'deb' })
  expect((await cloud.kubectl.list(Instance, { namespace: nodeNamespace(NODE) })).items).toHaveLength(1)
  const entries = await listAudit(database.db, STAFF_CHAIN, { limit: 10 })
  expect(entries.filter(({ resource_id: id }) => id === 'debian-12').map(({ action }) => action)).toEqual([
    'template.delete',
    'template.create',
  ])
})

test('of a zone that is not there it is in error, and can be deleted', { timeout: 120_000 }, async () => {
  await make('nowhere', { zones: ['nowhere'] })
  await becomes('nowhere', 'error')
  expect((await read('nowhere'))?.status?.stateDetail).toBe('There is no zone nowhere.')
  await cloud.kubectl.delete(Template, { name: 'nowhere' })
  await gone('nowhere')
})

test('one that nodes build is there at once, and stays when servers of it are', { timeout: 120_000 }, async () => {
  await eventually('tiny-linux', async () => (await read('tiny-linux'))?.status?.state === 'online' || undefined)
  expect((await read('tiny-linux'))?.spec.operation).toBeUndefined()
})
