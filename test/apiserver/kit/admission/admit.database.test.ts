/** The webhook over HTTPS, asked by the embedded Kubernetes API about what people do there. What each noun refuses is
 *  in `test/changes/refusals/` and `test/golden/server.txt`. */
import { request } from 'node:https'
import { describe, expect, test } from 'vitest'
import { claimServer } from '../../../../db/server/index.ts'
import { listQuotas } from '../../../../db/account/index.ts'
import { addServerGroup } from '../../../../db/server-group/index.ts'
import { type KubeObject } from '../../../../kit/kube/object.ts'
import { systemRandom as random } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Operation } from '../../../../resources/operation/index.ts'
import { CustomImage, type CustomImageSpec, type CustomImageStatus } from '../../../../resources/custom-image/index.ts'
import { ServerGroup, type ServerGroupSpec } from '../../../../resources/server-group/index.ts'
import { Server, type ServerSpec } from '../../../../resources/server/index.ts'

import { AT, bare, refusalOf, TOKEN, useWorld } from './world.ts'

const world = useWorld()

describe('a server that is made', () => {
  test('passes, and who asked is known', async () => {
    const server = await world.create()
    expect(await world.asked(server)).toEqual([
      { action: 'server.create', username: 'grace@example.com', generation: 1, changes: [] },
    ])
    expect((await listQuotas(world.db, world.accountId)).filter(({ used }) => used > 0)).toEqual([])
  })

  test('in a dry run leaves nothing behind, whatever is said to it', async () => {
    const dry = (spec: object) =>
      world.core.handle(
        {
          method: 'POST',
          path: `/apis/svccloud.dev/v1alpha1/namespaces/${world.namespace}/servers?dryRun=All`,
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
    const before = await world.db.selectFrom('kubernetes_request').select('uid').execute()
    expect((await dry({})).status).toBe(201)
    expect((await dry({ zone: 'full' })).status).toBe(503)
    expect(await world.db.selectFrom('kubernetes_request').select('uid').execute()).toEqual(before)
    expect(await world.audited()).toEqual([])
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
    expect(await refusalOf(world.create(spec))).toContain(expected)
    expect(await world.grace.get(Server, { namespace: world.namespace, name: 'web' })).toBeUndefined()
  })

  test('under a hostname that is taken is refused, and the audit log has it', async () => {
    const other = {
      accountId: world.accountId,
      serverId: 'other',
      hostname: 'web',
      zone: 'z1',
      cores: 1,
      memoryMebibytes: 1,
      storageGibibytes: 1,
    }
    await world.db.transaction().execute((tx) => claimServer(tx, other, { now: new Date(AT), random }))
    expect(await refusalOf(world.create())).toContain('409 name_taken: ')
    expect(await world.audited()).toEqual(['server.create user:grace@example.com failed name_taken'])
  })

  test('needs an account that may pay, and whose owner has a verified address', async () => {
    expect(
      await refusalOf(
        world.create(
          {},
          world.grace,
          accountNamespace(await world.openAccount({ isVerified: false, hasCredit: true })),
        ),
      ),
    ).toContain('403 email_unverified: ')
    expect(
      await refusalOf(
        world.create(
          {},
          world.grace,
          accountNamespace(await world.openAccount({ isVerified: true, hasCredit: false })),
        ),
      ),
    ).toContain('402 payment_method_required: ')
    expect(await refusalOf(world.create({}, world.grace, 'default'))).toContain(
      '400 The namespace belongs to no account',
    )
  })
})

const suspend = () =>
  world.db
    .updateTable('account')
    .set({ suspended_for_payment_at: new Date(AT) })
    .where('id', '=', world.accountId)
    .execute()

describe('a server that is changed', () => {
  test('gets no other plan while its account is suspended, and is started all the same', async () => {
    await world.standing('stopped', { desiredPower: 'stopped' })
    await suspend()
    expect(await refusalOf(world.edit({ spec: { storageGibibytes: 20 } }))).toContain('402 account_suspended: ')
    await world.edit({ spec: { desiredPower: 'running' } })
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
  expect(
    await refusalOf(world.grace.create(Operation, { metadata: { name: 'op', namespace: world.namespace }, spec })),
  ).toBe('403 operations are written by the platform only.')
  await world.platform.create(Operation, { metadata: { name: 'op', namespace: world.namespace }, spec })
  expect(await refusalOf(world.grace.delete(Operation, { namespace: world.namespace, name: 'op' }))).toBe(
    '403 operations are written by the platform only.',
  )
})

describe('a server from a custom image', () => {
  async function image(status: Partial<CustomImageStatus> = {}): Promise<void> {
    const key = { namespace: world.namespace, name: 'mine' }
    const source = { url: 'https://images.example.com/disk.qcow2', checksum: 'a'.repeat(64) }
    await world.platform.create(CustomImage, { metadata: key, spec: { zone: 'z1', title: 'Mine', labels: {}, source } })
    const online = { status: { state: 'online', sizeGibibytes: 1, ...status } }
    const written = await world.platform.patch(CustomImage, key, online, 'status')
    world.caches.of<CustomImageSpec, CustomImageStatus>(CustomImage).apply(written)
  }
  const SYSTEM = { template: undefined, customImageId: 'mine' }

  test('is made in the account of the image only', async () => {
    await image()
    expect((await world.create(SYSTEM)).spec.customImageId).toBe('mine')
    const other = accountNamespace(await world.openAccount({ isVerified: true, hasCredit: true }))
    expect(await refusalOf(world.create(SYSTEM, world.grace, other))).toContain('404 No such custom image')
  })

  test('is as large as the image needs', async () => {
    await image({ minMemoryMebibytes: 193 })
    expect(await refusalOf(world.create(SYSTEM))).toContain('400 spec.plan: the custom image needs 193 MiB of memory')
    await world.standing('stopped', { ...SYSTEM, desiredPower: 'stopped', plan: 'gone' })
    expect(await refusalOf(world.edit({ spec: { plan: 'tiny' } }))).toContain(
      '400 spec.plan: the custom image needs 193 MiB',
    )
  })

  test('has a disk that the image fits', async () => {
    await image({ sizeGibibytes: 2 })
    expect(await refusalOf(world.create(SYSTEM))).toContain('400 spec.storageGibibytes: the custom image needs 2')
  })
})

describe('a server in a group', () => {
  const group = (spec: Partial<ServerGroupSpec> = {}, name = 'front', metadata: Partial<KubeObject['metadata']> = {}) =>
    world.grace.create(ServerGroup, {
      metadata: { ...metadata, name, namespace: world.namespace },
      spec: { name: 'Front', spread: 'host', zone: 'z1', strict: true, ...spec } as ServerGroupSpec,
    })
  /** As its controller claims it. */
  const claimed = (name = 'front') =>
    world.db.transaction().execute((tx) =>
      addServerGroup(tx, world.accountId, {
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
    await world.create({ serverGroupId: 'front' })
    await world.db.transaction().execute((tx) =>
      claimServer(
        tx,
        {
          accountId: world.accountId,
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
    expect(await refusalOf(world.grace.delete(ServerGroup, { namespace: world.namespace, name: 'front' }))).toContain(
      '409 in_use: The group has 1 server.',
    )
    const second = world.grace.create(Server, {
      metadata: { name: 'web-2', namespace: world.namespace },
      spec: { ...bare, hostname: 'web-2', serverGroupId: 'front' },
    })
    expect(await refusalOf(second)).toContain('503 no_distinct_failure_domain')
    expect(await refusalOf(world.edit({ spec: { serverGroupId: 'other' } }))).toContain('serverGroupId')
    expect(await refusalOf(world.edit({ spec: { bootStorageId: 'mine' } }))).toContain('bootStorageId')
  })
})

test('the listener answers reviews and nothing else', async () => {
  const send = (method: string, path: string, body = '') =>
    new Promise<number>((resolve, reject) => {
      request(
        {
          host: '127.0.0.1',
          port: world.listener.port,
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

test('the platform continues when the webhook has stopped, and nobody else writes', async () => {
  const away = await world.startAnother()
  await away.stop()
  expect(await refusalOf(world.create())).toContain('500 Internal error occurred: failed calling webhook')
  await expect(world.create({}, world.platform)).resolves.toBeDefined()
})
