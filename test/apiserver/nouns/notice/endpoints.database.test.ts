import { afterAll, beforeAll, expect, test } from 'vitest'
import { addCredit } from '../../../../db/account/index.ts'
import { createStaff, issueSupportSession, redeemSupportCode } from '../../../../db/staff/index.ts'
import { newBase62, newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { LoadBalancer } from '../../../../resources/load-balancer/index.ts'
import { Server } from '../../../../resources/server/index.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'
import { makeSamples } from '../../samples.ts'

interface Shown {
  readonly id: string
  readonly kind: string
  readonly severity: string
  readonly resource: { readonly type: string; readonly id: string; readonly name: string } | null
  readonly at: string | null
  readonly is_dismissed: boolean
}

const DAY = 86_400_000
const database = useDatabase()
let cloud: Cloud
let ada: Person
let viewer: Person
const inDays = (days: number) => new Date(Date.now() + days * DAY)

beforeAll(async () => {
  cloud = await openCloud(database.db)
  ada = await cloud.signUp('ada@example.com')
  viewer = await cloud.join(ada.accountId, 'vera@example.com', 'viewer')
})
afterAll(() => cloud.close())

async function noticesOf(person: Person, query = ''): Promise<readonly Shown[]> {
  const reply = await person.send('GET', `/v1/notices${query}`)
  expect(reply.status, reply.text).toBe(200)
  return reply.body['items']
}
const ofKind = async (kind: string, person = ada): Promise<readonly Shown[]> =>
  (await noticesOf(person)).filter((notice) => notice.kind === kind)
const dismiss = (id: string, person = ada) => person.send('POST', `/v1/notices/${id}/dismiss`)

test('a new account has none', async () => {
  expect(await noticesOf(ada)).toEqual([])
})

test('a token that expires soon, to its own person only', async () => {
  const expires_at = inDays(5).toISOString()
  await ada.send('POST', '/v1/account/tokens', { body: { name: 'ci', scope: 'read', expires_at } })
  await ada.send('POST', '/v1/account/tokens', {
    body: { name: 'later', scope: 'read', expires_at: inDays(90).toISOString() },
  })
  expect(await ofKind('token_expiry')).toMatchObject([
    { severity: 'warning', resource: { type: 'api_token', name: 'ci' }, at: expires_at, is_dismissed: false },
  ])
  expect(await ofKind('token_expiry', viewer)).toEqual([])
})

test('a credit that expires soon, and the standing, to those who may read costs', async () => {
  const { db } = database
  await db.transaction().execute((tx) =>
    addCredit(tx, {
      id: newUuid(systemRandom),
      accountId: ada.accountId,
      label: 'Sorry',
      source: 'staff',
      amountCents: 700,
      now: new Date(),
      expiresAt: inDays(2),
    }),
  )
  expect(await ofKind('credit_expiry')).toMatchObject([{ severity: 'critical', resource: null }])
  expect(await ofKind('credit_expiry', viewer)).toEqual([])
  const suspend = (at: Date | null) =>
    db.updateTable('account').set({ suspended_by_staff_at: at }).where('id', '=', ada.accountId).execute()
  await suspend(new Date())
  expect(await ofKind('standing')).toMatchObject([{ severity: 'critical' }])
  expect(await ofKind('standing', viewer)).toEqual([])
  await suspend(null)
  expect(await ofKind('standing')).toEqual([])
})

test('a quota that is nearly used up; a larger one ends it', async () => {
  const set = (limit: number, used: number) =>
    cloud.db
      .updateTable('account_quota')
      .set({ limit, used })
      .where('account_id', '=', ada.accountId)
      .where('name', '=', 'networks')
      .execute()
  await set(10, 8)
  expect(await ofKind('quota_near', viewer)).toMatchObject([{ severity: 'info', resource: { id: 'networks' } }])
  await set(20, 8)
  expect(await ofKind('quota_near')).toEqual([])
  await set(20, 0)
})

test('a certificate that expires soon, and announced work', async () => {
  const ids = await makeSamples({ cloud, owner: ada })
  const namespace = accountNamespace(ada.accountId)
  const certificate = {
    id: 'c1',
    name: 'shop',
    dnsNames: ['shop.example.com'],
    fingerprint: 'f',
    notBefore: inDays(-80).toISOString(),
    notAfter: inDays(9).toISOString(),
  }
  await cloud.admin.patch(
    LoadBalancer,
    { namespace, name: ids['load-balancers'] ?? '' },
    { spec: { certificates: [certificate] } },
  )
  await expect
    .poll(() => ofKind('certificate_expiry'))
    .toMatchObject([
      { severity: 'warning', resource: { type: 'load_balancer', id: ids['load-balancers'] }, at: certificate.notAfter },
    ])
  const plannedAt = inDays(1).toISOString()
  await cloud.admin.patch(
    Server,
    { namespace, name: ids['servers'] ?? '' },
    { status: { state: 'started', nodeName: 'node-w' } },
    'status',
  )
  await cloud.addNode('node-w', {
    status: { plannedWork: { operationId: 'op', plannedAt, reason: 'New memory.', action: 'cold' } },
  })
  await expect
    .poll(() => ofKind('maintenance'))
    .toMatchObject([{ severity: 'warning', resource: { type: 'server', id: ids['servers'] }, at: plannedAt }])
})

test('an address that is not confirmed, to its person', async () => {
  const eve = await cloud.signUp('eve@example.com', { isVerified: false })
  expect(await noticesOf(eve)).toMatchObject([{ kind: 'email_unverified', severity: 'warning' }])
})

test('a dismissal holds, for one person alone', async () => {
  const [work] = await ofKind('maintenance')
  const dismissed = await dismiss(work?.id ?? '')
  expect(dismissed.status).toBe(204)
  expect(await cloud.auditOf(dismissed)).toMatchObject([{ action: 'notice.dismiss', resource_id: work?.id }])
  expect(await ofKind('maintenance')).toEqual([])
  expect((await noticesOf(ada, '?include_dismissed=true')).filter(({ is_dismissed }) => is_dismissed)).toMatchObject([
    { id: work?.id },
  ])
  expect((await ofKind('maintenance', viewer)).map(({ id }) => id)).toEqual([work?.id])
  expect((await dismiss(work?.id ?? '')).status).toBe(204)
  expect((await dismiss('maintenance-0')).status).toBe(404)
})

test('a token reads the notices of its person; it does not dismiss', async () => {
  const headers = { authorization: `Bearer ${await ada.token('read_write')}` }
  const read = (await cloud.send('GET', '/v1/notices', { headers })).body['items'] as Shown[]
  expect(read.map(({ id }) => id)).toEqual((await noticesOf(ada)).map(({ id }) => id))
  expect((await cloud.send('POST', `/v1/notices/${read[0]?.id}/dismiss`, { headers })).status).toBe(403)
})

test('support sees the notices of the account, and nothing of the owner', async () => {
  const { db } = database
  const now = new Date()
  const [staffId, secret] = [newUuid(systemRandom), `support_${newBase62(systemRandom, 43)}`]
  const later = new Date(now.getTime() + 3_600_000)
  await createStaff(db, {
    id: staffId,
    email: 's@staff.example',
    name: 'S',
    role: 'support',
    passwordHash: 'x',
    sealedSecret: 'x',
    now,
  })
  await db.transaction().execute(async (tx) => {
    await issueSupportSession(tx, {
      id: newUuid(systemRandom),
      accountId: ada.accountId,
      userId: ada.userId,
      consentId: null,
      staffId,
      staffEmail: 's@staff.example',
      staffName: 'S',
      mode: 'read_only',
      reason: 'r',
      ticket: null,
      code: 'code',
      createdAt: now,
      codeExpiresAt: later,
      expiresAt: later,
    })
    await redeemSupportCode(tx, 'code', secret, now)
  })
  const headers = { cookie: `svccloud_session=${secret}` }
  const seen = (await cloud.send('GET', '/v1/notices', { headers })).body['items'] as Shown[]
  const kinds = new Set(seen.map(({ kind }) => kind))
  expect([kinds.has('maintenance'), kinds.has('credit_expiry'), kinds.has('token_expiry')]).toEqual([true, true, false])
  expect(seen.filter(({ is_dismissed }) => is_dismissed)).toEqual([])
  expect((await noticesOf(ada)).some(({ kind }) => kind === 'token_expiry')).toBe(true)
})
