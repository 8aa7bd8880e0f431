/** The webhook over HTTPS, asked by the embedded Kubernetes API about what people do there. */
import { request } from 'node:https'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openAdmission } from '../../../apiserver/admission/admit.ts'
import { AdmissionReview } from '../../../apiserver/admission/review.ts'
import { startAdmission } from '../../../apiserver/admission/start.ts'
import { KINDS } from '../../../apiserver/nouns.ts'
import { listAudit } from '../../../db/audit/index.ts'
import { listKubernetesRequests } from '../../../db/request/index.ts'
import { mirrorNode } from '../../../db/placement/index.ts'
import { mirrorPool, takeAddress } from '../../../db/public-pool/index.ts'
import { claimServer } from '../../../db/server/index.ts'
import { listQuotas } from '../../../db/account/index.ts'
import { addServerGroup } from '../../../db/server-group/index.ts'
import { type Core, openCore } from '../../../embedded/kubernetes/core/core.ts'
import { webhookCaller } from '../../../embedded/kubernetes/server/call-webhook.ts'
import { memoryStorage } from '../../../embedded/kubernetes/storage/memory.ts'
import { type Caches, openCaches } from '../../../kit/kube/caches.ts'
import { openClient } from '../../../kit/kube/client.ts'
import { installCrds, readCrds } from '../../../kit/kube/crd.ts'
import { type KubeObject, Namespace } from '../../../kit/kube/object.ts'
import { ApiError, type Store } from '../../../kit/kube/store.ts'
import { systemClock as clock } from '../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../kit/sys/log.ts'
import { openRegistry } from '../../../kit/sys/metrics.ts'
import { newUuid, systemRandom as random } from '../../../kit/sys/random.ts'
import { accountNamespace, RESOURCES } from '../../../resources/index.ts'
import {
  LAST_CHANGE_ANNOTATION,
  NODE_FINALIZER,
  PUBLIC_POOL_FINALIZER,
  SERVER_FINALIZER,
} from '../../../resources/labels.ts'
import { Operation } from '../../../resources/operation/index.ts'
import { Node, type NodeSpec, type NodeStatus } from '../../../resources/node/index.ts'
import { Plan, Region, Template, Zone } from '../../../resources/catalog/index.ts'
import { PublicPool, type PublicPoolSpec } from '../../../resources/public-pool/index.ts'
import { ServerGroup, type ServerGroupSpec } from '../../../resources/server-group/index.ts'
import { Server, type ServerSpec, type ServerState } from '../../../resources/server/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import { createAccount } from '../../accounts.ts'
import { useDatabase } from '../../database.ts'
import { PUBLIC_KEY } from '../cloud.ts'

const database = useDatabase()
const TOKEN = 'the-token-of-the-kubernetes-api'
const PLATFORM = 'system:svccloud:apiserver'
const AT = '2026-01-01T00:00:00Z'
const stop = new AbortController()
let core: Core
let listener: { readonly port: number; stop(): Promise<void> }
let platform: Store
let grace: Store
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
  await installCrds(platform, await readCrds('crds'), clock)
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
    spec: { family: 'starter', cores: 1, memoryMebibytes: 192, storageGibibytes: 1, priceMonthlyCents: 100 },
  })
  await platform.create(Template, {
    metadata: { name: 'tiny-linux' },
    spec: {
      title: 'Tiny',
      osFamily: 'linux',
      osVersion: '1',
      architecture: 'x86_64',
      defaultUser: 'root',
      minStorageGibibytes: 1,
      minMemoryMebibytes: 128,
      zones: [],
      image: { built: 'tiny-linux' },
      isHidden: false,
    },
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
  const caches = openCaches({ store: platform, clock, random, log, registry: openRegistry({ isProcessWide: false }) })
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
): Promise<KubeObject<ServerSpec>> {
  const operation = stanza('server.start')
  await create({ ...spec, operation }, platform, namespace, { finalizers: [SERVER_FINALIZER] })
  const { id, kind, actor, requestedAt: createdAt, deadlineAt } = operation
  const progress = {
    id,
    kind,
    actor,
    createdAt,
    deadlineAt,
    status: isBusy ? 'running' : 'succeeded',
    step: 'started',
    stepIndex: 0,
    stepCount: 1,
    error: '',
  }
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
    ['in a zone that is not there', { zone: 'nowhere' }, '400 zone: there is no such zone'],
    ['with a plan that is not there', { plan: 'huge' }, '400 plan: there is no such plan'],
    [
      'from a template that is not there',
      { template: 'windows' },
      '400 template: there is no such template in the zone',
    ],
    ['smaller than its plan', { storageGibibytes: 0 }, '422 '],
    ['with an address where none is free', { publicIpv4: true }, '503 no_free_address: '],
    ['with a label that is none', { labels: { '-': 'x' } }, '400 spec.labels.-: '],
    ['where there is no room', { zone: 'full' }, '503 no_capacity: Zone full has no room for this plan now.'],
    [
      'beyond the quota',
      { storageGibibytes: 20_000 },
      "422 quota_exceeded: The account's limit of 10240 storage_gibibytes would be exceeded",
    ],
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

describe('a server that is changed', () => {
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
    await edit({ metadata: { labels: { mine: 'yes' } } })
    expect(await asked(server, 4)).toEqual([])
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

  test('stays while another operation runs', async () => {
    await standing('starting', { isBusy: true })
    expect(await said(remove())).toContain('409 operation_in_progress: ')
  })

  test('goes while it is being made', async () => {
    await create({ operation: stanza('server.create') }, platform, namespace, { finalizers: [SERVER_FINALIZER] })
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
  expect(
    await said(
      grace.create(Storage, { metadata: { name: 'disk', namespace }, spec: { zone: 'z1', sizeGibibytes: 1 } as never }),
    ),
  ).toContain('501 Only boot storages')
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
    ['in a zone that is not there', { zone: 'nowhere' }, '400 spec.zone: there is no such zone'],
    ['that is no network', { cidr: '2001:db8::1/40' }, '400 spec.cidr: must be an IPv6 network'],
    ['that calls private what is public', { isPrivate: true }, '400 spec.isPrivate: the network is a public one'],
    [
      'with an operation of its own',
      { operation: { ...stanza('server.start'), kind: 'public_pool.sync' } },
      '403 spec.operation is written by the platform only',
    ],
  ])('is refused %s', async (_what, spec, expected) => expect(await said(make('bad', spec))).toContain(expected))

  test('is refused where it overlaps, and its removal while somebody has an address of it', async () => {
    const { metadata } = await make('mine', {}, platform, { finalizers: [PUBLIC_POOL_FINALIZER] })
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
    ['in a zone that is not there', { zone: 'nowhere' }, '400 zone: there is no such zone'],
    [
      'across the zones of no region',
      { spread: 'zone', zone: undefined, region: 'nowhere' },
      '400 region: there is no such region',
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
      metadata: { name, finalizers: [NODE_FINALIZER] },
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
      '403 spec.operation is written by the platform only: change what the node shall be, and the operation follows.',
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
    expect(await said(make('nowhere'))).toBe('400 spec.zone: there is no such zone')
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
  const bad = { ...good, storageGibibytes: 20_000 }
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

test('the platform goes on when the webhook is gone, and nobody else writes', async () => {
  const away = await admissionWith(
    openCaches({ store: platform, clock, random, log, registry: openRegistry({ isProcessWide: false }) }),
  )
  await away.stop()
  expect(await said(create())).toContain('500 Internal error occurred: failed calling webhook')
  await expect(create({}, platform)).resolves.toBeDefined()
})

describe('no kind is admitted without rules of its own', () => {
  const FORGED = { id: 'forged', kind: 'server.start', actor: 'user:somebody' }
  const ask = (plural: string, request: object): Promise<object> => {
    const caches = openCaches({ store: platform, clock, random, log, registry: openRegistry({ isProcessWide: false }) })
    const admit = openAdmission({
      caches,
      db: database.db,
      clock,
      random,
      log,
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
