/** The life of a playground with real controllers and a real PostgreSQL, with kubectl. Its host only counts. */
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { findPlayground, readAllowance } from '../../../../db/playground/index.ts'
import type { KubeObject } from '../../../../kit/kube/object.ts'
import { Zone } from '../../../../resources/catalog/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Playground, type PlaygroundSpec, type PlaygroundStatus } from '../../../../resources/playground/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { setAccountQuota } from '../../../apiserver/nouns/playground/allowance.ts'
import { type Cloud, openCloud, ZONE } from '../../cloud.ts'
import { until } from '../../until.ts'

const database = useDatabase()
let cloud: Cloud
let stop: () => Promise<void>
let accountId: string

beforeAll(async () => {
  cloud = await openCloud(database.db)
  stop = cloud.startControllers()
  accountId = await createAccount(database.db)
  await cloud.openAccount(accountId)
  await setAccountQuota(database.db, accountId, 4)
  await until(
    'playgrounds',
    () => cloud.kubectl.get(Zone, { name: ZONE }),
    (zone) => zone?.status?.hasPlaygrounds === true,
  )
})
afterAll(async () => {
  await stop()
  await cloud.close()
})

type Found = KubeObject<PlaygroundSpec, PlaygroundStatus>
const key = (name: string) => ({ namespace: accountNamespace(accountId), name })
const read = (name: string) => cloud.kubectl.get(Playground, key(name))
const when = (name: string, what: string, isGood: (found: Found) => boolean) =>
  until(
    what,
    () => read(name),
    (found) => found !== undefined && isGood(found),
  )
const rowOf = (playgroundId: string) => findPlayground(database.db, { accountId, playgroundId })
const make = (name: string) =>
  cloud.kubectl.create(Playground, { metadata: key(name), spec: Playground.spec.parse({ region: 'eu-1' }) })
const isReady = ({ status }: Found) => status?.state === 'ready'
const gone = (name: string) =>
  until(
    'its end',
    () => read(name),
    (found) => found === undefined,
  )

test('it is made with a guest, is ready, and leaves nothing when it is deleted', async () => {
  const example = parse(await readFile('examples/playgrounds/playground.yaml', 'utf8'))
  expect(Playground.spec.parse(example.spec)).toEqual({ region: 'eu-1' })
  await make('try')
  const { status } = (await when('try', 'ready', isReady)) ?? {}
  const row = await rowOf('try')
  expect(status).toMatchObject({ name: row?.name, appDomain: row?.appDomain, isSimulated: true })
  expect(status?.endpoint).toBeUndefined()
  const [plane] = cloud.controlPlanes.planes.values()
  expect(plane?.desired).toMatchObject({
    id: row?.controlPlaneId,
    release: '1.36.3',
    replicas: 1,
    guest: { name: row?.name, endsAt: row?.expiresAt.toISOString(), pods: 24 },
  })
  // Another one does not get past the first.
  await make('more')
  await when('more', 'its refusal', ({ status: found }) =>
    (found?.conditions ?? []).some(({ type, status: is }) => type === 'Claimed' && is === 'False'),
  )
  await cloud.kubectl.delete(Playground, key('more'))
  await gone('more')

  await cloud.kubectl.delete(Playground, key('try'))
  await gone('try')
  expect(cloud.controlPlanes.planes.size).toBe(0)
  expect(await rowOf('try')).toMatchObject({ endReason: 'deleted', deletedAt: expect.any(Date) })
  expect(await readAllowance(database.db, accountId)).toEqual({ allowance: 4, allowanceUsed: 1 })
})

test('its time ends it, and it goes from its host before anything is written down', async () => {
  await make('short')
  await when('short', 'ready', isReady)
  cloud.controlPlanes.isAway = true
  await database.db
    .updateTable('playground')
    .set({ expires_at: new Date(0) })
    .where('id', '=', 'short')
    .execute()
  await cloud.kubectl.patch(Playground, key('short'), { metadata: { labels: { look: 'again' } } })
  await when('short', 'its end to begin', ({ status }) => status?.state === 'deleting')
  expect((await rowOf('short'))?.deletedAt).toBeNull()
  cloud.controlPlanes.isAway = false
  await gone('short')
  expect(cloud.controlPlanes.planes.size).toBe(0)
  expect(await rowOf('short')).toMatchObject({ endReason: 'expired' })
})

test('one that its host has lost has failed, and does not count', async () => {
  const { allowanceUsed } = await readAllowance(database.db, accountId)
  await make('lost')
  await when('lost', 'ready', isReady)
  cloud.controlPlanes.planes.clear()
  await cloud.kubectl.patch(Playground, key('lost'), { metadata: { labels: { look: 'again' } } })
  await gone('lost')
  expect(await rowOf('lost')).toMatchObject({ endReason: 'failed', failureReason: 'Its host has lost it.' })
  expect(await readAllowance(database.db, accountId)).toEqual({ allowance: 4, allowanceUsed })
})
