/** Templates of files, with real controllers, a real database and simulated nodes of two zones. */
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { simulatedTemplates } from '../../../../agents/node/images/simulated.ts'
import type { ImageState } from '../../../../agents/node/images/template-store.ts'
import { listAudit, STAFF_CHAIN } from '../../../../db/audit/index.ts'
import { Template, type TemplateSpec } from '../../../../resources/catalog/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Image, Instance, nodeNamespace, Volume } from '../../../../resources/instance/index.ts'
import { Server } from '../../../../resources/server/index.ts'
import { createAccount } from '../../../accounts.ts'
import { TINY_LINUX } from '../../../catalog.ts'
import { useDatabase } from '../../../database.ts'
import { eventually } from '../../../eventually.ts'
import { type Cloud, NODE, openCloud, ZONE } from '../../cloud.ts'

const [OTHER_NODE, OTHER_ZONE] = ['n2', 'zone-2']
const database = useDatabase()
let cloud: Cloud
let namespace: string

/** Of a host that has built no template yet, or cannot. */
const templates = (() => {
  const listeners = new Set<() => void>()
  const built = simulatedTemplates()
  let state: ImageState | undefined = { is: 'absent' }
  return {
    ...built,
    newest: async (name: string) => state ?? built.newest(name),
    built: async () => (state === undefined ? built.built() : []),
    onChange(listener: () => void) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    /** All are as said; built when undefined. */
    become(next: ImageState | undefined): void {
      state = next
      for (const listener of listeners) listener()
    },
  }
})()

beforeAll(async () => {
  cloud = await openCloud(database.db, undefined, [NODE, OTHER_NODE], { [OTHER_NODE]: OTHER_ZONE })
  cloud.startAgent(NODE)
  cloud.startAgent(OTHER_NODE, { templates })
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
const copyEnds = () =>
  eventually('the end of the copy', async () => {
    const found = await read('tiny-linux')
    const { operation } = found?.status ?? {}
    const isOver = operation?.id === found?.spec.operation?.id && operation?.finishedAt !== undefined
    return (isOver && operation.kind === 'template.copy' && found) || undefined
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
    'template.copy',
    'template.create',
  ])
})

test('of a zone that is not there it is in error, and can be deleted', async () => {
  await make('nowhere', { zones: ['nowhere'] })
  await becomes('nowhere', 'error')
  expect((await read('nowhere'))?.status?.stateDetail).toBe('There is no zone nowhere.')
  await cloud.kubectl.delete(Template, { name: 'nowhere' })
  await gone('nowhere')
})

test('one that nodes build is there at once, and copied to a zone by its first use', { timeout: 180_000 }, async () => {
  await eventually('tiny-linux', async () => (await read('tiny-linux'))?.status?.state === 'online' || undefined)
  // Where every host has built it before there is nothing to do.
  await makeServer('first', ZONE, 'tiny-linux')
  await untilServer('first', 'started')
  const hadIn = (zone: string) =>
    eventually(
      `tiny-linux in ${zone}`,
      async () => (await read('tiny-linux'))?.status?.zones?.includes(zone) || undefined,
    )
  await hadIn(ZONE)
  expect((await read('tiny-linux'))?.spec.operation).toBeUndefined()

  templates.become({ is: 'unavailable', reason: 'no room for it' })
  await makeServer('refused', OTHER_ZONE, 'tiny-linux')
  expect(await copyEnds()).toMatchObject({
    spec: { operation: { arguments: { zone: OTHER_ZONE } } },
    status: { state: 'online', operation: { status: 'failed', actor: 'system:templates', error: 'no room for it' } },
  })
  await cloud.kubectl.delete(Server, { namespace, name: 'refused' })
  await eventually(
    'the end of its server',
    async () => (await cloud.kubectl.get(Server, { namespace, name: 'refused' })) === undefined || undefined,
  )

  templates.become({ is: 'absent' })
  await makeServer('other', OTHER_ZONE, 'tiny-linux')
  const running = await eventually('the copy', async () => {
    const found = await read('tiny-linux')
    return (found?.status?.operation?.status === 'running' && found) || undefined
  })
  expect(running.status?.zones).toEqual([ZONE])
  templates.become(undefined)
  await untilServer('other', 'started')
  expect(await copyEnds()).toMatchObject({
    spec: { operation: { id: running.spec.operation?.id } },
    status: { zones: [ZONE, OTHER_ZONE], operation: { status: 'succeeded', error: '' } },
  })

  await makeServer('second', OTHER_ZONE, 'tiny-linux')
  await untilServer('second', 'started')
  expect((await read('tiny-linux'))?.spec.operation?.id).toBe(running.spec.operation?.id)
  const entries = await listAudit(database.db, STAFF_CHAIN, { limit: 50 })
  expect(entries.filter(({ resource_id: id }) => id === 'tiny-linux').map(({ action }) => action)).toEqual([
    'template.copy',
    'template.copy',
  ])
})
