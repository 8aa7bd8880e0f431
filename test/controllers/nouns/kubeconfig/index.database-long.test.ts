/** Credentials in kubeconfigs end with what people have them by. Through the API, with a simulated control plane. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { endKubeconfigsOnce } from '../../../../controllers/nouns/kubeconfig/index.ts'
import { setActiveAccount } from '../../../../db/account/index.ts'
import type { KubeconfigsAwaiting } from '../../../../db/kubeconfig/index.ts'
import { claimPlayground, endPlayground, notePlaygroundReady } from '../../../../db/playground/index.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import { newOrderedUuid, newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import type { Role } from '../../../../domain/permissions.ts'
import { setAccountQuota } from '../../../apiserver/nouns/playground/allowance.ts'
import { type Cloud, openCloud, type Person } from '../../../apiserver/cloud.ts'
import { useDatabase } from '../../../database.ts'

const database = useDatabase()
let cloud: Cloud
let owner: Person
let member: Person
let playground: string
let controlPlaneId: string
let later = 0
const awaiting: KubeconfigsAwaiting[] = []
const clock = { ...systemClock, now: () => new Date(systemClock.now().getTime() + later) }

const round = () =>
  endKubeconfigsOnce({
    db: database.db,
    clock,
    random: systemRandom,
    log: silentLog,
    store: cloud.admin,
    controlPlanes: cloud.controlPlanes.offer,
    onKubeconfigsAwaiting: (each) => awaiting.push(each),
  })
const people = () => [...(cloud.controlPlanes.planes.get(controlPlaneId)?.people.entries() ?? [])]
const path = () => `/v1/playgrounds/${playground}/kubeconfig`
const download = async (person: Person, headers: Readonly<Record<string, string | undefined>> = {}) => {
  const answer = await person.send('GET', path(), { headers })
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  return String(answer.body['kubeconfig'])
}
const ended = async () =>
  (await owner.send('GET', '/v1/audit')).body['items']
    .filter(({ action }: { action: string }) => action === 'playground.kubeconfig_ended')
    .map(({ detail }: { detail: { user_id: string } }) => detail.user_id)

async function join(person: Person, role: Role): Promise<void> {
  const row = { account_id: owner.accountId, user_id: person.userId, role, joined_at: new Date() }
  await database.db.insertInto('membership').values(row).execute()
  await database.db.transaction().execute((tx) => setActiveAccount(tx, person.userId, owner.accountId))
}

beforeAll(async () => {
  cloud = await openCloud(database.db)
  cloud.controlPlanes.driver = 'process'
})
afterAll(() => cloud.close())

let count = 0
beforeEach(async () => {
  later = 0
  count += 1
  owner = await cloud.signUp(`owner-${count}@example.com`)
  member = await cloud.signUp(`member-${count}@example.com`)
  await setAccountQuota(database.db, owner.accountId, 3)
  await join(member, 'member')
  playground = newOrderedUuid(systemRandom, new Date())
  controlPlaneId = newUuid(systemRandom)
  const id = { accountId: owner.accountId, playgroundId: playground }
  const now = new Date()
  const made = { id: playground, name: `pg-${count}`, region: 'eu-1', controlPlaneId, release: '1.36.3' }
  const times = { appDomain: 'x.example', createdAt: now, expiresAt: new Date(now.getTime() + 4 * 3_600_000) }
  await database.db.transaction().execute((tx) => claimPlayground(tx, id.accountId, { ...made, ...times }))
  const entry = { endpoint: 'https://192.0.2.1:6443', certificateAuthority: 'CA', at: now }
  await notePlaygroundReady(database.db, id, entry)
  const desired = {
    id: controlPlaneId,
    release: '1.36.3',
    replicas: 1,
    serverNames: [],
    podCidrs: [],
    serviceCidrs: [],
  }
  await cloud.controlPlanes.control.ensure({ ...desired, replicas: 1, issuer: null })
})

test('each person and each token has a separate credential, the same again, with its role', async () => {
  const token = await owner.token('read_write')
  const first = await download(owner)
  const others = [
    await download(member),
    await download(owner, { cookie: undefined, authorization: `Bearer ${token}` }),
  ]
  expect(new Set([first, ...others]).size).toBe(3)
  expect(await download(owner)).toBe(first)
  expect(
    people()
      .map(([, role]) => role)
      .toSorted(),
  ).toEqual(['admin', 'admin', 'edit'])
  await round()
  expect(people()).toHaveLength(3)
  expect(await ended()).toEqual([])
})

test.each<[string, () => Promise<unknown>]>([
  ['the membership', () => owner.send('DELETE', `/v1/account/members/${member.userId}`)],
  [
    'the right to operate',
    () => owner.send('PATCH', `/v1/account/members/${member.userId}`, { body: { role: 'viewer' } }),
  ],
  ['the user', () => disable(member.userId)],
])('a credential ends with %s, and no other with it', async (_what, take) => {
  await download(owner)
  await download(member)
  expect(people()).toHaveLength(2)
  await take()
  await round()
  expect(people().map(([, role]) => role)).toEqual(['admin'])
  const rows = await database.db
    .selectFrom('kubeconfig_grant')
    .selectAll()
    .where('user_id', '=', member.userId)
    .execute()
  expect(rows).toMatchObject([{ ended_at: expect.any(Date), removed_at: expect.any(Date) }])
})
const disable = (id: string) =>
  database.db.updateTable('app_user').set({ disabled_at: new Date() }).where('id', '=', id).execute()

test('an administrator who becomes a member loses the rights of one, and gets those of a member', async () => {
  await owner.send('PATCH', `/v1/account/members/${member.userId}`, { body: { role: 'admin' } })
  await download(member)
  await owner.send('PATCH', `/v1/account/members/${member.userId}`, { body: { role: 'member' } })
  await download(member)
  await round()
  expect(people().map(([, role]) => role)).toEqual(['edit'])
  expect(await ended()).toEqual([member.userId])
})

test('a credential ends with the token that it was read by, and that of its person does not', async () => {
  const token = await member.token('read_write')
  await download(member)
  await download(member, { cookie: undefined, authorization: `Bearer ${token}` })
  const { items } = (await member.send('GET', '/v1/account/tokens')).body
  expect((await member.send('DELETE', `/v1/account/tokens/${items[0].id}`)).status).toBe(204)
  await round()
  expect(people()).toHaveLength(1)
})

test.each<[string, (grant: string) => Promise<unknown>]>([
  ['the time of its token', (id) => changeToken({ expires_at: new Date(Date.now() - 1_000) }, id)],
  ['the hour of its support session', (id) => supportSession({ expires_at: new Date(Date.now() - 1_000) }, id)],
  ['the end of its support session', (id) => supportSession({ ended_at: new Date() }, id)],
  ['the staff that its support session is of', (id) => supportSession({}, id, { disabled_at: new Date() })],
  ['the right of its staff to enter accounts', (id) => supportSession({}, id, { role: 'finance' })],
])('a credential ends with %s', async (_what, end) => {
  const token = await member.token('read_write')
  await download(member, { cookie: undefined, authorization: `Bearer ${token}` })
  const [[id] = ['']] = people()
  await supportSession({}, id)
  await round()
  expect(people()).toHaveLength(1)
  await end(id)
  await round()
  expect(people()).toEqual([])
  expect(await ended()).toEqual([member.userId])
})
async function changeToken(to: { readonly expires_at: Date }, grant: string): Promise<void> {
  const tokens = database.db.selectFrom('kubeconfig_grant').select('token_id').where('id', '=', grant)
  await database.db.updateTable('api_token').set(to).where('id', '=', tokens).execute()
}
/** The credential is one of a support session, which is so. */
async function supportSession(
  more: { readonly expires_at?: Date; readonly ended_at?: Date },
  grant: string,
  staff: { readonly disabled_at?: Date; readonly role?: 'finance' } = {},
): Promise<void> {
  const [id, staffId, now] = [newUuid(systemRandom), newUuid(systemRandom), new Date()]
  const person = {
    id: staffId,
    email: `${staffId}@example.com`,
    name: 'Sam',
    role: 'support',
    created_at: now,
  } as const
  await database.db
    .insertInto('staff_user')
    .values({ ...person, ...staff })
    .execute()
  const hour = new Date(now.getTime() + 3_600_000)
  const session = {
    id,
    account_id: owner.accountId,
    user_id: owner.userId,
    consent_id: null,
    mode: 'elevated' as const,
    staff_id: staffId,
    staff_email: person.email,
    staff_name: 'Sam',
    reason: 'help',
    ticket: null,
    code_hash: Buffer.from(id),
    code_expires_at: hour,
    secret_hash: null,
    created_at: now,
    expires_at: hour,
  }
  await database.db
    .insertInto('support_session')
    .values({ ...session, ...more })
    .execute()
  await database.db.updateTable('kubeconfig_grant').set({ support_session_id: id }).where('id', '=', grant).execute()
}

test('nobody gets a token of a credential that ends while the host makes it', async () => {
  cloud.controlPlanes.beforePersonToken = async () => {
    // What ends it does not wait for requests: it has removed it before the host makes it.
    await owner.send('DELETE', `/v1/account/members/${member.userId}`)
    await round()
  }
  const answer = await member.send('GET', path())
  cloud.controlPlanes.beforePersonToken = async () => {}
  expect([answer.status, answer.body['detail']]).toEqual([409, 'The credential has ended meanwhile.'])
  expect(JSON.stringify(answer.body)).not.toContain(people().map(([id]) => `of ${id}`)[0])
  // The host has made it, after it was removed: it is again.
  expect(people()).toHaveLength(1)
  later = 11 * 60_000
  await round()
  expect(people()).toEqual([])
})

test('who joins again has no credential of before', async () => {
  await download(member)
  await owner.send('DELETE', `/v1/account/members/${member.userId}`)
  await join(member, 'member')
  await download(await cloud.signUp(member.email, { isVerified: false }))
  expect(people()).toHaveLength(2)
  await round()
  expect(people()).toHaveLength(1)
})

test('a host that does not answer removes it later; a restored snapshot does not keep it', async () => {
  await download(member)
  const [[id, role] = ['', '']] = people()
  await owner.send('DELETE', `/v1/account/members/${member.userId}`)
  cloud.controlPlanes.isAway = true
  await round()
  expect(people()).toHaveLength(1)
  expect(awaiting.at(-1)).toMatchObject({ count: 1, since: expect.any(Date) })
  // However long it takes, it is not forgotten.
  later = 10 * 86_400_000
  await round()
  const kept = database.db.selectFrom('kubeconfig_grant').select('removed_at').where('id', '=', id)
  expect(await kept.execute()).toEqual([{ removed_at: null }])
  later = 0
  cloud.controlPlanes.isAway = false
  await round()
  expect(people()).toEqual([])
  expect(awaiting.at(-1)).toEqual({ count: 0 })
  cloud.controlPlanes.planes.get(controlPlaneId)?.people.set(id, role)
  await round()
  expect(people()).toHaveLength(1)
  later = 11 * 60_000
  await round()
  expect(people()).toEqual([])
})

test('an expired one is removed, and forgotten after a day; a deleted control plane is not asked', async () => {
  await download(member)
  later = 5 * 3_600_000
  await round()
  expect(people()).toEqual([])
  expect(await ended()).toEqual([])
  later += 86_400_000
  await round()
  const rows = () =>
    database.db.selectFrom('kubeconfig_grant').select('id').where('account_id', '=', owner.accountId).execute()
  expect(await rows()).toEqual([])
  later = 0
  await download(member)
  const id = { accountId: owner.accountId, playgroundId: playground }
  await database.db
    .transaction()
    .execute((tx) => endPlayground(tx, id, { reason: 'deleted', failureReason: '', at: new Date() }))
  await database.db.updateTable('playground').set({ deleted_at: new Date() }).where('id', '=', playground).execute()
  await owner.send('DELETE', `/v1/account/members/${member.userId}`)
  const calls = cloud.controlPlanes.calls.length
  await round()
  expect(cloud.controlPlanes.calls.slice(calls)).toEqual([])
})
