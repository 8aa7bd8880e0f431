import { hostname } from 'node:os'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { VERSION } from '../../../../domain/version.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud

beforeAll(async () => {
  cloud = await openCloud(database.db)
  await cloud.grant('olga', [{ resources: ['operations'], verbs: ['get', 'update'] }])
})
afterAll(() => cloud.close())

test('operators see the members, the database and the version', async () => {
  expect((await cloud.operate('olga', 'GET', '/v1/operator/control-plane')).body).toEqual({
    members: [
      { node_id: hostname(), role: 'apiserver', is_healthy: true, version: VERSION },
      { node_id: 'kubernetes', role: 'kubernetes', is_healthy: true, version: null },
    ],
    quorum: true,
    database: { primary: expect.stringMatching(/^(127\.0\.0\.1|::1|local)$/), replicas: [], lag_seconds: null },
    version: VERSION,
    conditions: [{ type: 'WritesJudged', status: 'True', reason: 'WebhookServed', message: expect.any(String) }],
  })
})

test('where no webhook is served they see that writes past the API are not judged', async () => {
  const open = await openCloud(database.db, { isWebhookCalled: false })
  await open.grant('olga', [{ resources: ['operations'], verbs: ['get'] }])
  const [condition] = (await open.operate('olga', 'GET', '/v1/operator/control-plane')).body['conditions']
  await open.close()
  expect(condition).toMatchObject({ type: 'WritesJudged', status: 'False', reason: 'NoWebhook' })
})

test.each([
  ['expand', { node_ids: ['host-1', 'host-2'] }],
  ['shrink', { node_ids: ['host-1'], reason: 'It is broken.' }],
])('%s says why it cannot be had, and that somebody wanted it is written down', async (verb, body) => {
  const refused = await cloud.operate('olga', 'POST', `/v1/operator/control-plane/${verb}`, body)
  expect([refused.status, refused.body['detail']]).toEqual([501, expect.stringContaining('does not administer')])
  expect(await cloud.staffAuditOf(refused)).toMatchObject([
    { action: `control_plane.${verb}`, detail: { outcome: 'failed', status: '501' } },
  ])
  expect((await cloud.operate('olga', 'POST', `/v1/operator/control-plane/${verb}`, {})).status).toBe(400)
})
