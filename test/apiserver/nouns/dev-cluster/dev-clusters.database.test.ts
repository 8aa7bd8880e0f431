/** Dev clusters through the API. No controllers run: tests say what they would. */
import { createHash, createPublicKey, verify } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { endKubeconfigsOnce } from '../../../../controllers/nouns/kubeconfig/index.ts'
import { countKubeconfigsAwaiting, listOverKubeconfigs } from '../../../../db/kubeconfig/index.ts'
import { PRODUCTION_WARNING } from '../../../../domain/dev-cluster/rules.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { Plan } from '../../../../resources/catalog/index.ts'
import { DevCluster, type DevClusterStatus } from '../../../../resources/dev-cluster/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { ENDED_KUBECONFIGS_ANNOTATION } from '../../../../resources/kit/labels.ts'
import { Server } from '../../../../resources/server/index.ts'
import { useDatabase } from '../../../database.ts'
import { until } from '../../../eventually.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'
import { KEY, offerDevClusters } from './sample.ts'

const database = useDatabase()
let cloud: Cloud
let owner: Person
let clusterId: string

const BODY = { name: 'other', plan: 'starter-2c-4g', ssh_keys: [KEY] }
const make = (more: object = {}) =>
  owner.send('POST', '/v1/dev-clusters', { body: { ...BODY, zone: cloud.zone, ...more } })
const path = (rest = '') => `/v1/dev-clusters/${clusterId}${rest}`
const keyOf = () => ({ namespace: accountNamespace(owner.accountId), name: clusterId })
/** As its server says them. */
const adminsOf = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    name: `svccloud-admin-${index + 1}`,
    uid: `0b7f3c1e-5d0a-4f6b-9a57-00000000000${index + 1}`,
  }))
const say = (status: DevClusterStatus) => cloud.admin.patch(DevCluster, keyOf(), { status }, 'status')
/** Newest first. */
const audited = async () => {
  const own = database.db.selectFrom('audit_entry').select('action').where('account_id', '=', owner.accountId)
  return (await own.orderBy('sequence', 'desc').execute()).map(({ action }) => action)
}

beforeAll(async () => {
  cloud = await openCloud(database.db)
  owner = await cloud.signUp('owner@example.com')
  const missing = await make()
  expect([missing.status, missing.body['detail']]).toEqual([
    409,
    expect.stringContaining('sudo npm run image:dev-cluster'),
  ])
  await cloud.admin.apply(Plan, {
    metadata: { name: 'small' },
    spec: { family: 'starter', cores: 1, memoryMebibytes: 1_024, storageGibibytes: 10, priceMonthlyCents: 500 },
  })
  await cloud.admin.apply(Plan, {
    metadata: { name: 'huge' },
    spec: { family: 'starter', cores: 512, memoryMebibytes: 4_096, storageGibibytes: 20, priceMonthlyCents: 500 },
  })
  await offerDevClusters(cloud)
  const made = await until(
    'dev clusters to be offered',
    () => make({ name: 'playground' }),
    ({ status }) => status === 201,
  )
  clusterId = made.body['dev_cluster'].id
}, 180_000)
afterAll(() => cloud.close())

test('it starts as requested, with the warning', async () => {
  const { body, headers } = await owner.send('GET', path())
  expect(body['dev_cluster']).toMatchObject({
    id: clusterId,
    zone: cloud.zone,
    name: 'playground',
    version: '1.36',
    k3s_version: 'v1.36.3+plain',
    state: 'creating',
    server_id: null,
    endpoint: null,
    failure_reason: null,
    network_id: null,
    production_recommended: false,
    production_warning: PRODUCTION_WARNING,
    health: { api_server: 'unknown', node_ready: false, observed_at: null, detail: '' },
  })
  expect(headers['etag']).toBeDefined()
  expect((await owner.send('GET', '/v1/dev-clusters')).body['items']).toHaveLength(1)
  expect((await owner.send('GET', '/v1/dev-clusters/versions')).body).toMatchObject({
    items: [{ version: '1.36', k3s_version: 'v1.36.3+plain', is_default: true, status: 'supported' }],
    next_cursor: null,
    minimum_memory_mebibytes: 2_048,
  })
})

test('nobody gets in before it runs, nor into one that is simulated', async () => {
  for (const what of ['/kubeconfig', '/token']) expect((await owner.send('GET', path(what))).status).toBe(409)
  await say({ isMade: true, isSimulated: true })
  for (const what of ['/kubeconfig', '/token']) {
    const reply = await owner.send('GET', path(what))
    expect([reply.status, reply.body['detail']]).toEqual([409, expect.stringContaining('simulated')])
  }
})

test('a cluster from an image with one credential for everybody gives it to nobody, and says why', async () => {
  await say({ isMade: true, isSimulated: false, certificateAuthority: 'PEM', ipv6Address: '2001:db8:de::1' })
  const reply = await owner.send('GET', path('/kubeconfig'))
  expect([reply.status, reply.body['detail']]).toEqual([409, expect.stringContaining('make the cluster anew')])
})

test('its kubeconfig has a token of a service account for eight hours, by a key that its API knows', async () => {
  await say({
    isMade: true,
    isSimulated: false,
    certificateAuthority: 'PEM',
    admins: adminsOf(3),
    ipv6Address: '2001:db8:de::1',
    version: 'v1.36.3+plain',
  })
  const before = Date.now()
  const { status, body } = await owner.send('GET', path('/kubeconfig'))
  expect(status).toBe(200)
  const config = parse(body['kubeconfig'])
  expect(config.clusters[0].cluster).toEqual({
    server: 'https://[2001:db8:de::1]:6443',
    'certificate-authority-data': Buffer.from('PEM').toString('base64'),
  })
  expect(config.contexts.map(({ name }: { name: string }) => name)).toEqual(['admin', 'oidc'])
  expect(config.users[1].user.exec.args).toEqual(['exec-credential', '--cluster', `dev-cluster/${clusterId}`])
  const [header = '', claims = '', signature = ''] = String(config.users[0].user.token).split('.')
  const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString())
  const uid = (await cloud.admin.get(DevCluster, keyOf()))?.metadata.uid
  expect(read(claims)).toMatchObject({
    iss: `https://${uid}.dev-clusters.svccloud.internal`,
    sub: 'system:serviceaccount:kube-system:svccloud-admin-1',
    'kubernetes.io': { serviceaccount: adminsOf(1)[0] },
  })
  expect(read(claims).exp - read(claims).iat).toBe(28_800)
  expect(Date.parse(body['expires_at'])).toBeGreaterThan(before + 28_000_000)
  const { public_key } = await database.db.selectFrom('kubernetes_issuer').selectAll().executeTakeFirstOrThrow()
  const key = createPublicKey({ key: { ...public_key }, format: 'jwk' })
  const id = createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('base64url')
  expect(read(header)).toMatchObject({ alg: 'ES256', kid: id })
  const signed = Buffer.from(`${header}.${claims}`)
  expect(verify('sha256', signed, { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'))).toBe(true)
  expect((await audited())[0]).toBe('dev_cluster.kubeconfig')
})

/** Whose token the kubeconfig has; why not, where there is none. */
const accountOf = async (headers: Readonly<Record<string, string | undefined>> = {}) => {
  const { status, body } = await owner.send('GET', path('/kubeconfig'), { headers })
  if (status !== 200) return `${status} ${body['detail']}`
  const token = String(parse(body['kubeconfig']).users[0].user.token).split('.')[1] ?? ''
  return JSON.parse(Buffer.from(token, 'base64url').toString())['kubernetes.io'].serviceaccount
}

test("everybody has a separate account, the same again, while there is one that is nobody's", async () => {
  const [first, second, third] = adminsOf(3)
  const withToken = async () => ({ cookie: undefined, authorization: `Bearer ${await owner.token('read_write')}` })
  const [one, other, late] = [await withToken(), await withToken(), await withToken()]
  expect([await accountOf(), await accountOf(), await accountOf(one)]).toEqual([first, first, second])
  // At once: each has another.
  const both = await Promise.all([accountOf(other), accountOf(late)])
  expect(both.map((each) => each.name ?? String(each).slice(0, 3)).toSorted()).toEqual(['409', third?.name])
  expect(both).toContainEqual(expect.stringContaining('have a credential in the cluster at a time'))
  // One of which somebody in the cluster made another: who had it gets the next that is nobody's.
  const anew = { name: first?.name ?? '', uid: newUuid(systemRandom) }
  await say({ admins: [anew, ...adminsOf(3).slice(1)] })
  await until(
    'it to be known',
    () => accountOf(),
    (found) => found.uid === anew.uid,
  )
  const rows = database.db.selectFrom('kubeconfig_grant').select(['id', 'resource_type', 'cluster_role'])
  const live = await rows.where('resource_id', '=', clusterId).where('ended_at', 'is', null).execute()
  expect(live.map(({ id }) => id).toSorted()).toEqual([anew.uid, second?.uid, third?.uid].toSorted())
  expect(live[0]).toMatchObject({ resource_type: 'dev_cluster', cluster_role: 'admin' })
  await say({ admins: adminsOf(3) })
})

test('an account ends with what its holder has it by: done when the server says so, which is asked once', async () => {
  const { items } = (await owner.send('GET', '/v1/account/tokens')).body
  for (const { id } of items) await owner.send('DELETE', `/v1/account/tokens/${id}`)
  const ended = adminsOf(3)
  const round = () =>
    endKubeconfigsOnce({
      db: database.db,
      clock: systemClock,
      random: systemRandom,
      log: silentLog,
      store: cloud.admin,
      controlPlanes: cloud.controlPlanes.offer,
    })
  const cluster = () => cloud.admin.get(DevCluster, keyOf())
  const removed = async () => {
    const rows = database.db.selectFrom('kubeconfig_grant').select(['id', 'removed_at'])
    return (await rows.where('resource_id', '=', clusterId).where('removed_at', 'is not', null).execute()).map(
      ({ id }) => id,
    )
  }
  await round()
  expect((await audited()).filter((action) => action === 'dev_cluster.kubeconfig_ended')).toHaveLength(2)
  const told = (await cluster())?.metadata
  expect(told?.annotations?.[ENDED_KUBECONFIGS_ANNOTATION]?.split(',').toSorted()).toEqual(
    ended.map(({ uid }) => uid).toSorted(),
  )
  expect(await listOverKubeconfigs(database.db, told?.uid ?? '', new Date())).toEqual(
    expect.arrayContaining(ended.map(({ uid }) => uid)),
  )
  const isAwaited = ended[0]?.uid ?? ''
  expect(await removed()).not.toContain(isAwaited)
  expect(await countKubeconfigsAwaiting(database.db, new Date())).toMatchObject({ count: 3, since: expect.any(Date) })
  await round()
  expect((await cluster())?.metadata.resourceVersion).toBe(told?.resourceVersion)
  await say({ admins: [] })
  await round()
  expect((await removed()).toSorted()).toEqual(expect.arrayContaining(ended.map(({ uid }) => uid)))
  expect(await countKubeconfigsAwaiting(database.db, new Date())).toEqual({ count: 0 })
})

test.each<[string, object]>([
  ['ended', { ended_at: new Date() }],
  ['expired', { expires_at: new Date(Date.now() - 1_000) }],
])('nobody gets a token of an account that has %s, while its server has it', async (_what, over) => {
  const admins = adminsOf(2).map(({ name }) => ({ name, uid: newUuid(systemRandom) }))
  await say({ admins })
  for (const { uid } of admins) {
    await until(
      'the next account',
      () => accountOf(),
      (found) => found.uid === uid,
    )
    await database.db.updateTable('kubeconfig_grant').set(over).where('id', '=', uid).execute()
  }
  expect(await accountOf()).toMatch(/^409/)
  await say({ admins: [] })
})

test('a short token says the role, for this cluster alone', async () => {
  const { body } = await owner.send('GET', path('/token'))
  const claims = JSON.parse(Buffer.from(String(body['token']).split('.')[1] ?? '', 'base64url').toString())
  const uid = (await cloud.admin.get(DevCluster, keyOf()))?.metadata.uid
  expect(claims).toMatchObject({ aud: uid, account_role: 'owner' })
  expect(claims.exp - claims.iat).toBe(900)
  expect((await audited())[0]).toBe('dev_cluster.token')
})

test('its server is seen and changed, but not deleted, rebuilt or renumbered', async () => {
  const name = 'machine-dev-1'
  const spec = Server.spec.parse({
    hostname: 'playground',
    zone: cloud.zone,
    plan: 'starter-2c-4g',
    template: 'dev-cluster',
    sshKeys: [],
    managedBy: `dev_cluster:${clusterId}`,
  })
  await cloud.admin.create(Server, { metadata: { ...keyOf(), name }, spec })
  const at = `/v1/servers/${name}`
  expect((await owner.send('GET', at)).body['server'].managed_by).toBeNull()
  expect((await owner.send('PATCH', at, { body: { title: 'Mine' } })).status).toBe(200)
  const refused = [
    await owner.send('DELETE', at),
    await owner.send('POST', `${at}/rebuild`, { body: { template: 'tiny-linux' } }),
    await owner.send('POST', `${at}/renumber-ipv6`),
  ]
  for (const { status, body } of refused) {
    expect([status, body['reason']]).toEqual([409, 'in_use'])
    expect(body['detail']).toContain(`dev cluster ${clusterId}`)
  }
})

test('it is deleted once', async () => {
  const { status, body } = await owner.send('DELETE', path())
  expect([status, body['dev_cluster'].state]).toEqual([200, 'deleting'])
  expect((await owner.send('DELETE', path())).status).toBe(409)
  expect((await owner.send('GET', path('/kubeconfig'))).status).toBe(409)
  expect(await audited()).toContain('dev_cluster.delete')
})
