/** The webhook over HTTPS, asked by the embedded Kubernetes API about what people do there. */
import { request } from 'node:https'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type AdmissionOptions, openAdmission } from '../../../../apiserver/kit/admission/admit.ts'
import { AdmissionReview } from '../../../../apiserver/kit/admission/review.ts'
import { startAdmission } from '../../../../apiserver/kit/admission/start.ts'
import { KINDS } from '../../../../apiserver/nouns.ts'
import { listAudit } from '../../../../db/audit/index.ts'
import { listKubernetesRequests } from '../../../../db/request/index.ts'
import { claimFloatingIp } from '../../../../db/floating-ip/index.ts'
import { claimNetwork } from '../../../../db/network/index.ts'
import { attachInterface } from '../../../../db/network-interface/index.ts'
import { mirrorNode } from '../../../../db/placement/index.ts'
import { mirrorPool, takeAddress } from '../../../../db/public-pool/index.ts'
import { claimRouter } from '../../../../db/router/index.ts'
import { claimServer } from '../../../../db/server/index.ts'
import { claimSnapshot } from '../../../../db/snapshot/index.ts'
import { claimStorage } from '../../../../db/storage/index.ts'
import { listQuotas } from '../../../../db/account/index.ts'
import { addServerGroup } from '../../../../db/server-group/index.ts'
import { type Core, openCore } from '../../../../embedded/kubernetes/core/core.ts'
import { webhookCaller } from '../../../../embedded/kubernetes/server/call-webhook.ts'
import { memoryStorage } from '../../../../embedded/kubernetes/storage/memory.ts'
import { type Caches, openCaches } from '../../../../kit/kube/caches.ts'
import { openClient } from '../../../../kit/kube/client.ts'
import { installCrds } from '../../../../kit/kube/crd.ts'
import { crds } from '../../../../controllers/kit/crds.ts'
import { type KubeObject, Namespace, type ResourceType } from '../../../../kit/kube/object.ts'
import { ApiError, type Store } from '../../../../kit/kube/store.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import { openRegistry } from '../../../../kit/sys/metrics.ts'
import { newUuid, systemRandom as random } from '../../../../kit/sys/random.ts'
import { accountNamespace, RESOURCES } from '../../../../resources/index.ts'
import { LAST_CHANGE_ANNOTATION } from '../../../../resources/kit/labels.ts'
import { FloatingIp, type FloatingIpSpec } from '../../../../resources/floating-ip/index.ts'
import { BackupJob } from '../../../../resources/backup-job/index.ts'
import { Image, Instance, Volume } from '../../../../resources/instance/index.ts'
import { ManagedMachine } from '../../../../resources/managed-machine/index.ts'
import { Network, type NetworkSpec } from '../../../../resources/network/index.ts'
import { Operation } from '../../../../resources/operation/index.ts'
import { Node, type NodeSpec, type NodeStatus } from '../../../../resources/node/index.ts'
import { Plan, Region, Template, type TemplateSpec, Zone } from '../../../../resources/catalog/index.ts'
import { CustomImage, type CustomImageSpec, type CustomImageStatus } from '../../../../resources/custom-image/index.ts'
import { finalizerOf } from '../../../../resources/kit/define.ts'
import { PublicPool, type PublicPoolSpec } from '../../../../resources/public-pool/index.ts'
import { Router, type RouterSpec } from '../../../../resources/router/index.ts'
import { ServerGroup, type ServerGroupSpec } from '../../../../resources/server-group/index.ts'
import { Server, type ServerSpec, type ServerState, type ServerStatus } from '../../../../resources/server/index.ts'
import { Snapshot, type SnapshotSpec } from '../../../../resources/snapshot/index.ts'
import { Storage, type StorageSpec, type StorageStatus } from '../../../../resources/storage/index.ts'
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
    [
      'without a key',
      { sshKeys: [] },
      '400 spec.sshKeys: a server needs at least one SSH key, or user data: nobody could sign in',
    ],
    ['with a key that is none', { sshKeys: ['ssh-ed25519 nonsense'] }, '400 spec.sshKeys.0: '],
    ['in a zone that is not there', { zone: 'nowhere' }, '400 spec.zone: there is no zone nowhere; there are'],
    ['with a plan that is not there', { plan: 'huge' }, '400 spec.plan: there is no plan huge; there are'],
    [
      'from a template that is not there',
      { template: 'windows' },
      '400 spec.template: there is no template windows; there are',
    ],
    ['smaller than its plan', { storageGibibytes: 0 }, '422 '],
    ['with an address where none is free', { publicIpv4: true }, '503 no_free_address: '],
    ['with a label that is none', { labels: { '-': 'x' } }, '400 spec.labels.-: '],
    ['where there is no room', { zone: 'full' }, '503 no_capacity: Zone full has no room for this plan now.'],
    [
      'beyond the quota',
      { storageGibibytes: 16_384 },
      "422 quota_exceeded: The account's limit of 10240 storage_gibibytes would be exceeded",
    ],
    ['larger than any disk', { storageGibibytes: 16_385 }, '400 spec.storageGibibytes: must be at most 16384'],
    [
      'with an operation of its own',
      { operation: stanza('server.create') },
      '403 spec.operation is written by the platform only',
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

  test('carries no note of the platform', async () => {
    expect(await said(create({}, grace, namespace, { annotations: { [LAST_CHANGE_ANNOTATION]: 'x' } }))).toContain(
      '403 The annotation',
    )
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

  test.each<readonly [string, Parameters<typeof standing>, object, string]>([
    [
      'stopped while it starts',
      ['starting', { isBusy: true }],
      { desiredPower: 'stopped' },
      '409 operation_in_progress: ',
    ],
    [
      'told of other metadata while it starts',
      ['starting', { isBusy: true }],
      { metadataEnabled: false },
      '409 operation_in_progress: ',
    ],
    ['stopped when it is not started', ['error'], { desiredPower: 'stopped' }, '409 state_not_allowed: '],
    [
      'started when it is gone already',
      ['deleting', { desiredPower: 'stopped' }],
      { desiredPower: 'running' },
      '409 state_not_allowed: ',
    ],
    ['given another zone', ['started'], { zone: 'full' }, '422 '],
    ['given a group', ['started'], { serverGroupId: 'group' }, '422 Server.svccloud.dev "web" is invalid'],
    [
      'given an operation',
      ['started'],
      { operation: { actor: 'user:somebody' } },
      '403 spec.operation is written by the platform only',
    ],
    ['freed of its operation', ['started'], { operation: null }, '403 spec.operation is written by the platform only'],
    [
      'given another plan while it runs',
      ['started'],
      { plan: 'large' },
      'plan cannot be changed: only a stopped server can get another plan; stop it first',
    ],
    [
      'given a plan that there is not',
      ['stopped'],
      { plan: 'unheard-of' },
      '400 spec.plan: there is no plan unheard-of; there are tiny',
    ],
    ['given a bad label', ['started'], { labels: { 'a b': '' } }, '400 spec.labels.a b: '],
  ])('is never %s', async (_why, world, spec, expected) => {
    const server = await standing(...world)
    expect(await said(edit({ spec }))).toContain(expected)
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

  test('stays while it is protected or at work, but for its creation', async () => {
    await standing('started', { isProtected: true })
    expect(await said(remove())).toContain('409 protected: ')
    expect(await audited()).toEqual(['server.delete user:grace@example.com failed protected'])
    await edit({ spec: { isProtected: false } })
    await remove()
  })

  test('is deleted while another operation runs, unless it is protected', async () => {
    await standing('starting', { isBusy: true, isProtected: true })
    expect(await said(remove())).toContain('409 protected: ')
    await platform.patch(Server, { namespace, name: 'web' }, { spec: { isProtected: false } })
    await remove()
  })

  test('goes while it is being made', async () => {
    await create({ operation: stanza('server.create') }, platform, namespace, { finalizers: [finalizerOf(Server)] })
    await remove()
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

describe('a storage', () => {
  const make = (spec: Partial<StorageSpec> = {}, by: Store = grace) =>
    by.create(Storage, {
      metadata: { name: 'disk', namespace },
      spec: { zone: 'z1', sizeGibibytes: 10, ...spec } as StorageSpec, // the API server fills in the defaults
    })
  const change = (spec: object) => grace.patch(Storage, { namespace, name: 'disk' }, { spec })
  /** One that is there and detached, and a server that holds room. */
  async function online(spec: Partial<StorageSpec> = {}): Promise<KubeObject<StorageSpec>> {
    await make(spec, platform)
    await database.db.transaction().execute(async (tx) => {
      await claimStorage(tx, { accountId, storageId: 'disk', zone: 'z1', sizeGibibytes: 10 }, new Date(AT))
      const room = { cores: 1, memoryMebibytes: 192, storageGibibytes: 1 }
      const server = { accountId, serverId: 'web', hostname: 'web', zone: 'z1' }
      await claimServer(tx, { ...server, ...room }, { now: new Date(AT), random })
    })
    return platform.patch(
      Storage,
      { namespace, name: 'disk' },
      { status: { state: 'online', sizeGibibytes: 10 } },
      'status',
    )
  }
  const claim = () =>
    database.db.selectFrom('storage_claim').select('phase').where('account_id', '=', accountId).execute()

  test('passes when it is made, and who asked is known; nothing is claimed for it', async () => {
    expect(await asked(await make())).toEqual([
      { action: 'storage.create', username: 'grace@example.com', generation: 1, changes: [] },
    ])
    expect(await claim()).toEqual([])
    expect((await listQuotas(database.db, accountId)).filter(({ used }) => used > 0)).toEqual([])
  })

  test.each<readonly [string, Partial<StorageSpec>, string]>([
    ['to boot from', { isBoot: true, serverId: 'web' }, '403 Boot storages are made by the platform only'],
    [
      'from a template',
      { source: { kind: 'template', id: 'tiny-linux' } },
      '403 Boot storages are made by the platform',
    ],
    ['in a zone that is not there', { zone: 'nowhere' }, '400 spec.zone: there is no such zone'],
    ['larger than any', { sizeGibibytes: 16_385 }, '16384'],
    ['with a bad label', { labels: { 'a b': '' } }, '400 spec.labels.a b: '],
    ['in a zone without room', { zone: 'full' }, '503 no_capacity: '],
  ])('is never made %s', async (_why, spec, expected) => {
    expect(await said(make(spec))).toContain(expected)
    expect(await claim()).toEqual([])
  })

  test('is attached and made larger by those who may, and nothing is claimed', async () => {
    const storage = await online()
    await change({ serverId: 'web', sizeGibibytes: 11 })
    expect((await asked(storage)).map(({ action }) => action).sort()).toEqual(['storage.attach', 'storage.resize'])
    expect(await claim()).toEqual([{ phase: 'detached' }])
  })

  test('is made no larger by an account that is suspended, which may attach it', async () => {
    await online()
    await suspend()
    expect(await said(change({ sizeGibibytes: 11 }))).toContain('402 account_suspended: ')
    await change({ serverId: 'web' })
  })

  test.each<readonly [string, Partial<StorageSpec>, object, string]>([
    ['moved to another zone', {}, { zone: 'full' }, 'zone cannot be changed'],
    ['made smaller', {}, { sizeGibibytes: 9 }, 'sizeGibibytes may grow, never shrink'],
    ['larger than its host', {}, { sizeGibibytes: 5_000 }, '503 no_capacity: '],
    ['given to a second server', { serverId: 'web' }, { serverId: 'other' }, '409 in_use: '],
    ['given to a server without room', {}, { serverId: 'other' }, '409 state_not_allowed: '],
    [
      'given an operation',
      {},
      { operation: { ...stanza('server.start'), kind: 'storage.attach' } },
      '403 spec.operation is written by the platform only',
    ],
  ])('is never %s', async (_why, spec, patch, expected) => {
    await online(spec)
    expect(await said(change(patch))).toContain(expected)
  })

  test('is deleted unless it is protected or attached', async () => {
    await online({ isProtected: true })
    const remove = () => grace.delete(Storage, { namespace, name: 'disk' })
    expect(await said(remove())).toContain('409 protected: ')
    await platform.patch(Storage, { namespace, name: 'disk' }, { spec: { isProtected: false, serverId: 'web' } })
    expect(await said(remove())).toContain('409 in_use: ')
    await platform.patch(Storage, { namespace, name: 'disk' }, { spec: { serverId: null } })
    await remove()
  })
})

describe('a snapshot', () => {
  const key = (name: string) => ({ namespace, name })
  /** Storages that are online, and what is kept of `disk`. */
  async function disk({ isBoot = false, tier = 'standard' as const, ...more }: Partial<StorageSpec> = {}) {
    await database.db.transaction().execute(async (tx) => {
      if (isBoot) await claimServer(tx, { ...WEB, accountId }, { now: new Date(AT), random })
      else await claimStorage(tx, { accountId, storageId: 'disk', zone: 'z1', sizeGibibytes: 10 }, new Date(AT))
    })
    const boot = isBoot ? { isBoot, serverId: 'web' } : {}
    const spec = { zone: 'z1', sizeGibibytes: 10, tier, ...boot, ...more } as StorageSpec // the rest has defaults
    await platform.create(Storage, { metadata: key('disk'), spec })
    const status = { state: 'online', sizeGibibytes: 10, nodeName: 'n1' }
    caches.of(Storage).apply(await platform.patch(Storage, key('disk'), { status }, 'status'))
  }
  const WEB = {
    serverId: 'web',
    hostname: 'web',
    zone: 'z1',
    cores: 1,
    memoryMebibytes: 192,
    storageGibibytes: 1,
  }
  async function taken(bootServerId?: string): Promise<void> {
    const claim = { accountId, snapshotId: 's1', storageId: 'disk', bootServerId, isShared: false, sizeGibibytes: 10 }
    await database.db.transaction().execute((tx) => claimSnapshot(tx, claim))
    await platform.create(Snapshot, { metadata: key('s1'), spec: { storageId: 'disk', title: '', labels: {} } })
    const status = { state: 'online', sizeGibibytes: 10, isFrozen: false }
    caches.of(Snapshot).apply(await platform.patch(Snapshot, key('s1'), { status }, 'status'))
  }
  const ofDisk = { storageId: 'disk' } as SnapshotSpec // the rest has defaults
  const take = (by = grace) => by.create(Snapshot, { metadata: key('s1'), spec: ofDisk })
  const clone = (spec: Partial<StorageSpec>, by = grace) =>
    by.create(Storage, {
      metadata: key('clone'),
      spec: { zone: 'z1', sizeGibibytes: 10, source: { kind: 'snapshot', id: 's1' }, ...spec } as StorageSpec, // too
    })
  const holds = async () =>
    (await database.db.selectFrom('storage_hold').select('holder').where('account_id', '=', accountId).execute()).map(
      ({ holder }) => holder,
    )

  test('passes when it is taken and when it goes; nothing is claimed for it', async () => {
    await disk()
    await take()
    expect(await holds()).toEqual([])
    await grace.delete(Snapshot, key('s1'))
  })

  test.each<readonly [string, () => Promise<unknown>, string]>([
    [
      'taken of a tier that has none',
      async () => {
        await disk({ tier: 'local-nvme' })
        return take()
      },
      '409 zone_capability_missing: ',
    ],
    [
      'taken of what a server boots from no longer',
      async () => {
        await create()
        await disk({ isBoot: true })
        return take()
      },
      '409 state_not_allowed: The storage goes',
    ],
    [
      'changed',
      async () => {
        await disk()
        await taken()
        return grace.patch(Snapshot, key('s1'), { spec: { storageId: 'other' } })
      },
      'storageId cannot be changed',
    ],
    [
      'lost with its storage',
      async () => {
        await disk()
        await taken()
        return grace.delete(Storage, key('disk'))
      },
      '409 in_use: ',
    ],
    [
      'lost with the server that boots from its storage',
      async () => {
        await create()
        await disk({ isBoot: true })
        await taken('web')
        return remove()
      },
      '409 in_use: ',
    ],
    [
      'deleted while a storage is made from it',
      async () => {
        await disk()
        await taken()
        caches.of(Storage).apply(await clone({}, platform))
        return grace.delete(Snapshot, key('s1'))
      },
      '409 in_use: ',
    ],
    [
      'made into a smaller storage',
      async () => {
        await disk()
        await taken()
        return clone({ sizeGibibytes: 9 })
      },
      '400 spec.sizeGibibytes: must be at least 10',
    ],
    [
      'made into a storage of another zone',
      async () => {
        await disk()
        await taken()
        return clone({ zone: 'full' })
      },
      '400 spec.zone: the source is in zone z1',
    ],
    [
      "made into a storage when it is somebody else's",
      async () => {
        const [own, mine] = [namespace, accountId]
        ;[accountId] = [await openAccount({ isVerified: true, hasCredit: true })]
        namespace = accountNamespace(accountId)
        await disk()
        await taken()
        ;[namespace, accountId] = [own, mine]
        return clone({})
      },
      '404',
    ],
  ])('is never %s', async (_what, write, expected) => {
    expect(await said(write())).toContain(expected)
  })
})

describe('a custom image', () => {
  const FILE = { url: 'https://images.example.com/disk.qcow2', checksum: 'a'.repeat(64) }
  const make = (spec: object = {}, name = 'copy', by: Store = grace) =>
    by.create(CustomImage, {
      metadata: { name, namespace },
      spec: { zone: 'z1', title: 'Mine', labels: {}, source: FILE, ...spec } as CustomImageSpec,
    })
  /** One that the platform made. */
  async function image(status: Partial<CustomImageStatus> = {}, spec: object = {}): Promise<KubeObject> {
    await make(spec, 'mine', platform)
    const written = await platform.patch(
      CustomImage,
      { namespace, name: 'mine' },
      { status: { state: 'online', sizeGibibytes: 1, ...status } },
      'status',
    )
    caches.of<CustomImageSpec, CustomImageStatus>(CustomImage).apply(written)
    return written
  }
  async function storage(status: Partial<StorageStatus> = {}, spec: Partial<StorageSpec> = {}): Promise<void> {
    const key = { namespace, name: 'disk' }
    const full = { zone: 'z1', sizeGibibytes: 10, ...spec } as StorageSpec // the API server fills in the defaults
    await platform.create(Storage, { metadata: key, spec: full })
    const patch = { status: { state: 'online', sizeGibibytes: 10, ...status } }
    caches.of<StorageSpec, StorageStatus>(Storage).apply(await platform.patch(Storage, key, patch, 'status'))
  }
  const elsewhere = async (): Promise<void> => {
    const own = namespace
    namespace = accountNamespace(await openAccount({ isVerified: true, hasCredit: true }))
    await image()
    await storage()
    namespace = own
  }

  test('passes when it is made, renamed and deleted, and who asked is known; nothing is claimed for it', async () => {
    const made = await make()
    expect(await asked(made)).toEqual([
      { action: 'template.create', username: 'grace@example.com', generation: 1, changes: [] },
    ])
    const mine = await image()
    await grace.patch(CustomImage, { namespace, name: 'mine' }, { spec: { title: 'Golden' } })
    await grace.delete(CustomImage, { namespace, name: 'mine' })
    expect(await asked(mine)).toMatchObject([
      { action: 'template.delete', changes: [] },
      { action: 'custom_image.update', changes: [{ field: 'title', before: 'Mine', after: 'Golden' }] },
    ])
    expect((await listQuotas(database.db, accountId)).filter(({ used }) => used > 0)).toEqual([])
  })

  const nothing = async (): Promise<void> => {}
  const STORAGE = { source: { storageId: 'disk' } }
  const IMAGE = { zone: 'full', source: { imageId: 'mine' } }
  test.each<readonly [string, () => Promise<unknown>, object, string]>([
    ['of nothing', nothing, { source: {} }, 'source has exactly one of'],
    ['of two', storage, { source: { ...FILE, storageId: 'disk' } }, 'source has exactly one of'],
    ['of a file without checksum', nothing, { source: { url: FILE.url } }, 'source.url comes with source.checksum'],
    ['in a zone that is not there', nothing, { zone: 'nowhere' }, '400 spec.zone: there is no such zone'],
    ['with a title that cannot be printed', nothing, { title: 'a\u0007' }, '400 spec.title: '],
    ['of a storage of nobody', nothing, STORAGE, '404 No such storage'],
    ["of another account's storage", elsewhere, STORAGE, '404 No such storage'],
    ['of a storage of another zone', storage, { ...STORAGE, zone: 'full' }, '400 spec.zone: the storage is in zone z1'],
    ['of a storage in error', () => storage({ state: 'error' }), STORAGE, '409 state_not_allowed: '],
    [
      'of a storage that is too large',
      () => storage({}, { sizeGibibytes: 1_025 }),
      STORAGE,
      '400 spec.source.storageId: it has 1025 GiB',
    ],
    [
      'of the storage of a server that runs',
      async () => {
        caches.of(Server).apply(await standing('started'))
        await storage({ serverId: 'web' }, { serverId: 'web' })
      },
      STORAGE,
      '409 server_not_stopped: ',
    ],
    ['of an image of nobody', nothing, IMAGE, '404 No such custom image'],
    ["of another account's image", elsewhere, IMAGE, '404 No such custom image'],
    ['of an image of its zone', image, { ...IMAGE, zone: 'z1' }, '400 spec.zone: the image is in this zone already'],
    ['of an image that is not online', () => image({ state: 'creating' }), IMAGE, '409 state_not_allowed: '],
    [
      'with an operation',
      nothing,
      { operation: { ...stanza('server.start'), kind: 'template.create' } },
      '403 spec.operation is written by the platform only',
    ],
  ])('is never made %s', async (_why, world, spec, expected) => {
    await world()
    expect(await said(make(spec))).toContain(expected)
    expect(await grace.get(CustomImage, { namespace, name: 'copy' })).toBeUndefined()
  })

  test.each<readonly [string, object, string]>([
    ['another zone', { zone: 'full' }, 'zone cannot be changed'],
    ['another source', { source: { ...FILE, checksum: 'b'.repeat(64) } }, 'source cannot be changed'],
    ['a title that cannot be printed', { title: 'a\u0007' }, '400 spec.title: '],
    ['a bad label', { labels: { 'a b': '' } }, '400 spec.labels.a b: '],
  ])('is never given %s', async (_what, spec, expected) => {
    await image()
    expect(await said(grace.patch(CustomImage, { namespace, name: 'mine' }, { spec }))).toContain(expected)
  })

  test('is deleted while it is made, which is waited for', async () => {
    await image({ state: 'creating' })
    await grace.delete(CustomImage, { namespace, name: 'mine' })
  })

  const SYSTEM = { template: undefined, customImageId: 'mine' }
  test('is what a server is made from', async () => {
    await image()
    expect((await create(SYSTEM)).spec.customImageId).toBe('mine')
  })

  test.each<readonly [string, () => Promise<unknown>, Partial<ServerSpec>, string]>([
    ['that nobody has', nothing, SYSTEM, '404 No such custom image'],
    ['that another account has', elsewhere, SYSTEM, '404 No such custom image'],
    ['of another zone', () => image({}, { zone: 'full' }), SYSTEM, '400 spec.customImageId: the image is in zone full'],
    ['that is not online', () => image({ state: 'creating' }), SYSTEM, '409 state_not_allowed: '],
    ['besides a template', image, { customImageId: 'mine' }, 'template'],
    [
      'that is larger than its disk',
      () => image({ sizeGibibytes: 2 }),
      SYSTEM,
      '400 spec.storageGibibytes: the custom image needs 2',
    ],
    [
      'that needs more memory than its plan has',
      () => image({ minMemoryMebibytes: 193 }),
      SYSTEM,
      '400 spec.plan: the custom image needs 193 MiB of memory',
    ],
  ])('%s is nothing to make a server from', async (_which, world, spec, expected) => {
    await world()
    expect(await said(create(spec))).toContain(expected)
    expect(await grace.get(Server, { namespace, name: 'web' })).toBeUndefined()
  })

  test('keeps its server from plans with too little memory', async () => {
    await image({ minMemoryMebibytes: 193 })
    await standing('stopped', { ...SYSTEM, desiredPower: 'stopped', plan: 'gone' })
    expect(await said(edit({ spec: { plan: 'tiny' } }))).toContain('400 spec.plan: the custom image needs 193 MiB')
  })
})

describe('a template', () => {
  const make = (name: string, spec: Partial<TemplateSpec> = {}, by: Store = grace, metadata: object = {}) =>
    by.create(Template, { metadata: { name, ...metadata }, spec: { ...TINY_LINUX, ...spec } })
  const image = { url: 'https://images.example.com/disk.qcow2', checksum: 'a'.repeat(64) }

  test('is made, changed and removed by those who may', async () => {
    await make('good', { image })
    await grace.patch(Template, { name: 'good' }, { spec: { deprecatedAt: '2026-01-01T00:00:00Z' } })
    await grace.delete(Template, { name: 'good' })
    expect(await platform.get(Template, { name: 'good' })).toBeUndefined()
  })

  test.each<readonly [string, Partial<TemplateSpec>, string]>([
    ['of two images', { image: { ...image, built: 'tiny-linux' } }, 'image has exactly one of built and url'],
    ['for larger disks than there are', { image, minStorageGibibytes: 16_385 }, 'must be at most 16384'],
    ['of a file without its checksum', { image: { url: image.url } }, 'image.url comes with image.checksum'],
    [
      'with an operation of its own',
      { image, operation: { ...stanza('server.start'), kind: 'template.create' } },
      '403 spec.operation is written by the platform only',
    ],
  ])('is refused %s', async (_what, spec, expected) => expect(await said(make('bad', spec))).toContain(expected))

  test('keeps its finalizer, and its deletion waits while it is being made', async () => {
    const operation = { ...stanza('server.start'), kind: 'template.create' } as const
    await make('young', { image, operation }, platform, { finalizers: [finalizerOf(Template)] })
    const key = { name: 'young' }
    expect(await said(grace.patch(Template, key, { metadata: { finalizers: null } }))).toContain('The finalizer goes')
    await grace.delete(Template, key)
    expect((await platform.get(Template, key))?.metadata.deletionTimestamp).toBeDefined()
    await platform.patch(Template, key, { metadata: { finalizers: null } })
  })
})

describe('a pool of addresses', () => {
  const make = (name: string, spec: Partial<PublicPoolSpec> = {}, by: Store = grace, metadata: object = {}) =>
    by.create(PublicPool, {
      metadata: { name, ...metadata },
      spec: { zone: 'z1', family: 'ipv6', cidr: '2001:db8::/40', use: 'server_ipv6_prefix', ...spec } as PublicPoolSpec,
    }) // the API server fills in the defaults

  test('is made, changed and removed by those who may', async () => {
    await make('good', { cidr: '2001:db8:ff00::/40' })
    await grace.patch(PublicPool, { name: 'good' }, { spec: { state: 'draining' } })
    await grace.delete(PublicPool, { name: 'good' })
    expect(await platform.get(PublicPool, { name: 'good' })).toBeUndefined()
  })

  test.each<readonly [string, Partial<PublicPoolSpec>, string]>([
    ['in a zone that is not there', { zone: 'nowhere' }, '400 spec.zone: there is no zone nowhere; there are'],
    ['that is no network', { cidr: '2001:db8::1/40' }, '400 spec.cidr: must be an IPv6 network'],
    ['that calls private what is public', { isPrivate: true }, '400 spec.isPrivate: the network is a public one'],
    [
      'with an operation of its own',
      { operation: { ...stanza('server.start'), kind: 'public_pool.sync' } },
      '403 spec.operation is written by the platform only',
    ],
  ])('is refused %s', async (_what, spec, expected) => expect(await said(make('bad', spec))).toContain(expected))

  test('is refused where it overlaps, and its removal while somebody has an address of it', async () => {
    const { metadata } = await make('mine', {}, platform, { finalizers: [finalizerOf(PublicPool)] })
    await platform.patch(PublicPool, metadata, { status: { state: 'active' } }, 'status')
    await database.db.transaction().execute((tx) =>
      mirrorPool(tx, {
        id: 'mine',
        zone: 'z1',
        family: 'ipv6',
        cidr: '2001:db8::/40',
        use: 'server_ipv6_prefix',
        state: 'active',
      }),
    )
    await database.db
      .transaction()
      .execute((tx) => takeAddress(tx, { zone: 'z1', use: 'server_ipv6_prefix', accountId, holder: 'server/holder' }))
    await expect
      .poll(() =>
        said(make('other', { cidr: '2001:db8:1::/48' }).then(() => grace.delete(PublicPool, { name: 'other' }))).catch(
          String,
        ),
      )
      .toContain('409 in_use: The network 2001:db8:1::/48 overlaps that of another pool.')
    expect(await said(grace.delete(PublicPool, metadata))).toContain('409 in_use: 1 of its addresses are in use.')
    expect(await said(grace.patch(PublicPool, metadata, { metadata: { finalizers: [] } }))).toContain(
      '403 The finalizer goes when nobody has an address of the pool.',
    )
    await database.db.deleteFrom('public_address').execute()
    await database.db.deleteFrom('public_pool').execute()
  })
})

/** What has claims as their controllers make them. */
const claimed = {
  network: async (networkId: string, ipv4Cidr: string, zone = 'z1') => {
    const claim = await database.db
      .transaction()
      .execute((tx) => claimNetwork(tx, { accountId, networkId, zone, name: networkId, ipv4Cidr }, random))
    const key = { namespace, name: networkId }
    await platform.create(Network, {
      metadata: { ...key, finalizers: [finalizerOf(Network)] },
      spec: { zone, name: networkId, ipv4Cidr } as NetworkSpec, // the API server fills in the defaults
    })
    const status = { ipv4Cidr: claim.ipv4Cidr, ipv6Prefix: claim.ipv6Prefix }
    caches.of(Network).apply(await platform.patch(Network, key, { status }, 'status'))
  },
  router: async (routerId: string, networkIds: readonly string[], natEnabled = false) => {
    await database.db
      .transaction()
      .execute((tx) => claimRouter(tx, { accountId, routerId, zone: 'z1', name: routerId, natEnabled, networkIds }))
    return platform.create(Router, {
      metadata: { namespace, name: routerId, finalizers: [finalizerOf(Router)] },
      spec: { zone: 'z1', name: routerId, natEnabled, networkIds: [...networkIds] } as RouterSpec, // the same
    })
  },
  /** In the network where one is given. */
  server: (serverId: string, networkId?: string) =>
    database.db.transaction().execute(async (tx) => {
      const room = { cores: 1, memoryMebibytes: 192, storageGibibytes: 1 }
      await claimServer(
        tx,
        { accountId, serverId, hostname: serverId, zone: 'z1', ...room },
        { now: new Date(AT), random },
      )
      if (networkId !== undefined)
        await attachInterface(
          tx,
          { accountId, serverId, networkId, networkUid: networkId },
          { now: new Date(AT), random },
        )
    }),
  floatingIp: async (floatingIpId: string, serverId?: string, target = 'public') => {
    const assignment = serverId === undefined ? undefined : { serverId, target }
    await database.db
      .transaction()
      .execute((tx) => claimFloatingIp(tx, { accountId, floatingIpId, zone: 'z1', assignment }))
    return platform.create(FloatingIp, {
      metadata: { namespace, name: floatingIpId, finalizers: [finalizerOf(FloatingIp)] },
      spec: { zone: 'z1', ...assignment },
    })
  },
}
/** Under way, for as long as the test lasts. */
const busy = <Spec, Status>(
  type: ResourceType<Spec, Status>,
  name: string,
  kind: 'network.sync' | 'router.sync' | 'floating_ip.sync',
) => {
  const operation = { ...stanza('server.start'), kind, arguments: { action: 'update' } }
  return platform.patch(type, { namespace, name }, { spec: { operation } })
}
const claims = async () =>
  (await listQuotas(database.db, accountId)).filter(({ used }) => used > 0).map(({ name, used }) => `${name} ${used}`)

describe('what networks are made of', () => {
  beforeAll(async () => {
    await platform.create(Zone, {
      metadata: { name: 'closed' },
      spec: { displayName: 'C', region: 'r1', isClosed: true, capabilities: [] },
    })
    for (const name of ['z1', 'closed'])
      caches.of(Zone).apply(await platform.patch(Zone, { name }, { status: { hasPrivateNetworks: true } }, 'status'))
  })
  beforeEach(() =>
    database.db.transaction().execute(async (tx) => {
      const pool = { id: 'floating', zone: 'z1', family: 'ipv4', state: 'active' } as const
      await mirrorPool(tx, { ...pool, cidr: '198.51.100.0/29', use: 'floating_ipv4' })
    }),
  )
  afterEach(async () => {
    await database.db.deleteFrom('floating_ip').execute()
    await database.db.deleteFrom('public_address').execute()
    await database.db.deleteFrom('public_pool').execute()
  })

  describe('a private network', () => {
    const make = (spec: Partial<NetworkSpec> = {}, name = 'new') =>
      grace.create(Network, {
        metadata: { namespace, name },
        spec: { zone: 'z1', name: 'New', ...spec } as NetworkSpec, // the API server fills in the defaults
      })
    const change = (patch: object, name = 'back') => grace.patch(Network, { namespace, name }, patch)
    const remove = (name = 'back') => grace.delete(Network, { namespace, name })

    test('passes when it is made, changed and deleted, and who asked is known; nothing is claimed for it', async () => {
      expect((await asked(await make())).map(({ action }) => action)).toEqual(['network.sync'])
      expect(await claims()).toEqual([])
      await claimed.network('back', '10.1.0.0/24')
      const changed = await change({ spec: { name: 'Renamed', labels: { tier: 'a' }, dnsServers: ['1.1.1.1'] } })
      expect((await asked(changed, 1)).map(({ action }) => action).sort()).toEqual(['network.sync', 'network.update'])
      await remove()
    })

    test.each<readonly [string, Partial<NetworkSpec>, string]>([
      ['in a zone that is not there', { zone: 'nowhere' }, '400 spec.zone: there is no'],
      ['in a zone without networks', { zone: 'full' }, '409 zone_capability_missing: '],
      ['in a closed zone', { zone: 'closed' }, '503 no_capacity: '],
      ['with a public range', { ipv4Cidr: '8.8.8.0/24' }, '400 spec.ipv4Cidr: must be in 10.0.0.0/8'],
      ['with bits beyond the prefix', { ipv4Cidr: '10.0.0.1/24' }, '400 spec.ipv4Cidr: '],
      ['with a large range', { ipv4Cidr: '10.0.0.0/8' }, '400 spec.ipv4Cidr: must have a prefix of 16 to 28 bits'],
      ['with a server of names that is none', { dnsServers: ['dns'] }, '400 spec.dnsServers.0: '],
      ['with a bad label', { labels: { 'a b': '' } }, '400 spec.labels.a b: '],
      ['with a name that nobody can read', { name: 'a\u0007' }, '400 spec.name: '],
      ['of the name of another', { name: 'back' }, '409 name_taken: '],
    ])('is never made %s', async (_why, spec, expected) => {
      await claimed.network('back', '10.1.0.0/24')
      expect(await said(make(spec))).toContain(expected)
      expect(await claims()).toEqual(['networks 1'])
    })

    test('is one too many beyond the quota, and needs an owner with a verified address', async () => {
      const limit = { limit: 0 }
      await database.db.updateTable('account_quota').set(limit).where('account_id', '=', accountId).execute()
      expect(await said(make())).toContain('422 quota_exceeded: ')
      namespace = accountNamespace(await openAccount({ isVerified: false, hasCredit: true }))
      expect(await said(make())).toContain('403 ')
    })

    test.each<readonly [string, object, string]>([
      ['moved to another zone', { spec: { zone: 'full' } }, 'zone cannot be changed'],
      ['given another range', { spec: { ipv4Cidr: '10.2.0.0/24' } }, 'ipv4Cidr cannot be changed'],
      ['given a server of names that is none', { spec: { dnsServers: ['dns'] } }, '400 spec.dnsServers.0: '],
      ['given the name of another', { spec: { name: 'front' } }, '409 name_taken: '],
      ['left without its finalizer', { metadata: { finalizers: null } }, '403 The finalizer goes when'],
      [
        'given an operation',
        { spec: { operation: { ...stanza('server.start'), kind: 'network.sync' } } },
        '403 spec.operation is written by the platform only',
      ],
    ])('is never %s', async (_why, patch, expected) => {
      await claimed.network('back', '10.1.0.0/24')
      await claimed.network('front', '10.2.0.0/24')
      expect(await said(change(patch))).toContain(expected)
    })

    test('is not announced to hosts while it changes, and its deletion waits; its name is its own', async () => {
      await claimed.network('back', '10.1.0.0/24')
      await busy(Network, 'back', 'network.sync')
      expect(await said(change({ spec: { dhcpEnabled: false } }))).toContain('409 operation_in_progress: ')
      await change({ spec: { name: 'Renamed' } })
      await remove()
    })

    test('stays while a router or a server is in it', async () => {
      await claimed.network('back', '10.1.0.0/24')
      await claimed.network('front', '10.2.0.0/24')
      await claimed.router('out', ['back'])
      await claimed.server('web', 'front')
      expect(await said(remove())).toContain('409 in_use: A router is in the network.')
      expect(await said(remove('front'))).toContain('409 in_use: A server is in the network.')
    })
  })

  describe('a router', () => {
    const make = (spec: Partial<RouterSpec> = {}, name = 'new') =>
      grace.create(Router, {
        metadata: { namespace, name },
        spec: { zone: 'z1', name: 'New', ...spec } as RouterSpec, // the API server fills in the defaults
      })
    const change = (patch: object, name = 'out') => grace.patch(Router, { namespace, name }, patch)
    const remove = (name = 'out') => grace.delete(Router, { namespace, name })
    const route = (destination: string, nextHop: string) => ({ destination, nextHop, comment: '' })

    test('passes when it is made, changed and deleted, and who asked is known; nothing is claimed for it', async () => {
      await claimed.network('back', '10.1.0.0/24')
      const made = await make({ networkIds: ['back', 'later'], natEnabled: true })
      expect((await asked(made)).map(({ action }) => action)).toEqual(['router.sync'])
      expect(await claims()).toEqual(['networks 1'])
      await claimed.router('out', ['back'])
      const changed = await change({
        spec: { name: 'Renamed', natEnabled: true, staticRoutes: [route('10.9.0.0/16', '10.1.0.9')] },
      })
      expect((await asked(changed, 1)).map(({ action }) => action).sort()).toEqual(['router.sync', 'router.update'])
      await change({ spec: { networkIds: [], staticRoutes: [] } })
    })

    test('passes when a network of it is there that has claimed nothing yet', async () => {
      const spec = { zone: 'z1', name: 'Unclaimed' } as NetworkSpec // the API server fills in the defaults
      caches.of(Network).apply(await platform.create(Network, { metadata: { namespace, name: 'unclaimed' }, spec }))
      await make({ networkIds: ['unclaimed'] })
    })

    test.each<readonly [string, Partial<RouterSpec>, string]>([
      ['in a zone that is not there', { zone: 'nowhere' }, '400 spec.zone: there is no'],
      ['in a zone without networks', { zone: 'full' }, '409 zone_capability_missing: '],
      ['in a closed zone', { zone: 'closed' }, '503 no_capacity: '],
      ['with a route to nowhere', { staticRoutes: [route('127.0.0.0/8', '10.1.0.9')] }, '400 spec.staticRoutes.0.dest'],
      ['with a route by nobody', { staticRoutes: [route('10.9.0.0/16', '10.7.0.9')] }, '400 spec.staticRoutes.0.next'],
      [
        'with a second way outside',
        { natEnabled: true, networkIds: ['back'], staticRoutes: [route('0.0.0.0/0', '10.1.0.9')] },
        '400 spec.staticRoutes.0.destination: is where the address of the router leads already',
      ],
      ['at a network that is at another', { networkIds: ['front'] }, '409 in_use: The network is at a router already.'],
      ['at networks that overlap', { networkIds: ['back', 'over'] }, '409 in_use: '],
      [
        'with a comment that nobody can read',
        { staticRoutes: [{ ...route('10.9.0.0/16', '10.1.0.9'), comment: 'a\u0007' }] },
        '400 spec.staticRoutes.0.comment: ',
      ],
      ['of the name of another', { name: 'out' }, '409 name_taken: '],
    ])('is never made %s', async (_why, spec, expected) => {
      await claimed.network('back', '10.1.0.0/24')
      await claimed.network('over', '10.1.0.128/25')
      await claimed.network('front', '10.2.0.0/24')
      await claimed.router('out', ['front'])
      expect(await said(make(spec))).toContain(expected)
      expect(await claims()).toEqual(['networks 3', 'routers 1'])
    })

    test('needs an account that may pay, and an address where it has NAT', async () => {
      await database.db.updateTable('public_pool').set({ state: 'draining' }).execute()
      expect(await said(make({ natEnabled: true }))).toContain('503 no_free_address: ')
      accountId = await openAccount({ isVerified: true, hasCredit: false })
      namespace = accountNamespace(accountId)
      expect(await said(make())).toContain('402 ')
    })

    test.each<readonly [string, object, string]>([
      ['moved to another zone', { spec: { zone: 'full' } }, 'zone cannot be changed'],
      ['given a route by nobody', { spec: { staticRoutes: [route('10.9.0.0/16', '10.7.0.9')] } }, '400 spec.static'],
      ['given a network of another router', { spec: { networkIds: ['back', 'front'] } }, '409 in_use: '],
      ['given a network that overlaps its own', { spec: { networkIds: ['back', 'over'] } }, '409 in_use: '],
      ['given the name of another', { spec: { name: 'other' } }, '409 name_taken: '],
      ['left without the NAT of a floating IP', { spec: { natEnabled: false } }, '409 in_use: A floating IP'],
      ['left without the network of a floating IP', { spec: { networkIds: [] } }, '409 in_use: A floating IP'],
      ['left without its finalizer', { metadata: { finalizers: null } }, '403 The finalizer goes when'],
    ])('is never %s', async (_why, patch, expected) => {
      await claimed.network('back', '10.1.0.0/24')
      await claimed.network('over', '10.1.0.128/25')
      await claimed.network('front', '10.2.0.0/24')
      await claimed.router('out', ['back'], true)
      await claimed.router('other', ['front'])
      await claimed.server('web', 'back')
      await claimed.floatingIp('f', 'web', 'private:back')
      expect(await said(change(patch))).toContain(expected)
    })

    test('stays while a network is at it; its deletion waits while it changes', async () => {
      await claimed.network('back', '10.1.0.0/24')
      await claimed.router('out', ['back'])
      expect(await said(remove())).toContain('409 in_use: ')
      await claimed.router('bare', [])
      await busy(Router, 'bare', 'router.sync')
      expect(await said(change({ spec: { natEnabled: true } }, 'bare'))).toContain('409 operation_in_progress: ')
      await remove('bare')
    })
  })

  describe('a floating IP', () => {
    const make = (spec: Partial<FloatingIpSpec> = {}, name = 'new') =>
      grace.create(FloatingIp, { metadata: { namespace, name }, spec: { zone: 'z1', ...spec } })
    const change = (patch: object) => grace.patch(FloatingIp, { namespace, name: 'f' }, patch)
    const remove = () => grace.delete(FloatingIp, { namespace, name: 'f' })
    /** Two servers in a network whose router has NAT, and one in another. */
    async function surroundings(): Promise<void> {
      await claimed.network('back', '10.1.0.0/24')
      await claimed.network('lone', '10.2.0.0/24')
      await claimed.router('out', ['back'], true)
      for (const [server, network] of [
        ['web', 'back'],
        ['db', 'back'],
        ['far', 'lone'],
      ] as const)
        await claimed.server(server, network)
    }

    test('passes when it is made, moved and released, and who asked is known; nothing is claimed for it', async () => {
      await surroundings()
      const before = await claims()
      expect((await asked(await make({ serverId: 'later' }))).map(({ action }) => action)).toEqual(['floating_ip.sync'])
      expect(await claims()).toEqual(before)
      await claimed.floatingIp('f', 'web', 'private:back')
      const moved = await change({ spec: { serverId: 'db' } })
      expect((await asked(moved, 1)).map(({ action }) => action)).toEqual(['floating_ip.sync'])
      await change({ spec: { serverId: null, target: null } })
      await remove()
    })

    test.each<readonly [string, Partial<FloatingIpSpec>, string]>([
      ['in a zone that is not there', { zone: 'nowhere' }, '400 spec.zone: there is no'],
      ['in a zone without networks', { zone: 'full' }, '409 zone_capability_missing: '],
      ['in a closed zone', { zone: 'closed' }, '503 no_capacity: '],
      ['with an address of its choice', { address: '198.51.100.3' }, '403 spec.address is written by the platform'],
      ['with a target of no server', { target: 'public' }, '400 spec.target: cannot be given without a server'],
    ])('is never made %s', async (_why, spec, expected) => {
      expect(await said(make(spec))).toContain(expected)
      expect(await claims()).toEqual([])
    })

    test('needs an account that may pay, and an address', async () => {
      await database.db.updateTable('public_pool').set({ state: 'draining' }).execute()
      expect(await said(make())).toContain('503 no_free_address: ')
      accountId = await openAccount({ isVerified: true, hasCredit: false })
      namespace = accountNamespace(accountId)
      expect(await said(make())).toContain('402 ')
    })

    test.each<readonly [string, object, string]>([
      ['moved to another zone', { spec: { zone: 'full' } }, 'zone cannot be changed'],
      ['given an address', { spec: { address: '198.51.100.3' } }, 'address cannot be changed'],
      ['led to a server that is not there', { spec: { serverId: 'nobody' } }, '404 '],
      [
        'led to an address that a server has not',
        { spec: { target: 'public' } },
        '400 spec.target: the server has no public',
      ],
      [
        'led to a server that is not in the network',
        { spec: { serverId: 'far' } },
        '400 spec.target: the server is not in',
      ],
      [
        'led to a network without NAT',
        { spec: { serverId: 'far', target: 'private:lone' } },
        '400 spec.target: the network lone is at no router with NAT',
      ],
      ['left without its finalizer', { metadata: { finalizers: null } }, '403 The finalizer goes when'],
    ])('is never %s', async (_why, patch, expected) => {
      await surroundings()
      await claimed.floatingIp('f', 'web', 'private:back')
      expect(await said(change(patch))).toContain(expected)
    })

    test('is not moved while it changes, nor released while it leads somewhere, whatever runs', async () => {
      await surroundings()
      await claimed.floatingIp('f', 'web', 'private:back')
      expect(await said(remove())).toContain('409 in_use: The floating IP is assigned to a server.')
      await busy(FloatingIp, 'f', 'floating_ip.sync')
      expect(await said(change({ spec: { serverId: 'db' } }))).toContain('409 operation_in_progress: ')
      expect(await said(change({ spec: { serverId: null, target: null } }))).toContain('409 operation_in_progress: ')
      expect(await said(remove())).toContain('409 in_use: The floating IP is assigned to a server.')
      expect((await audited()).map((entry) => entry.split(' ')[0])).toEqual([
        'floating_ip.release',
        'floating_ip.unassign',
        'floating_ip.assign',
        'floating_ip.release',
      ])
    })
  })
})

describe('a server group', () => {
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

  test('passes when it is made, renamed and deleted, and who asked is known; nothing is claimed for it', async () => {
    const made = await group()
    expect(await asked(made)).toEqual([
      { action: 'server_group.create', username: 'grace@example.com', generation: 1, changes: [] },
    ])
    const renamed = await grace.patch(ServerGroup, { namespace, name: 'front' }, { spec: { name: 'Renamed' } })
    expect(await asked(renamed, 1)).toEqual([
      {
        action: 'server_group.update',
        username: 'grace@example.com',
        generation: 2,
        changes: [{ field: 'name', before: 'Front', after: 'Renamed' }],
      },
    ])
    await grace.delete(ServerGroup, { namespace, name: 'front' })
    expect((await asked(made, 2)).map(({ action }) => action)).toEqual(['server_group.delete'])
    expect((await listQuotas(database.db, accountId)).filter(({ used }) => used > 0)).toEqual([])
  })

  test.each<readonly [string, Partial<ServerGroupSpec>, string]>([
    ['in a zone that is not there', { zone: 'nowhere' }, '400 spec.zone: there is no zone nowhere; there are'],
    [
      'across the zones of no region',
      { spread: 'zone', zone: undefined, region: 'nowhere' },
      '400 spec.region: there is no region nowhere; there are',
    ],
    ['across zones, in one', { spread: 'zone' }, '422 '],
    ['on hosts of no zone', { zone: undefined }, '422 '],
    ['with a name that cannot be printed', { name: 'a\u0007' }, '400 spec.name: '],
  ])('%s is refused', async (_why, spec, expected) => expect(await said(group(spec))).toContain(expected))

  test('of the name of another is refused, as is one too many, and a forged note of the platform', async () => {
    await claimed('other')
    expect(await said(group())).toContain('409 name_taken')
    await database.db
      .updateTable('account_quota')
      .set({ limit: 1 })
      .where('account_id', '=', accountId)
      .where('name', '=', 'server_groups')
      .execute()
    expect(await said(group({ name: 'Back' }))).toContain('422 quota_exceeded')
    expect(
      await said(group({ name: 'Back' }, 'back', { annotations: { [LAST_CHANGE_ANNOTATION]: newUuid(random) } })),
    ).toContain('403 ')
  })

  test('keeps what it keeps apart, and how', async () => {
    await group()
    for (const spec of [{ spread: 'rack' }, { strict: false }, { zone: 'full' }])
      expect(await said(grace.patch(ServerGroup, { namespace, name: 'front' }, { spec }))).toContain(
        'cannot be changed',
      )
  })

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

describe('a node', () => {
  let name = ''
  let count = 0
  /** A node that the platform knows, with what has been brought about of it. */
  async function standingNode(status: Partial<NodeStatus> = {}, spec: Partial<NodeSpec> = {}): Promise<KubeObject> {
    name = `host-${(count += 1)}`
    await platform.create(Node, {
      metadata: { name, finalizers: [finalizerOf(Node)] },
      spec: { zone: 'z1', ...spec } as NodeSpec,
    }) // the API server fills in the defaults
    await mirrorNode(database.db, {
      node: name,
      zone: 'z1',
      rack: 'r',
      cpuPool: null,
      dedicatedAccountId: null,
      isSchedulable: true,
      total: { cores: 4, memoryMebibytes: 4_194_304, storageGibibytes: 100 },
    })
    return platform.patch(
      Node,
      { name },
      { status: { state: 'ready', isCordoned: spec.isCordoned === true, isInMaintenance: false, ...status } },
      'status',
    )
  }
  const editNode = (patch: object, by: Store = grace) => by.patch(Node, { name }, patch)
  const place = (memoryMebibytes = 512) =>
    database.db
      .insertInto('placement')
      .values({
        account_id: accountId,
        server_id: `on-${name}`,
        zone: 'z1',
        node: name,
        cores: 1,
        memory_mebibytes: memoryMebibytes,
        storage_gibibytes: 1,
        claimed_at: new Date(),
      })
      .execute()
  const busy = { operation: { ...stanza('server.start'), kind: 'node.cordon' as const } }

  test.each<readonly [string, object, string]>([
    ['cordoned', { isCordoned: true }, 'node.cordon'],
    ['emptied', { isInMaintenance: true }, 'node.maintenance'],
    ['given another agent', { desiredAgentVersion: '2' }, 'node.agent_upgrade'],
  ])('is %s by those who may, and who asked is known', async (_what, spec, action) => {
    await standingNode()
    const written = await editNode({ spec })
    expect(await asked(written, 1)).toEqual([{ action, username: 'grace@example.com', generation: 2, changes: [] }])
  })
  test('is uncordoned', async () => {
    await standingNode({ state: 'cordoned' }, { isCordoned: true })
    expect(await asked(await editNode({ spec: { isCordoned: false } }), 1)).toMatchObject([{ action: 'node.uncordon' }])
  })
  test.each<readonly [string, Partial<NodeStatus>, Partial<NodeSpec>, object, string]>([
    [
      'while another operation runs',
      {},
      busy,
      { isCordoned: true },
      '409 operation_in_progress: Another operation runs on this resource. Wait until it has ended, then try again.',
    ],
    [
      'emptied while it does not answer',
      { state: 'unreachable' },
      {},
      { isInMaintenance: true },
      '409 state_not_allowed: The node is unreachable; only a ready or cordoned node can be emptied.',
    ],
    [
      'given an account that is not there',
      {},
      {},
      { dedicatedAccountId: '00000000-0000-4000-8000-000000000000' },
      '400 spec.dedicatedAccountId: there is no such account',
    ],
    [
      'with an operation of its own',
      {},
      {},
      { operation: busy.operation },
      '403 spec.operation is written by the platform only: change the node, and the operation follows.',
    ],
    ['with unprintable labels', {}, {}, { labels: { a: '\u0007' } }, '400 spec.labels.a: must be printable'],
  ])('is not changed %s', async (_what, status, spec, patch, answer) => {
    await standingNode(status, spec)
    expect(await said(editNode({ spec: patch }))).toBe(answer)
  })
  test('with a server that finds no room elsewhere is not emptied', async () => {
    await standingNode()
    await place(5_000_000)
    expect(await said(editNode({ spec: { isInMaintenance: true } }))).toBe(
      '503 no_capacity: Zone z1 has no room for a server of the node.',
    )
  })
  test('keeps its status and its finalizer', async () => {
    await standingNode()
    expect(await said(grace.patch(Node, { name }, { status: { state: 'ready', stateDetail: 'x' } }, 'status'))).toBe(
      '403 The status is written by the platform only.',
    )
    expect(await said(editNode({ metadata: { finalizers: [] } }))).toBe(
      '403 The finalizer goes when nothing is left on the node.',
    )
  })
  test('joins in a zone that is there', async () => {
    const make = (zone: string) =>
      grace.create(Node, { metadata: { name: `joins-${zone}` }, spec: { zone } as NodeSpec }) // as above
    expect(await said(make('nowhere'))).toContain('400 spec.zone: there is no zone nowhere; there are ')
    expect((await make('z1')).metadata.name).toBe('joins-z1')
  })
  test('goes only when it is cordoned and empty', async () => {
    await standingNode()
    expect(await said(grace.delete(Node, { name }))).toBe(
      '409 state_not_allowed: The node is not cordoned. Cordon it first.',
    )
    await standingNode({ state: 'cordoned' }, { isCordoned: true })
    await place()
    expect(await said(grace.delete(Node, { name }))).toBe(
      '409 in_use: A server has its place on the node. Drain it first.',
    )
    await database.db.deleteFrom('placement').where('node', '=', name).execute()
    await grace.delete(Node, { name })
    expect((await platform.get(Node, { name }))?.metadata.deletionTimestamp).toBeDefined()
  })
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
