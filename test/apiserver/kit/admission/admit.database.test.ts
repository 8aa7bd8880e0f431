/** The webhook over HTTPS, asked by the embedded Kubernetes API about what people do there. */
import { request } from 'node:https'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type AdmissionOptions, openAdmission } from '../../../../apiserver/kit/admission/admit.ts'
import { AdmissionReview } from '../../../../apiserver/kit/admission/review.ts'
import { startAdmission } from '../../../../apiserver/kit/admission/start.ts'
import { KINDS } from '../../../../apiserver/nouns.ts'
import { listAudit } from '../../../../db/audit/index.ts'
import { listKubernetesRequests } from '../../../../db/request/index.ts'
import { mirrorNode } from '../../../../db/placement/index.ts'
import { claimServer } from '../../../../db/server/index.ts'
import { listQuotas } from '../../../../db/account/index.ts'
import { addServerGroup } from '../../../../db/server-group/index.ts'
import { type Core, openCore } from '../../../../embedded/kubernetes/core/core.ts'
import { webhookCaller } from '../../../../embedded/kubernetes/server/call-webhook.ts'
import { memoryStorage } from '../../../../embedded/kubernetes/storage/memory.ts'
import { type Caches, openCaches } from '../../../../kit/kube/caches.ts'
import { openClient } from '../../../../kit/kube/client.ts'
import { installCrds } from '../../../../kit/kube/crd.ts'
import { crds } from '../../../../controllers/kit/crds.ts'
import { type KubeObject, Namespace } from '../../../../kit/kube/object.ts'
import { ApiError, type Store } from '../../../../kit/kube/store.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import { openRegistry } from '../../../../kit/sys/metrics.ts'
import { newUuid, systemRandom as random } from '../../../../kit/sys/random.ts'
import { accountNamespace, RESOURCES } from '../../../../resources/index.ts'
import { BackupJob } from '../../../../resources/backup-job/index.ts'
import { Image, Instance, Volume } from '../../../../resources/instance/index.ts'
import { ManagedMachine } from '../../../../resources/managed-machine/index.ts'
import { Operation } from '../../../../resources/operation/index.ts'
import { Node, type NodeSpec } from '../../../../resources/node/index.ts'
import { Plan, Region, Template, Zone } from '../../../../resources/catalog/index.ts'
import { CustomImage, type CustomImageSpec, type CustomImageStatus } from '../../../../resources/custom-image/index.ts'
import { finalizerOf } from '../../../../resources/kit/define.ts'
import { ServerGroup, type ServerGroupSpec } from '../../../../resources/server-group/index.ts'
import { Server, type ServerSpec, type ServerState, type ServerStatus } from '../../../../resources/server/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { progressOf } from '../../../progress.ts'
import { PUBLIC_KEY } from '../../cloud.ts'
import { TINY_LINUX, TINY_PLAN } from '../../../catalog.ts'

const database = useDatabase()
const TOKEN = 'the-token-of-the-kubernetes-api'
const PLATFORM = 'system:svccloud:apiserver'
const AT = '2026-01-01T00:00:00Z'
const stop = new AbortController()
let core: Core
let listener: { readonly port: number; stop(): Promise<void> }
let platform: Store
let grace: Store
let caches: Caches
let accountId: string
let namespace: string

beforeAll(async () => {
  core = await openCore({ clock, random, log, storage: memoryStorage(), callWebhook: webhookCaller(TOKEN) })
  const storeOf = (name: string) =>
    openClient({
      transport: (call) => core.handle(call, { name, groups: ['system:masters'] }),
      fieldManager: 'tests',
      clock,
      random,
    })
  platform = storeOf(PLATFORM)
  grace = storeOf('grace@example.com')
  await installCrds(platform, crds(), clock)
  await platform.create(Region, { metadata: { name: 'r1' }, spec: { displayName: 'One', country: 'DE' } })
  await platform.create(Zone, {
    metadata: { name: 'z1' },
    spec: { displayName: 'Z', region: 'r1', isClosed: false, capabilities: [] },
  })
  await platform.create(Zone, {
    metadata: { name: 'full' },
    spec: { displayName: 'Full', region: 'r1', isClosed: false, capabilities: [] },
  })
  await platform.create(Plan, {
    metadata: { name: 'tiny' },
    spec: TINY_PLAN,
  })
  await platform.create(Template, {
    metadata: { name: 'tiny-linux' },
    spec: TINY_LINUX,
  })
  await mirrorNode(database.db, {
    node: 'n1',
    zone: 'z1',
    rack: 'r',
    cpuPool: null,
    dedicatedAccountId: null,
    isSchedulable: true,
    total: { cores: 64, memoryMebibytes: 65_536, storageGibibytes: 1_024 },
  })
  caches = openCaches({ store: platform, clock, random, log, registry: openRegistry({ isProcessWide: false }) })
  const admission = admissionWith(caches)
  caches.start(stop.signal)
  listener = await admission
  await caches.ready()
})
afterAll(async () => {
  stop.abort()
  await listener?.stop()
  await core?.close()
})
beforeEach(async () => {
  accountId = await openAccount({ isVerified: true, hasCredit: true })
  namespace = accountNamespace(accountId)
})

const admissionWith = (caches: Caches) =>
  startAdmission({
    store: platform,
    caches,
    db: database.db,
    clock,
    random,
    log,
    platformUsers: [PLATFORM],
    kinds: KINDS,
    host: '127.0.0.1',
    port: 0,
    callers: { token: TOKEN },
    certificateFiles: undefined,
    isRegistering: true,
    configurationName: 'svccloud',
  })

async function openAccount({
  isVerified,
  hasCredit,
}: {
  readonly isVerified: boolean
  readonly hasCredit: boolean
}): Promise<string> {
  const { db } = database
  const id = await createAccount(db)
  const userId = newUuid(random)
  await db
    .insertInto('app_user')
    .values({
      id: userId,
      email: `${id}@example.com`,
      name: null,
      password_hash: null,
      email_verified_at: isVerified ? new Date(AT) : null,
      own_account_id: id,
      active_account_id: id,
      created_at: new Date(AT),
    })
    .execute()
  await db
    .insertInto('membership')
    .values({ account_id: id, user_id: userId, role: 'owner', joined_at: new Date(AT) })
    .execute()
  if (hasCredit)
    await db
      .insertInto('credit')
      .values({
        id: newUuid(random),
        account_id: id,
        label: 'Welcome',
        source: 'staff',
        amount_cents: 1_000,
        spent_cents: 0,
        created_at: new Date(AT),
      })
      .execute()
  await platform.create(Namespace, { metadata: { name: accountNamespace(id) }, spec: {} })
  return id
}

const bare = {
  hostname: 'web',
  zone: 'z1',
  plan: 'tiny',
  template: 'tiny-linux',
  sshKeys: [PUBLIC_KEY],
} as unknown as ServerSpec // the API server fills in the defaults
const create = (
  spec: Partial<ServerSpec> = {},
  by: Store = grace,
  at = namespace,
  metadata: Partial<KubeObject['metadata']> = {},
) => by.create(Server, { metadata: { ...metadata, name: 'web', namespace: at }, spec: { ...bare, ...spec } })
const edit = (patch: object, by: Store = grace, subresource?: 'status') =>
  by.patch(Server, { namespace, name: 'web' }, patch, subresource)
const remove = (by: Store = grace) => by.delete(Server, { namespace, name: 'web' })
const refusal = async (write: Promise<unknown>): Promise<ApiError> => {
  const answer = await write.catch((error: unknown) => error)
  if (!(answer instanceof ApiError)) throw new Error(`it was not refused: ${JSON.stringify(answer)}`)
  return answer
}
const said = async (write: Promise<unknown>) => {
  const { code, message } = await refusal(write)
  return `${code} ${message.replace('admission webhook "admission.svccloud.dev" denied the request: ', '')}`
}
const audited = async () =>
  (await listAudit(database.db, accountId, { limit: 100 })).map(
    ({ action, actor_email, outcome, detail }) =>
      `${action} ${actor_email} ${outcome} ${detail['reason'] ?? detail['status'] ?? ''}`,
  )
const stanza = (kind: 'server.create' | 'server.start') =>
  ({ id: newUuid(random), kind, requestedAt: AT, deadlineAt: AT, actor: 'user:1', requestId: 'r' }) as const

/** A server that the platform made, in the state; at work when it has an operation that has not ended. */
async function standing(
  state: ServerState,
  { isBusy = false, ...spec }: Partial<ServerSpec> & { readonly isBusy?: boolean } = {},
): Promise<KubeObject<ServerSpec, ServerStatus>> {
  const operation = stanza('server.start')
  await create({ ...spec, operation }, platform, namespace, { finalizers: [finalizerOf(Server)] })
  const progress = progressOf(operation, { status: isBusy ? 'running' : 'succeeded' })
  return edit({ status: { state, operation: progress } }, platform, 'status')
}
/** Who asked, and for what, as the controller will find it. */
const asked = async (server: KubeObject, after = 0) =>
  (await listKubernetesRequests(database.db, server.metadata.uid ?? '', { after, upTo: 99 })).map(
    ({ action, username, generation, changes }) => ({ action, username, generation, changes }),
  )

describe('a server that is made', () => {
  test('passes, and who asked is known', async () => {
    const server = await create()
    expect(await asked(server)).toEqual([
      { action: 'server.create', username: 'grace@example.com', generation: 1, changes: [] },
    ])
    expect((await listQuotas(database.db, accountId)).filter(({ used }) => used > 0)).toEqual([])
  })

  test('in a dry run leaves nothing behind, whatever is said to it', async () => {
    const dry = (spec: object) =>
      core.handle(
        {
          method: 'POST',
          path: `/apis/svccloud.dev/v1alpha1/namespaces/${namespace}/servers?dryRun=All`,
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({
            apiVersion: 'svccloud.dev/v1alpha1',
            kind: 'Server',
            metadata: { name: 'web' },
            spec: { ...bare, ...spec },
          }),
        },
        { name: 'grace@example.com', groups: ['system:masters'] },
      )
    const before = await database.db.selectFrom('kubernetes_request').select('uid').execute()
    expect((await dry({})).status).toBe(201)
    expect((await dry({ zone: 'full' })).status).toBe(503)
    expect(await database.db.selectFrom('kubernetes_request').select('uid').execute()).toEqual(before)
    expect(await audited()).toEqual([])
  })

  test.each<readonly [string, Partial<ServerSpec>, string]>([
    ['smaller than its plan', { storageGibibytes: 0 }, '422 '],
    ['with an address where none is free', { publicIpv4: true }, '503 no_free_address: '],
    [
      'beyond the quota',
      { storageGibibytes: 16_384 },
      "422 quota_exceeded: The account's limit of 10240 storage_gibibytes would be exceeded",
    ],
  ])('%s is refused', async (_why, spec, expected) => {
    expect(await said(create(spec))).toContain(expected)
    expect(await grace.get(Server, { namespace, name: 'web' })).toBeUndefined()
  })

  test('under a hostname that is taken is refused, and the audit log has it', async () => {
    const other = {
      accountId,
      serverId: 'other',
      hostname: 'web',
      zone: 'z1',
      cores: 1,
      memoryMebibytes: 1,
      storageGibibytes: 1,
    }
    await database.db.transaction().execute((tx) => claimServer(tx, other, { now: new Date(AT), random }))
    expect(await said(create())).toContain('409 name_taken: ')
    expect(await audited()).toEqual(['server.create user:grace@example.com failed name_taken'])
  })

  test('needs an account that may pay, and whose owner has a verified address', async () => {
    expect(
      await said(create({}, grace, accountNamespace(await openAccount({ isVerified: false, hasCredit: true })))),
    ).toContain('403 email_unverified: ')
    expect(
      await said(create({}, grace, accountNamespace(await openAccount({ isVerified: true, hasCredit: false })))),
    ).toContain('402 payment_method_required: ')
    expect(await said(create({}, grace, 'default'))).toContain('400 The namespace belongs to no account')
  })
})

const suspend = () =>
  database.db
    .updateTable('account')
    .set({ suspended_for_payment_at: new Date(AT) })
    .where('id', '=', accountId)
    .execute()

describe('a server that is changed', () => {
  test('gets no other plan while its account is suspended, and is started all the same', async () => {
    await standing('stopped', { desiredPower: 'stopped' })
    await suspend()
    expect(await said(edit({ spec: { storageGibibytes: 20 } }))).toContain('402 account_suspended: ')
    await edit({ spec: { desiredPower: 'running' } })
  })

  test('is stopped, started and renamed by those who may, and who asked is known', async () => {
    const server = await standing('started')
    const stopped = await edit({ spec: { desiredPower: 'stopped', title: 'New' } })
    expect(stopped.metadata.generation).toBe(2)
    expect(await asked(server, 1)).toEqual(
      expect.arrayContaining([
        { action: 'server.stop', username: 'grace@example.com', generation: 2, changes: [] },
        {
          action: 'server.update',
          username: 'grace@example.com',
          generation: 2,
          changes: [{ field: 'title', before: '', after: 'New' }],
        },
      ]),
    )
    await edit({ spec: { haPolicy: 'none', migrationPolicy: 'strict' } })
    expect((await asked(server, 2)).map(({ action, changes }) => [action, changes[0]?.field])).toEqual(
      expect.arrayContaining([
        ['server.ha_policy', 'ha_policy'],
        ['server.migration_policy', 'migration_policy'],
      ]),
    )
    await edit({ spec: { metadataEnabled: false } })
    expect((await asked(server, 3)).map(({ action }) => action)).toEqual(['server.metadata'])
    await edit({ spec: { firewall: { enabled: false } } })
    expect((await asked(server, 4)).map(({ action }) => action)).toEqual(['server.firewall'])
    await edit({ metadata: { labels: { mine: 'yes' } } })
    expect(await asked(server, 5)).toEqual([])
  })

  test.each([
    ['zone', { zone: 'full' }],
    ['group', { serverGroupId: 'group' }],
  ])('is never given another %s', async (_what, spec) => {
    const server = await standing('started')
    expect(await said(edit({ spec }))).toContain('422 Server.svccloud.dev "web" is invalid')
    expect(await asked(server)).toEqual([])
  })

  test('keeps its status and its finalizer', async () => {
    await standing('started')
    expect(await said(edit({ status: { state: 'stopped' } }, grace, 'status'))).toBe(
      '403 The status is written by the platform only.',
    )
    expect(await said(edit({ metadata: { finalizers: null } }))).toContain('403 The finalizer goes when')
    await expect(edit({ status: { stateDetail: 'x' } }, platform, 'status')).resolves.toBeDefined()
  })
})

describe('a server that is deleted', () => {
  test('goes when it may, and who asked is known', async () => {
    const server = await standing('started')
    await remove()
    const deleted = await grace.get(Server, { namespace, name: 'web' })
    expect(await asked(server)).toEqual([
      { action: 'server.delete', username: 'grace@example.com', generation: deleted?.metadata.generation, changes: [] },
    ])
    await remove() // asked again
  })
})

test('what follows from servers is written by the platform only', async () => {
  const spec = {
    kind: 'server.start',
    target: { type: 'server', id: 'web' },
    actor: 'user:1',
    requestId: 'r',
    createdAt: AT,
    deadlineAt: AT,
    stepCount: 1,
  } as const
  expect(await said(grace.create(Operation, { metadata: { name: 'op', namespace }, spec }))).toBe(
    '403 operations are written by the platform only.',
  )
  await platform.create(Operation, { metadata: { name: 'op', namespace }, spec })
  expect(await said(grace.delete(Operation, { namespace, name: 'op' }))).toBe(
    '403 operations are written by the platform only.',
  )
})

describe('a server from a custom image', () => {
  async function image(status: Partial<CustomImageStatus> = {}): Promise<void> {
    const key = { namespace, name: 'mine' }
    const source = { url: 'https://images.example.com/disk.qcow2', checksum: 'a'.repeat(64) }
    await platform.create(CustomImage, { metadata: key, spec: { zone: 'z1', title: 'Mine', labels: {}, source } })
    const online = { status: { state: 'online', sizeGibibytes: 1, ...status } }
    const written = await platform.patch(CustomImage, key, online, 'status')
    caches.of<CustomImageSpec, CustomImageStatus>(CustomImage).apply(written)
  }
  const SYSTEM = { template: undefined, customImageId: 'mine' }

  test('is made in the account of the image only', async () => {
    await image()
    expect((await create(SYSTEM)).spec.customImageId).toBe('mine')
    const other = accountNamespace(await openAccount({ isVerified: true, hasCredit: true }))
    expect(await said(create(SYSTEM, grace, other))).toContain('404 No such custom image')
  })

  test('is as large as the image needs', async () => {
    await image({ minMemoryMebibytes: 193 })
    expect(await said(create(SYSTEM))).toContain('400 spec.plan: the custom image needs 193 MiB of memory')
    await standing('stopped', { ...SYSTEM, desiredPower: 'stopped', plan: 'gone' })
    expect(await said(edit({ spec: { plan: 'tiny' } }))).toContain('400 spec.plan: the custom image needs 193 MiB')
  })

  test('has a disk that the image fits', async () => {
    await image({ sizeGibibytes: 2 })
    expect(await said(create(SYSTEM))).toContain('400 spec.storageGibibytes: the custom image needs 2')
  })
})

describe('a server in a group', () => {
  const group = (spec: Partial<ServerGroupSpec> = {}, name = 'front', metadata: Partial<KubeObject['metadata']> = {}) =>
    grace.create(ServerGroup, {
      metadata: { ...metadata, name, namespace },
      spec: { name: 'Front', spread: 'host', zone: 'z1', strict: true, ...spec } as ServerGroupSpec,
    })
  /** As its controller claims it. */
  const claimed = (name = 'front') =>
    database.db.transaction().execute((tx) =>
      addServerGroup(tx, accountId, {
        id: name,
        name: 'Front',
        zone: 'z1',
        region: 'r1',
        spread: 'host',
        isStrict: true,
        generation: 1,
        createdAt: new Date(AT),
      }),
    )

  test('with servers is not deleted; one that is strict takes no server where it has one', async () => {
    await group()
    await claimed()
    await create({ serverGroupId: 'front' })
    await database.db.transaction().execute((tx) =>
      claimServer(
        tx,
        {
          accountId,
          serverId: 'web',
          hostname: 'web',
          zone: 'z1',
          serverGroupId: 'front',
          cores: 1,
          memoryMebibytes: 192,
          storageGibibytes: 1,
        },
        { now: new Date(AT), random },
      ),
    )
    expect(await said(grace.delete(ServerGroup, { namespace, name: 'front' }))).toContain(
      '409 in_use: The group has 1 server.',
    )
    const second = grace.create(Server, {
      metadata: { name: 'web-2', namespace },
      spec: { ...bare, hostname: 'web-2', serverGroupId: 'front' },
    })
    expect(await said(second)).toContain('503 no_distinct_failure_domain')
    expect(await said(edit({ spec: { serverGroupId: 'other' } }))).toContain('serverGroupId')
    expect(await said(edit({ spec: { bootStorageId: 'mine' } }))).toContain('bootStorageId')
  })

  test('that is not there yet is waited for, as files are applied in any order', async () =>
    expect((await create({ serverGroupId: 'later' })).spec.serverGroupId).toBe('later'))
})

test('a caller that has not proven to be the Kubernetes API is answered, and leaves nothing behind', async () => {
  const caches = openCaches({ store: platform, clock, random, log, registry: openRegistry({ isProcessWide: false }) })
  const parts = { caches, db: database.db, clock, random, log, platformUsers: [PLATFORM], kinds: KINDS }
  const admit = openAdmission(parts)
  const stopCaches = new AbortController()
  caches.start(stopCaches.signal)
  await caches.ready()
  const review = (spec: object) =>
    AdmissionReview.parse({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      request: {
        uid: newUuid(random),
        resource: { group: 'svccloud.dev', resource: 'servers' },
        userInfo: { username: 'mallory' },
        namespace,
        operation: 'CREATE',
        object: {
          apiVersion: 'svccloud.dev/v1alpha1',
          kind: 'Server',
          metadata: { name: 'forged', namespace, uid: newUuid(random), generation: 1 },
          spec: Server.spec.parse({ sshKeys: [PUBLIC_KEY], ...spec }),
        },
      },
    }).request
  const good = { hostname: 'forged', zone: 'z1', plan: 'tiny', template: 'tiny-linux' }
  const bad = { ...good, storageGibibytes: 16_384 }
  const written = async () => [
    (await listAudit(database.db, accountId, { limit: 100 })).length,
    Number(
      (
        await database.db
          .selectFrom('kubernetes_request')
          .select(({ fn }) => fn.countAll<string>().as('count'))
          .where('username', '=', 'mallory')
          .executeTakeFirstOrThrow()
      ).count,
    ),
  ]
  const before = await written()
  const verdicts = async (isAuthenticated: boolean) =>
    (
      (await Promise.all([good, bad].map((spec) => admit(review(spec), { isAuthenticated })))) as {
        readonly response: { readonly allowed: boolean }
      }[]
    ).map(({ response }) => response.allowed)
  expect(await verdicts(false)).toEqual([true, false])
  expect(await written()).toEqual(before)
  expect(await verdicts(true)).toEqual([true, false])
  expect(await written(), 'the same reviews of the Kubernetes API are recorded').toEqual(before.map((one) => one + 1))
  stopCaches.abort()
})

test('the listener answers reviews and nothing else', async () => {
  const send = (method: string, path: string, body = '') =>
    new Promise<number>((resolve, reject) => {
      request(
        {
          host: '127.0.0.1',
          port: listener.port,
          method,
          path,
          headers: { authorization: `Bearer ${TOKEN}` },
          rejectUnauthorized: false,
          agent: false,
        },
        (response) => {
          response.resume()
          resolve(response.statusCode ?? 0)
        },
      )
        .once('error', reject)
        .end(body)
    })
  expect(await send('GET', '/admission')).toBe(405)
  expect(await send('POST', '/other')).toBe(404)
  expect(await send('POST', '/admission?timeout=10s', '{}')).toBe(400)
  expect(await send('POST', '/admission', 'nonsense')).toBe(400)
})

describe('a namespace that somebody deletes', () => {
  const isLeaving = async () => (await platform.get(Server, { namespace, name: 'web' }))?.metadata.deletionTimestamp
  const conditions = async () => {
    const found = await platform.get(Namespace, { name: namespace })
    return (found?.status as { conditions?: { type: string; message: string }[] } | undefined)?.conditions ?? []
  }
  const failure = async () =>
    (await conditions()).find(({ type }) => type === 'NamespaceDeletionContentFailure')?.message
  /** As when the webhook was switched off for a moment. */
  const deletePastWebhook = () => platform.delete(Namespace, { name: namespace })
  const letGo = async () => {
    await remove()
    await edit({ metadata: { finalizers: null } }, platform)
  }

  test('is kept as long as its account or its node is there', async () => {
    const ofNobody = accountNamespace(newUuid(random))
    await platform.create(Node, { metadata: { name: 'has-namespace' }, spec: { zone: 'z1' } as NodeSpec })
    for (const name of [ofNobody, 'node-has-namespace', 'node-of-nobody', 'else'])
      await platform.create(Namespace, { metadata: { name }, spec: {} })
    await expect.poll(() => caches.of(Node).get({ name: 'has-namespace' })).toBeDefined()
    for (const name of [namespace, 'node-has-namespace'])
      expect(await said(grace.delete(Namespace, { name }))).toContain('The namespace belongs to ')
    for (const name of [ofNobody, 'node-of-nobody', 'else']) await grace.delete(Namespace, { name })
  })

  test('takes nothing with it, says so, and goes when all was deleted by itself', async () => {
    await standing('started')
    await deletePastWebhook()
    await expect.poll(failure).toContain('Nothing of a customer is deleted with its namespace.')
    expect(await isLeaving()).toBeUndefined()
    await letGo()
    await expect.poll(() => platform.get(Namespace, { name: namespace }), { timeout: 60_000 }).toBeUndefined()
    expect(await audited()).toEqual([])
  })

  test('is taken back with all that was in it', async () => {
    const { metadata } = await standing('started')
    await deletePastWebhook()
    await expect.poll(failure).toBeDefined()
    const finalize = {
      method: 'PUT' as const,
      path: `/api/v1/namespaces/${namespace}/finalize`,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace }, spec: {} }),
    }
    expect((await core.handle(finalize, { name: 'grace@example.com', groups: ['system:masters'] })).status).toBe(200)
    await grace.create(Namespace, { metadata: { name: namespace }, spec: {} })
    const back = await platform.get(Server, { namespace, name: 'web' })
    expect(back?.metadata).toMatchObject({ uid: metadata.uid })
    expect(back?.metadata.deletionTimestamp).toBeUndefined()
  })
})

test.each([Instance, Volume, Image, BackupJob, ManagedMachine])(
  'what hosts hold is neither changed nor deleted by people: $kind',
  async ({ plural }) => {
    const path = `/apis/svccloud.dev/v1alpha1/namespaces/node-n9/${plural}/a`
    await platform.create(Namespace, { metadata: { name: 'node-n9' }, spec: {} }).catch(() => {})
    core.engine.store.put(`svccloud.dev/${plural}`, 'node-n9/a', {
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: RESOURCES.find((one) => one.plural === plural)?.kind ?? '',
      metadata: {
        name: 'a',
        namespace: 'node-n9',
        uid: newUuid(random),
        resourceVersion: '',
        creationTimestamp: AT,
        finalizers: ['svccloud.dev/held'],
      },
      spec: {},
    })
    const send = (method: 'DELETE' | 'PATCH', body?: object) =>
      core.handle(
        {
          method,
          path,
          headers: { 'content-type': 'application/merge-patch+json' },
          ...(body && { body: JSON.stringify(body) }),
        },
        { name: 'grace@example.com', groups: ['system:masters'] },
      )
    expect((await send('DELETE')).status).toBe(403)
    expect([403, 422]).toContain((await send('PATCH', { metadata: { finalizers: null } })).status)
    expect(core.engine.store.table(`svccloud.dev/${plural}`).get('node-n9/a')?.metadata).toMatchObject({
      finalizers: ['svccloud.dev/held'],
    })
  },
)

test('the platform continues when the webhook has stopped, and nobody else writes', async () => {
  const away = await admissionWith(
    openCaches({ store: platform, clock, random, log, registry: openRegistry({ isProcessWide: false }) }),
  )
  await away.stop()
  expect(await said(create())).toContain('500 Internal error occurred: failed calling webhook')
  await expect(create({}, platform)).resolves.toBeDefined()
})

describe('asked past the Kubernetes API', () => {
  const FORGED = { id: 'forged', kind: 'server.start', actor: 'user:somebody' }
  const ask = (plural: string, request: object, rules: Pick<AdmissionOptions, 'areAddressesConfirmed'> = {}) => {
    const admit = openAdmission({
      caches,
      db: database.db,
      clock,
      random,
      log,
      ...rules,
      platformUsers: [PLATFORM],
      kinds: KINDS,
    })
    const object = { apiVersion: 'svccloud.dev/v1alpha1', kind: 'Any', metadata: { name: 'any', namespace }, spec: {} }
    const review = AdmissionReview.parse({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      request: {
        uid: newUuid(random),
        resource: { group: 'svccloud.dev', resource: plural },
        userInfo: { username: 'grace@example.com' },
        namespace,
        operation: 'CREATE',
        object,
        dryRun: true,
        ...request,
      },
    })
    return admit(review.request, { isAuthenticated: true })
  }
  const REFUSED = { response: { allowed: false } }

  test('where no mail can be sent every address counts as confirmed, of an owner who may sign in', async () => {
    const unverifiedId = await openAccount({ isVerified: false, hasCredit: true })
    const metadata = { name: 'mine', namespace: accountNamespace(unverifiedId), uid: newUuid(random), generation: 1 }
    const object = {
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: 'Storage',
      metadata,
      spec: { zone: 'z1', title: 'd', sizeGibibytes: 1 },
    }
    const request = { namespace: metadata.namespace, object }
    const answer = async (rules: Pick<AdmissionOptions, 'areAddressesConfirmed'>) =>
      JSON.stringify(await ask('storages', request, rules))
    expect(await answer({})).toContain('email_unverified')
    expect(await answer({ areAddressesConfirmed: true })).not.toContain('email_unverified')
    await database.db
      .updateTable('app_user')
      .set({ disabled_at: new Date(AT) })
      .where('own_account_id', '=', unverifiedId)
      .execute()
    expect(await answer({ areAddressesConfirmed: true })).toContain('email_unverified')
  })

  test('one that nobody registered is refused, whatever is done with it', async () => {
    const object = { apiVersion: 'svccloud.dev/v1alpha1', kind: 'Widget', metadata: { name: 'any' }, spec: {} }
    for (const request of [
      { operation: 'CREATE' },
      { operation: 'UPDATE', oldObject: object },
      { operation: 'DELETE', object: null, oldObject: object },
      { operation: 'DELETE', userInfo: { username: 'system:serviceaccount:kube-system:namespace-controller' } },
    ])
      expect(await ask('widgets', request)).toMatchObject(REFUSED)
  })

  describe('the garbage collector', () => {
    const owned = {
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: 'Any',
      metadata: {
        name: 'any',
        namespace,
        finalizers: ['svccloud.dev/own', 'foregroundDeletion', 'orphan'],
        ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: 'o' }],
        managedFields: [],
      },
      spec: {},
    }
    const username = 'system:serviceaccount:kube-system:generic-garbage-collector'
    const change = (plural: string, metadata: object, more: object = {}) =>
      ask(plural, {
        operation: 'UPDATE',
        oldObject: owned,
        object: { ...owned, metadata: { ...owned.metadata, ...metadata }, ...more },
        userInfo: { username },
      })
    const alone = { finalizers: ['svccloud.dev/own'], ownerReferences: undefined }

    test.each(RESOURCES.map(({ plural }) => plural))('ends what it began in %s', async (plural) => {
      expect(await change(plural, alone)).toMatchObject({ response: { allowed: true } })
    })

    test('changes nothing else of what the platform alone writes', async () => {
      expect(await change('databases', alone, { spec: { changed: true } })).toMatchObject(REFUSED)
      for (const metadata of [{ finalizers: [] }, { labels: { changed: 'yes' } }, { annotations: { changed: 'yes' } }])
        expect(await change('databases', { ...alone, ...metadata })).toMatchObject(REFUSED)
    })
  })

  const kept = RESOURCES.map(({ plural }) => plural).filter((plural) => plural !== Operation.plural)
  test.each(kept)('nothing in %s goes with its namespace', async (plural) => {
    const userInfo = { username: 'system:serviceaccount:kube-system:namespace-controller' }
    const oldObject = {
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: 'Any',
      metadata: { name: 'any', namespace },
      spec: {},
    }
    expect(await ask(plural, { operation: 'DELETE', object: null, oldObject, userInfo })).toMatchObject(REFUSED)
    const leaving = { ...oldObject, metadata: { ...oldObject.metadata, deletionTimestamp: AT } }
    const allowed = { response: { allowed: true } }
    expect(await ask(plural, { operation: 'DELETE', object: null, oldObject: leaving, userInfo })).toMatchObject(
      allowed,
    )
  })

  test.each(RESOURCES.map(({ plural }) => plural))('a person cannot forge an operation in %s', async (plural) => {
    const object = {
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: 'Any',
      metadata: { name: 'any', namespace },
      spec: { operation: FORGED },
    }
    expect(await ask(plural, { object })).toMatchObject(REFUSED)
  })

  test.each(RESOURCES.map(({ plural }) => plural))('a person cannot write the status of %s', async (plural) => {
    expect(await ask(plural, { operation: 'UPDATE', subResource: 'status' })).toMatchObject(REFUSED)
  })
})
