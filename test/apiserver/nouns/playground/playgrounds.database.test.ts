/** Playgrounds through the API. No controllers run: tests say what they would. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { setAccountQuota } from './allowance.ts'
import { closePlayground, endPlayground, notePlaygroundReady } from '../../../../db/playground/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Playground } from '../../../../resources/playground/index.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let owner: Person

beforeAll(async () => {
  cloud = await openCloud(database.db)
  owner = await cloud.signUp('owner@example.com')
  await cloud.grant('boss', [{ resources: ['staffroles'], verbs: ['use'] }])
})
afterAll(() => cloud.close())

const path = (id: string, rest = '') => `/v1/playgrounds/${id}${rest}`
const start = (body: object = {}) => owner.send('POST', '/v1/playgrounds', { body })
const offer = async () => (await owner.send('GET', '/v1/playgrounds/offer')).body
const idOf = (playgroundId: string) => ({ accountId: owner.accountId, playgroundId })
const keyOf = (id: string) => ({ namespace: accountNamespace(owner.accountId), name: id })
const objectOf = (id: string) => cloud.admin.get(Playground, keyOf(id))
const inOne = <Result>(work: (tx: Parameters<typeof endPlayground>[0]) => Promise<Result>) =>
  database.db.transaction().execute(work)
/** What its controller does once its host has nothing of it. */
async function close(id: string): Promise<void> {
  await closePlayground(database.db, idOf(id), new Date())
  await cloud.admin.patch(Playground, keyOf(id), { metadata: { finalizers: null } })
}
const actions = async (): Promise<readonly string[]> =>
  (await owner.send('GET', '/v1/audit')).body['items'].map(
    (entry: Record<'action' | 'outcome' | 'actor_kind', string>) =>
      `${entry.action} ${entry.outcome} ${entry.actor_kind}`,
  )

test('a list asked for more than a page answers a page', async () => {
  expect((await owner.send('GET', '/v1/playgrounds?limit=1000')).status).toBe(200)
  expect((await owner.send('GET', '/v1/playgrounds?limit=0')).status).toBe(400)
})

test('one is free, and one at a time; one that failed does not count', async () => {
  expect(await offer()).toMatchObject({
    is_available: true,
    eligibility: 'eligible',
    regions: ['eu-1'],
    lifetime_hours: 4,
    allowance: 1,
    allowance_used: 0,
    active: null,
  })
  expect((await start({ region: 'moon-1' })).status).toBe(422)
  const started = await start()
  expect(started.status, JSON.stringify(started.body)).toBe(201)
  const { playground } = started.body
  expect(playground).toMatchObject({
    region: 'eu-1',
    state: 'provisioning',
    endpoint: null,
    end_reason: null,
    ready_at: null,
    name: expect.stringMatching(/^pg-[0-9a-f]{10}$/),
    app_domain: `*.${playground.name}.apps.example.com`,
  })
  expect(Date.parse(playground.expires_at) - Date.parse(playground.created_at)).toBe(4 * 3_600_000)
  expect((await objectOf(playground.id))?.spec).toEqual({ region: 'eu-1' })
  expect(await offer()).toMatchObject({ eligibility: 'active_playground', active: { id: playground.id } })
  expect((await start()).status).toBe(409)
  expect((await owner.send('GET', path(playground.id, '/kubeconfig'))).status).toBe(409)

  await inOne((tx) => endPlayground(tx, idOf(playground.id), { reason: 'failed', failureReason: 'no', at: new Date() }))
  expect((await owner.send('DELETE', path(playground.id))).status).toBe(409)
  await close(playground.id)
  const read = (await owner.send('GET', path(playground.id))).body['playground']
  expect(read).toMatchObject({ state: 'deleted', end_reason: 'failed', failure_reason: 'no' })
  expect(await offer()).toMatchObject({ eligibility: 'eligible', allowance_used: 0 })
})

test('one that its owner ends counts as used', async () => {
  const { id } = (await start()).body['playground']
  const ended = await owner.send('DELETE', path(id))
  expect(ended.status, JSON.stringify(ended.body)).toBe(200)
  expect(ended.body['playground']).toMatchObject({ state: 'deleting', end_reason: 'deleted' })
  expect((await objectOf(id))?.metadata.deletionTimestamp).toBeDefined()
  expect((await owner.send('DELETE', path(id))).status).toBe(409)
  await close(id)
  expect(await objectOf(id)).toBeUndefined()
  expect(await offer()).toMatchObject({ eligibility: 'allowance_used', allowance_used: 1 })
  const refused = await start()
  expect([refused.status, refused.body['reason']]).toEqual([403, 'allowance_used'])
  const { items } = (await owner.send('GET', '/v1/playgrounds')).body
  expect(items.map(({ end_reason: reason }: { end_reason: string }) => reason)).toEqual(['deleted', 'failed'])
})

test('staff end one, and everything of it is in the audit log', async () => {
  await setAccountQuota(database.db, owner.accountId, 3)
  const { id } = (await start()).body['playground']
  const entry = { endpoint: null, certificateAuthority: null, at: new Date() }
  await notePlaygroundReady(database.db, idOf(id), entry)
  expect((await owner.send('GET', path(id))).body['playground']).toMatchObject({ state: 'ready' })
  // One that is simulated has nothing to get into.
  expect((await owner.send('GET', path(id, '/kubeconfig'))).status).toBe(409)
  const end = () => cloud.operate('boss', 'POST', `/v1/admin/playgrounds/${id}/end`, { reason: 'abuse' })
  const ended = await end()
  expect(ended.status, JSON.stringify(ended.body)).toBe(200)
  expect(ended.body['playground']).toMatchObject({ state: 'deleting', end_reason: 'ended_by_staff' })
  expect((await end()).status).toBe(409)
  expect((await objectOf(id))?.metadata.deletionTimestamp).toBeDefined()
  await close(id)
  const written = await actions()
  expect(written).toContain('playground.start success user')
  expect(written).toContain('playground.end success user')
  expect(written).toContain('playground.end success staff')
  expect(written).toContain('playground.kubeconfig failed user')
  expect(written).toContain('playground.start denied user')
})

test('its time is over when the clock says so, even if nobody has noticed', async () => {
  const { id } = (await start()).body['playground']
  await database.db
    .updateTable('playground')
    .set({ expires_at: new Date(0) })
    .where('id', '=', id)
    .execute()
  expect((await owner.send('GET', path(id))).body['playground']).toMatchObject({
    state: 'deleting',
    end_reason: 'expired',
  })
  expect((await owner.send('GET', path(id, '/kubeconfig'))).status).toBe(409)
  expect((await owner.send('DELETE', path(id))).status).toBe(409)
})

test('none is started where its host has no room, or has no guests', async () => {
  const other = await cloud.signUp('other@example.com')
  const again = async () => (await other.send('POST', '/v1/playgrounds', { body: {} })).body
  cloud.controlPlanes.guestsObstacle = 'no image'
  expect(await again()).toMatchObject({ status: 503, reason: 'not_configured' })
  cloud.controlPlanes.guestsObstacle = ''
  cloud.controlPlanes.isAway = true
  expect(await again()).toMatchObject({ status: 503 })
  cloud.controlPlanes.isAway = false
  expect((await other.send('GET', '/v1/playgrounds')).body['items']).toEqual([])
})
