import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listQuotas } from '../../../../db/account/index.ts'
import { Secret } from '../../../../kit/kube/object.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Operation } from '../../../../resources/operation/index.ts'
import { Zone } from '../../../../resources/catalog/index.ts'
import { Server } from '../../../../resources/server/index.ts'
import { useDatabase } from '../../../database.ts'
import { progressOf } from '../../../progress.ts'
import { type Cloud, openCloud, type Person, PUBLIC_KEY } from '../../cloud.ts'
import { setQuotas } from '../../../accounts.ts'

const database = useDatabase()
let cloud: Cloud
let ada: Person
let bob: Person

beforeAll(async () => {
  cloud = await openCloud(database.db)
  ada = await cloud.signUp('ada@example.com')
  bob = await cloud.signUp('bob@example.com')
  await ada.send('POST', '/v1/ssh-keys', { body: { name: 'laptop', public_key: PUBLIC_KEY } })
  await setQuotas(cloud.db, 100, { accountId: ada.accountId, name: 'servers' })
})
afterAll(() => cloud.close())

let made = 0
const wanted = (more: object = {}) => ({
  zone: cloud.zone,
  hostname: `web-${(made += 1)}`,
  plan: 'tiny',
  template: 'tiny-linux',
  ...more,
})
const create = (more: object = {}, by: Person = ada) => by.send('POST', '/v1/servers', { body: wanted(more) })
const keyOf = (id: string) => ({ namespace: accountNamespace(ada.accountId), name: id })
/** What a controller would report: the operation is over and the server is in the state. */
async function settle(id: string, state: 'started' | 'stopped', nodeName = cloud.node) {
  const server = await cloud.admin.get(Server, keyOf(id))
  if (server?.spec.operation === undefined) throw new Error('no such server')
  const { operation } = server.spec
  cloud.caches
    .of(Server)
    .apply(
      await cloud.admin.patch(
        Server,
        keyOf(id),
        { status: { state, nodeName, operation: progressOf(operation) } },
        'status',
      ),
    )
}
async function createSettled(state: 'started' | 'stopped' = 'started', more: object = {}): Promise<string> {
  const { body } = await create(more)
  await settle(body.server.id, state)
  return body.server.id
}

describe('create_server', () => {
  test(
    'answers the server and its operation, writes one object, one operation, one audit entry, and claims what it ' +
      'needs',
    async () => {
      const reply = await create({ hostname: 'first', title: 'First', labels: { tier: 'web' } })
      expect(reply.status).toBe(202)
      expect(reply.body.server).toMatchObject({
        zone: cloud.zone,
        region: 'eu-1',
        hostname: 'first',
        title: 'First',
        plan: 'tiny',
        cores: 1,
        memory_mebibytes: 192,
        storage_gibibytes: 1,
        template: 'tiny-linux',
        state: 'creating',
        desired_power: 'running',
        labels: { tier: 'web' },
        managed_by: null,
        public_ipv4: null,
        hourly_price_millicents: 137,
        mac_address: expect.stringMatching(/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/),
      })
      expect(reply.body.operation).toMatchObject({
        kind: 'server.create',
        status: 'pending',
        step_index: 0,
        server_id: reply.body.server.id,
        storage_id: null,
        actor: `user:${ada.userId}`,
      })
      expect(reply.body.server.active_operation).toEqual(reply.body.operation)

      const stored = await cloud.admin.get(Server, keyOf(reply.body.server.id))
      expect(stored?.spec).toMatchObject({
        hostname: 'first',
        sshKeys: [PUBLIC_KEY],
        operation: { id: reply.body.operation.id, kind: 'server.create' },
      })
      expect(stored?.metadata.finalizers).toEqual(['svccloud.dev/server'])
      expect((await cloud.admin.get(Operation, keyOf(reply.body.operation.id)))?.spec).toMatchObject({
        kind: 'server.create',
        target: { type: 'server', id: reply.body.server.id },
      })
      expect(await cloud.auditOf(reply)).toMatchObject([
        { action: 'server.create', outcome: 'success', resource_id: reply.body.server.id },
      ])
      expect(await cloud.db.selectFrom('change_intent').selectAll().execute()).toEqual([])
      expect(
        await cloud.db.selectFrom('placement').select('node').where('server_id', '=', reply.body.server.id).execute(),
      ).toEqual([{ node: cloud.node }])
    },
  )

  test('is read back at once: by id, in lists, by hostname and label; its operation too', async () => {
    const { body } = await create({ hostname: 'read-back', labels: { app: 'shop', env: 'test' } })
    const one = await ada.send('GET', `/v1/servers/${body.server.id}`)
    expect(one.body.server).toEqual(body.server)
    expect(one.headers['etag']).toMatch(/^"\d+"$/)
    for (const query of ['', '?hostname=read-back', '?label=app%3Dshop&label=env%3Dtest']) {
      const list = await ada.send('GET', `/v1/servers${query}`)
      expect(list.body.items[0], query).toEqual(body.server)
    }
    expect((await ada.send('GET', '/v1/servers?label=app%3Dshop&label=env%3Dother')).body.items).toEqual([])
    const operation = await ada.send('GET', `/v1/operations/${body.operation.id}`)
    expect(operation.body.operation).toEqual({ ...body.operation, actor_name: 'ada@example.com', events: [] })
  })

  test("is found by nobody else's filters, whatever names and labels they have in common", async () => {
    const hers = (await create({ hostname: 'shared', labels: { app: 'common' } })).body.server
    const cy = await cloud.signUp('cy@example.com')
    await cy.send('POST', '/v1/ssh-keys', { body: { name: 'laptop', public_key: PUBLIC_KEY } })
    const his = (await create({ hostname: 'shared', labels: { app: 'common' } }, cy)).body.server
    for (const query of ['?hostname=shared', '?label=app%3Dcommon', '?hostname=shared&label=app%3Dcommon']) {
      const idsOf = async (person: Person) =>
        (await person.send('GET', `/v1/servers${query}`)).body.items.map(({ id }: { id: string }) => id)
      expect([await idsOf(ada), await idsOf(cy)], query).toEqual([[hers.id], [his.id]])
    }
  })

  test('keeps user data in a Secret that belongs to the server, never in the server', async () => {
    const { body } = await create({ user_data: '#!/bin/sh\necho hello' })
    const server = await cloud.admin.get(Server, keyOf(body.server.id))
    const secret = await cloud.admin.get(Secret, keyOf(server?.spec.userDataSecretName ?? ''))
    expect(JSON.stringify(server)).not.toContain('hello')
    expect(Buffer.from((secret as unknown as { data: { userData: string } }).data.userData, 'base64').toString()).toBe(
      '#!/bin/sh\necho hello',
    )
    expect(secret?.metadata.ownerReferences).toMatchObject([{ kind: 'Server', name: body.server.id }])
  })

  test.each([
    ['an unknown zone', { zone: 'nowhere' }, 'zone'],
    ['an unknown plan', { plan: 'huge' }, 'plan'],
    ['a plan for databases', { plan: 'db-1c-2g' }, 'plan'],
    ['an unknown template', { template: 'beos' }, 'template'],
    ['a hostname that is none', { hostname: 'No_Host' }, 'hostname'],
    ['a boot storage below the plan', { plan: 'starter-1c-1g', storage_gibibytes: 5 }, 'storage_gibibytes'],
    ['a plan too small for the template', { template: 'debian-13', storage_gibibytes: 10 }, 'plan'],
    ['a key that is none', { ssh_keys: ['ssh-rsa AAAA'] }, 'ssh_keys.0'],
    ['a key id of nobody', { ssh_key_ids: ['00000000-0000-4000-8000-000000000000'] }, 'ssh_key_ids'],
    ['no key at all', { ssh_key_ids: [] }, 'ssh_key_ids'],
    ['an unknown field', { colour: 'red' }, 'colour'],
    ['neither template nor custom image', { template: undefined }, 'template'],
    ['both template and custom image', { custom_image_id: 'x' }, 'custom_image_id'],
    ['a bad label', { labels: { '-x': 'y' } }, 'labels.-x'],
    ['too much user data', { user_data: 'x'.repeat(65_537) }, 'user_data'],
    ['a document for cloud-init that the template lacks', { user_data: '#cloud-config\n{}\n' }, 'user_data'],
    ['packed user data that does not unpack', { user_data: 'H4sIAAAAAAAA' }, 'user_data'],
  ])('refuses %s by the name of the field and leaves nothing behind', async (_what, more, field) => {
    const before = await listQuotas(cloud.db, ada.accountId)
    const reply = await create(more)
    expect(reply.status).toBe(400)
    expect(reply.headers['content-type']).toBe('application/problem+json')
    expect(reply.body.errors).toMatchObject([{ field, detail: expect.any(String) }])
    expect(await cloud.auditOf(reply)).toEqual([])
    expect(await listQuotas(cloud.db, ada.accountId)).toEqual(before)
  })

  test.each([
    ['neither', { template: undefined }, 'template', 'is required, unless custom_image_id is given'],
    [
      'null',
      { template: undefined, custom_image_id: null },
      'template',
      'is required, unless custom_image_id is given',
    ],
    ['both', { custom_image_id: 'x' }, 'custom_image_id', 'cannot be given together with template'],
  ])('says of %s of template and custom image what to do', async (_what, more, field, detail) => {
    expect((await create(more)).body.errors).toEqual([{ field, detail }])
  })

  test('names what is missing all at once', async () => {
    const { body } = await create({ hostname: undefined, template: undefined })
    expect(body.errors).toEqual([
      { field: 'hostname', detail: 'is required' },
      { field: 'template', detail: 'is required, unless custom_image_id is given' },
    ])
  })

  test('refuses a public IPv4 address in a zone that has none to give', async () => {
    const before = await listQuotas(cloud.db, ada.accountId)
    const reply = await create({ public_ipv4: true })
    expect([reply.status, reply.body.reason]).toEqual([503, 'no_free_address'])
    expect(await listQuotas(cloud.db, ada.accountId)).toEqual(before)
  })

  test('takes when the boot storage is backed up, where the zone keeps backups', async () => {
    const backup_schedule = '30 3 * * *'
    const carol = await cloud.signUp('carol@example.com')
    await carol.send('POST', '/v1/ssh-keys', { body: { name: 'laptop', public_key: PUBLIC_KEY } })
    const refused = await create({ backup_schedule }, carol)
    expect([refused.status, refused.body.reason, refused.body.capability]).toEqual([
      409,
      'zone_capability_missing',
      'backups',
    ])
    const zones = cloud.caches.of(Zone)
    const keeps = async (hasBackups: boolean) =>
      zones.apply(await cloud.admin.patch(Zone, { name: cloud.zone }, { status: { hasBackups } }, 'status'))
    await keeps(true)
    const { status, body } = await create({ backup_schedule }, carol)
    await keeps(false)
    expect(status).toBe(202)
    const key = { namespace: accountNamespace(carol.accountId), name: body.server.id }
    expect((await cloud.admin.get(Server, key))?.spec.backupSchedule).toBe(backup_schedule)
    const wrong = await create({ backup_schedule: '* * * * *' }, carol)
    expect([wrong.status, wrong.body.errors[0].field]).toEqual([400, 'backup_schedule'])
  })

  test('takes the neutral values of options', async () => {
    const reply = await create({
      public_ipv4: false,
      networks: [],
      firewall: null,
      backup_schedule: null,
      custom_image_id: null,
      start: false,
    })
    expect(reply.status).toBe(202)
    expect(reply.body.server.desired_power).toBe('stopped')
  })

  test(
    'a hostname that is taken, a spent quota and a full zone are told ' + 'apart, audited as failed, and hold nothing',
    async () => {
      const first = await create({ hostname: 'taken' })
      const before = await listQuotas(cloud.db, ada.accountId)
      const taken = await create({ hostname: 'taken' })
      expect([taken.status, taken.body.reason]).toEqual([409, 'name_taken'])
      expect(taken.body.resource).toEqual({ type: 'server', id: first.body.server.id })
      expect(await cloud.auditOf(taken)).toMatchObject([{ action: 'server.create', outcome: 'failed' }])

      await setQuotas(cloud.db, 0, { accountId: ada.accountId, name: 'cores' })
      const spent = await create()
      expect([spent.status, spent.body.reason, spent.body.quota.name]).toEqual([422, 'quota_exceeded', 'cores'])
      await setQuotas(cloud.db, 64, { accountId: ada.accountId, name: 'cores' })

      await cloud.db.updateTable('node_capacity').set({ is_schedulable: false }).execute()
      const full = await create()
      expect([full.status, full.body.reason]).toEqual([503, 'no_capacity'])
      await cloud.db.updateTable('node_capacity').set({ is_schedulable: true }).execute()
      expect(await listQuotas(cloud.db, ada.accountId)).toEqual(before)
    },
  )

  test(
    'without room it is said where there is some: the plan in other ' +
      'zones of the region, smaller plans in this one',
    async () => {
      const said = (name: string, unavailablePlans: string[]) =>
        cloud.admin
          .patch(
            Zone,
            { name },
            { status: { state: 'available', unavailablePlans, haObstacle: 'The zone has one node.' } },
            'status',
          )
          .then((zone) => cloud.caches.of(Zone).apply(zone))
      const zone = (name: string, more: object = {}) =>
        cloud.admin.create(Zone, {
          metadata: { name },
          spec: { displayName: name, region: 'eu-1', isClosed: false, capabilities: [], ...more },
        })
      await Promise.all([
        zone('eu-1-near'),
        zone('eu-1-shut', { isClosed: true }),
        zone('eu-1-full'),
        zone('eu-1-silent'),
      ])
      await Promise.all([
        said(cloud.zone, ['premium-4c-8g']),
        said('eu-1-near', []),
        said('eu-1-shut', []),
        said('eu-1-full', ['starter-2c-4g']),
      ])
      await cloud.db.updateTable('node_capacity').set({ is_schedulable: false }).execute()
      const full = await create({ plan: 'starter-2c-4g', template: 'debian-13' })
      expect([full.status, full.body.reason, full.body.alternatives]).toEqual([
        503,
        'no_capacity',
        [
          { zone: 'eu-1-near', plan: 'starter-2c-4g' },
          { zone: cloud.zone, plan: 'starter-1c-1g' },
        ],
      ])
      await cloud.db.updateTable('node_capacity').set({ is_schedulable: true }).execute()
    },
  )

  test('an unverified address and an account without standing may not create', async () => {
    const eve = await cloud.signUp('eve@example.com', { isVerified: false })
    const unverified = await create({}, eve)
    expect([unverified.status, unverified.body.reason]).toEqual([403, 'email_unverified'])
    expect(await cloud.auditOf(unverified)).toMatchObject([{ action: 'server.create', outcome: 'denied' }])

    await cloud.db
      .updateTable('account')
      .set({ suspended_by_staff_at: new Date() })
      .where('id', '=', bob.accountId)
      .execute()
    const suspended = await create({}, bob)
    expect([suspended.status, suspended.body.reason]).toEqual([402, 'account_suspended'])
    expect(await cloud.auditOf(suspended)).toMatchObject([{ outcome: 'failed' }])
    await cloud.db.updateTable('account').set({ suspended_by_staff_at: null }).where('id', '=', bob.accountId).execute()
  })
})

describe('power', () => {
  test('stop writes the desired state, its options and the operation at once; then the server is busy', async () => {
    const id = await createSettled()
    const reply = await ada.send('POST', `/v1/servers/${id}/stop`, { body: { stop_type: 'hard', timeout_seconds: 5 } })
    expect(reply.status).toBe(202)
    expect(reply.body.operation).toMatchObject({ kind: 'server.stop', status: 'pending', server_id: id })
    expect((await cloud.admin.get(Server, keyOf(id)))?.spec).toMatchObject({
      desiredPower: 'stopped',
      operation: {
        id: reply.body.operation.id,
        arguments: { stop_type: 'hard', timeout_seconds: '5', timeout_action: 'hard' },
      },
    })
    const busy = await ada.send('POST', `/v1/servers/${id}/start`)
    expect(busy.body).toMatchObject({
      status: 409,
      reason: 'operation_in_progress',
      active_operation_id: reply.body.operation.id,
      resource: { type: 'server', id },
    })
    expect(await cloud.auditOf(busy)).toMatchObject([{ action: 'server.start', outcome: 'failed', resource_id: id }])

    await settle(id, 'stopped')
    const start = await ada.send('POST', `/v1/servers/${id}/start`)
    expect(start.status).toBe(202)
    const { operation, desiredPower } = (await cloud.admin.get(Server, keyOf(id)))?.spec ?? {}
    expect(desiredPower).toBe('running')
    expect(operation?.arguments ?? {}).toEqual({})
  })

  test.each(['stop', 'restart'])('%s has time for the rest when the guest uses its full time', async (verb) => {
    const { operation } = (
      await ada.send('POST', `/v1/servers/${await createSettled()}/${verb}`, { body: { timeout_seconds: 600 } })
    ).body
    expect(Date.parse(operation.deadline_at) - Date.parse(operation.created_at)).toBe(15 * 60_000)
  })

  test('what the state does not allow is 409 state_not_allowed', async () => {
    const id = await createSettled('stopped')
    for (const verb of ['stop', 'restart'])
      expect((await ada.send('POST', `/v1/servers/${id}/${verb}`)).body, verb).toMatchObject({
        status: 409,
        reason: 'state_not_allowed',
      })
    const started = await createSettled('started')
    expect((await ada.send('POST', `/v1/servers/${started}/start`)).body).toMatchObject({
      status: 409,
      reason: 'state_not_allowed',
    })
  })

  test('of many at once exactly one wins', async () => {
    const id = await createSettled()
    const replies = await Promise.all(
      ['stop', 'restart', 'stop', 'restart', 'stop'].map((verb) => ada.send('POST', `/v1/servers/${id}/${verb}`)),
    )
    expect(replies.map((reply) => reply.status).sort()).toEqual([202, 409, 409, 409, 409])
    const entries = (await Promise.all(replies.map((reply) => cloud.auditOf(reply))))
      .flat()
      .map((entry) => entry.outcome)
    expect(entries.sort()).toEqual(['failed', 'failed', 'failed', 'failed', 'success'])
  })
})

describe('update_server', () => {
  test(
    'changes title, labels and protection at once; labels replace ' + 'all labels; an entry names the changes',
    async () => {
      const id = await createSettled('started', { labels: { keep: 'no', other: 'x' }, is_protected: true })
      const early = await ada.send('DELETE', `/v1/servers/${id}`)
      expect(early.body, 'from the start').toMatchObject({ status: 409, reason: 'protected' })
      await ada.send('PATCH', `/v1/servers/${id}`, { body: { is_protected: false } })
      const reply = await ada.send('PATCH', `/v1/servers/${id}`, {
        body: { title: 'New', labels: { fresh: 'yes' }, is_protected: true },
      })
      expect(reply.status).toBe(200)
      expect(reply.body.server).toMatchObject({ title: 'New', labels: { fresh: 'yes' }, is_protected: true })
      expect(await cloud.auditOf(reply)).toMatchObject([
        {
          action: 'server.update',
          outcome: 'success',
          changes: [{ field: 'title' }, { field: 'labels' }, { field: 'is_protected' }],
        },
      ])
      expect((await ada.send('DELETE', `/v1/servers/${id}`)).body).toMatchObject({ status: 409, reason: 'protected' })
    },
  )

  test('If-Match of an older version is 409 and changes nothing', async () => {
    const id = await createSettled()
    const { headers } = await ada.send('GET', `/v1/servers/${id}`)
    const etag = String(headers['etag'])
    expect(
      (await ada.send('PATCH', `/v1/servers/${id}`, { body: { title: 'one' }, headers: { 'if-match': etag } })).status,
    ).toBe(200)
    const late = await ada.send('PATCH', `/v1/servers/${id}`, { body: { title: 'two' }, headers: { 'if-match': etag } })
    expect([late.status, late.body.reason]).toEqual([409, 'state_not_allowed'])
    expect((await ada.send('GET', `/v1/servers/${id}`)).body.server.title).toBe('one')
  })

  test.each([
    ['hostname', { hostname: 'other' }],
    ['plan', { plan: 'tiny' }],
    ['title', { title: 5 }],
    ['labels.a', { labels: { a: 1 } }],
  ])('refuses %s', async (field, body) => {
    const id = await createSettled()
    expect((await ada.send('PATCH', `/v1/servers/${id}`, { body })).body).toMatchObject({
      status: 400,
      errors: [{ field }],
    })
  })
})

describe('the network of a server', () => {
  const networkOf = async (id: string) => {
    const { network_status: status, network_status_reason: reason } = (await ada.send('GET', `/v1/servers/${id}`)).body
      .server
    return { status, reason }
  }
  const judged = async (id: string, status: 'True' | 'False', message: string) => {
    const condition = {
      type: 'NetworkReachable',
      status,
      reason: 'Tested',
      message,
      lastTransitionTime: '2026-01-01T00:00:00Z',
      observedGeneration: 1,
    }
    cloud.caches
      .of(Server)
      .apply(await cloud.admin.patch(Server, keyOf(id), { status: { conditions: [condition] } }, 'status'))
  }

  test('says what is off: by the zone until the host has spoken, then by the host', async () => {
    const id = await createSettled()
    expect(await networkOf(id)).toEqual({
      status: 'limited',
      reason: 'The zone has no public network: nothing outside reaches its servers.',
    })
    await judged(id, 'False', 'Its addresses do not work.')
    expect(await networkOf(id)).toEqual({ status: 'limited', reason: 'Its addresses do not work.' })
    await judged(id, 'True', '')
    expect(await networkOf(id)).toEqual({ status: 'available', reason: null })
  })
})

describe('policies', () => {
  test(
    'of high availability are always taken, say whether the zone can act on them, and are audited with what they ' +
      'were',
    async () => {
      const id = await createSettled()
      const reply = await ada.send('PUT', `/v1/servers/${id}/ha-policy`, { body: { ha_policy: 'none' } })
      expect(reply.status, reply.text).toBe(200)
      const { server } = (await ada.send('GET', `/v1/servers/${id}`)).body
      expect(reply.body).toEqual({
        ha_policy: 'none',
        ha_status: server.ha_status,
        ha_status_reason: server.ha_status_reason,
      })
      expect(server).toMatchObject({
        ha_policy: 'none',
        ha_status: 'unavailable',
        ha_status_reason: expect.stringContaining('zone'),
        active_operation: null,
      })
      expect(await cloud.auditOf(reply)).toMatchObject([
        {
          action: 'server.ha_policy',
          outcome: 'success',
          resource_id: id,
          changes: [{ field: 'ha_policy', before: 'restart', after: 'none' }],
        },
      ])
    },
  )

  test('of migration are answered as they were set', async () => {
    const id = await createSettled()
    const reply = await ada.send('PUT', `/v1/servers/${id}/migration-policy`, { body: { migration_policy: 'strict' } })
    expect([reply.status, reply.body]).toEqual([200, { migration_policy: 'strict' }])
    expect((await ada.send('GET', `/v1/servers/${id}`)).body.server.migration_policy).toBe('strict')
    expect(await cloud.auditOf(reply)).toMatchObject([
      {
        action: 'server.migration_policy',
        outcome: 'success',
        changes: [{ field: 'migration_policy', before: 'default', after: 'strict' }],
      },
    ])
  })

  test('may be changed while an operation runs', async () => {
    const { body } = await create()
    expect(
      (await ada.send('PUT', `/v1/servers/${body.server.id}/ha-policy`, { body: { ha_policy: 'none' } })).status,
    ).toBe(200)
    expect((await cloud.admin.get(Server, keyOf(body.server.id)))?.spec).toMatchObject({
      haPolicy: 'none',
      operation: { kind: 'server.create' },
    })
  })

  test.each([
    ['ha-policy', { ha_policy: 'sometimes' }, 'ha_policy'],
    ['migration-policy', { migration_policy: null }, 'migration_policy'],
    ['ha-policy', {}, 'ha_policy'],
  ])('%s refuses %o', async (path, body, field) => {
    const id = await createSettled()
    expect((await ada.send('PUT', `/v1/servers/${id}/${path}`, { body })).body).toMatchObject({
      status: 400,
      errors: [{ field }],
    })
  })
})

describe('the firewall', () => {
  const rule = { direction: 'in', action: 'accept', protocol: 'tcp', port_start: 22, remote_cidrs: ['2001:DB8:0::/32'] }

  test('of a new server lets everything pass', async () => {
    const id = await createSettled()
    const reply = await ada.send('GET', `/v1/servers/${id}/firewall`)
    expect([reply.status, reply.body.firewall]).toEqual([
      200,
      {
        enabled: false,
        default_inbound: 'drop',
        default_outbound: 'accept',
        rules: [],
        generation: 0,
        applied_generation: 0,
        applied_at: null,
      },
    ])
    expect((await bob.send('GET', `/v1/servers/${id}/firewall`)).status).toBe(404)
  })

  test('is replaced as a whole by an operation, in canonical form', async () => {
    const id = await createSettled()
    const path = `/v1/servers/${id}/firewall`
    const reply = await ada.send('PUT', path, { body: { enabled: false, rules: [rule] } })
    expect(reply.status, reply.text).toBe(202)
    expect(reply.body).toMatchObject({
      firewall: {
        rules: [{ ...rule, family: 'any', port_end: 22, remote_cidrs: ['2001:db8::/32'], comment: '' }],
        generation: 1,
        applied_generation: 0,
      },
      operation: { kind: 'server.firewall', status: 'pending', server_id: id },
    })
    expect(await cloud.auditOf(reply)).toMatchObject([
      { action: 'server.firewall', outcome: 'success', resource_id: id },
    ])
    expect((await ada.send('GET', path)).body.firewall).toEqual(reply.body.firewall)
    expect((await ada.send('GET', `/v1/servers/${id}`)).body.server.firewall_enabled).toBe(false)
    const busy = await ada.send('PUT', path, { body: { enabled: false } })
    expect([busy.status, busy.body.reason]).toEqual([409, 'operation_in_progress'])
  })

  test.each<[string, object, string]>([
    ['a rule for ports of ICMP', { ...rule, protocol: 'icmp' }, 'rules.0.port_start'],
    ['a range that goes backwards', { ...rule, port_end: 21 }, 'rules.0.port_end'],
    ['a network with host bits', { ...rule, remote_cidrs: ['192.0.2.1/24'] }, 'rules.0.remote_cidrs.0'],
    ['a network of the other family', { ...rule, family: 'ipv4' }, 'rules.0.remote_cidrs.0'],
  ])('with %s is refused, also with a new server', async (_what, wrong, field) => {
    const firewall = { enabled: true, rules: [wrong] }
    const id = await createSettled()
    const reply = await ada.send('PUT', `/v1/servers/${id}/firewall`, { body: firewall })
    expect(reply.body).toMatchObject({ status: 400, errors: [{ field }] })
    expect((await create({ firewall })).body).toMatchObject({ status: 400, errors: [{ field: `firewall.${field}` }] })
  })

  test('has at most a hundred rules', async () => {
    const id = await createSettled()
    const reply = await ada.send('PUT', `/v1/servers/${id}/firewall`, {
      body: { enabled: false, rules: Array.from({ length: 101 }, () => rule) },
    })
    expect(reply.body).toMatchObject({
      status: 422,
      reason: 'quota_exceeded',
      quota: { name: 'firewall_rules', limit: 100, used: 0, requested: 101 },
    })
  })

  test('comes with a new server', async () => {
    const { body } = await create({ firewall: { enabled: false, default_inbound: 'accept', rules: [rule] } })
    const { firewall } = (await ada.send('GET', `/v1/servers/${body.server.id}/firewall`)).body
    expect(firewall).toMatchObject({ default_inbound: 'accept', generation: 1, rules: [{ port_end: 22 }] })
  })

  test('is refused where no host would follow it', async () => {
    const id = await createSettled()
    const why = 'host h1 has user-mode networking: there is no /dev/net/tun'
    const setNetworks = async (hasPrivateNetworks: boolean, networkObstacle?: string) =>
      cloud.caches
        .of(Zone)
        .apply(
          await cloud.admin.patch(
            Zone,
            { name: cloud.zone },
            { status: { hasPrivateNetworks, networkObstacle: networkObstacle ?? null } },
            'status',
          ),
        )
    await setNetworks(false, why)
    const refusal = {
      status: 409,
      reason: 'zone_capability_missing',
      capability: 'private_networks',
      detail: expect.stringContaining(why),
    }
    const reply = await ada.send('PUT', `/v1/servers/${id}/firewall`, { body: { enabled: true } })
    expect(reply.body).toMatchObject(refusal)
    expect((await create({ firewall: { enabled: true } })).body).toMatchObject(refusal)
    await setNetworks(true)
    const accepted = await ada.send('PUT', `/v1/servers/${id}/firewall`, { body: { enabled: true } })
    expect([accepted.status, accepted.body.firewall?.enabled]).toEqual([202, true])
  })
})

describe('the metadata setting', () => {
  test('is changed by an operation and read back, both with an entry', async () => {
    const id = await createSettled('started')
    const path = `/v1/servers/${id}/metadata`
    const reply = await ada.send('PUT', path, { body: { enabled: false } })
    expect(reply.status, reply.text).toBe(202)
    expect(reply.body).toMatchObject({
      enabled: false,
      operation: { kind: 'server.metadata', status: 'pending', server_id: id },
    })
    expect((await cloud.admin.get(Server, keyOf(id)))?.spec).toMatchObject({
      metadataEnabled: false,
      desiredPower: 'running',
      operation: { id: reply.body.operation.id },
    })
    expect(await cloud.auditOf(reply)).toMatchObject([
      { action: 'server.metadata', outcome: 'success', resource_id: id },
    ])
    const setting = await ada.send('GET', path)
    expect([setting.status, setting.body]).toEqual([200, { enabled: false }])
    expect(await cloud.auditOf(setting)).toMatchObject([
      { action: 'server.metadata_read', outcome: 'success', resource_id: id },
    ])
  })

  test('is changed only in the version that If-Match names', async () => {
    const id = await createSettled('started')
    const path = `/v1/servers/${id}/metadata`
    const etag = String((await ada.send('GET', path)).headers['etag'])
    await ada.send('PATCH', `/v1/servers/${id}`, { body: { title: 'newer' } })
    const late = await ada.send('PUT', path, { body: { enabled: false }, headers: { 'if-match': etag } })
    expect([late.status, late.body.reason, (await ada.send('GET', path)).body]).toEqual([
      409,
      'state_not_allowed',
      { enabled: true },
    ])
    const current = String((await ada.send('GET', `/v1/servers/${id}`)).headers['etag'])
    expect((await ada.send('PUT', path, { body: { enabled: false }, headers: { 'if-match': current } })).status).toBe(
      202,
    )
  })

  test('waits for no other operation: 409 while one runs', async () => {
    const { body } = await create()
    const reply = await ada.send('PUT', `/v1/servers/${body.server.id}/metadata`, { body: { enabled: false } })
    expect(reply.body).toMatchObject({
      status: 409,
      reason: 'operation_in_progress',
      active_operation_id: body.operation.id,
    })
    expect((await cloud.admin.get(Server, keyOf(body.server.id)))?.spec.metadataEnabled).toBe(true)
  })
})

describe('delete_server', () => {
  test('does not exist once its deletion has succeeded, however long its object takes to be removed', async () => {
    const id = await createSettled('stopped')
    await settle(id, 'stopped')
    await cloud.admin.delete(Server, keyOf(id))
    expect((await ada.send('GET', `/v1/servers/${id}`)).status).toBe(200)
    const other = await createSettled('stopped')
    expect((await ada.send('DELETE', `/v1/servers/${other}`)).status).toBe(202)
    await settle(other, 'stopped')
    await cloud.admin.delete(Server, keyOf(other))
    for (const [method, body] of [['GET'], ['PATCH', { title: 'late' }], ['DELETE']] as const)
      expect((await ada.send(method, `/v1/servers/${other}`, { body })).status).toBe(404)
  })

  test('is accepted while the server is still being made and replaces that operation', async () => {
    const { body } = await create()
    const reply = await ada.send('DELETE', `/v1/servers/${body.server.id}`)
    expect(reply.status).toBe(202)
    expect(reply.body.operation).toMatchObject({ kind: 'server.delete', status: 'pending' })
    expect((await ada.send('DELETE', `/v1/servers/${body.server.id}`)).body).toMatchObject({
      status: 409,
      reason: 'operation_in_progress',
    })
  })

  test('takes the storages along when the request says so, and leaves them otherwise', async () => {
    const argumentsOf = async (query: string) => {
      const id = await createSettled()
      expect((await ada.send('DELETE', `/v1/servers/${id}${query}`)).status).toBe(202)
      return (await cloud.admin.get(Server, keyOf(id)))?.spec.operation?.arguments
    }
    expect(await argumentsOf('?delete_storages=true')).toEqual({ delete_storages: 'true' })
    expect(await argumentsOf('?delete_storages=false')).toBeUndefined()
    expect(await argumentsOf('')).toBeUndefined()
  })
})

describe('list_servers', () => {
  test('pages are newest first, complete and without repeats while servers come and go', async () => {
    for (let count = 0; count < 7; count++) await create({ labels: { page: 'yes' } })
    const all = (await ada.send('GET', '/v1/servers')).body.items.map((server: { id: string }) => server.id) as string[]
    const seen: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: { items: { id: string }[]; next_cursor: string | null } = (
        await ada.send('GET', `/v1/servers?limit=3${cursor === '' ? '' : `&cursor=${cursor}`}`)
      ).body as { items: { id: string }[]; next_cursor: string | null }
      seen.push(...page.items.map((server) => server.id))
      if (cursor === '') await create()
      cursor = page.next_cursor
    }
    expect(seen).toEqual(all)
    expect((await ada.send('GET', '/v1/servers?limit=1000')).body.items.length).toBe(all.length + 1)
  })

  test('a cursor of another account, another list or none at all is 400', async () => {
    const { next_cursor: cursor } = (await ada.send('GET', '/v1/servers?limit=1')).body
    for (const [person, path] of [
      [bob, `/v1/servers?cursor=${cursor}`],
      [ada, `/v1/ssh-keys?cursor=${cursor}`],
      [ada, '/v1/servers?cursor=abc'],
    ] as const) {
      expect((await person.send('GET', path)).body, path).toMatchObject({ status: 400, errors: [{ field: 'cursor' }] })
    }
  })

  test.each(['limit=0', 'limit=-1', 'limit=x', 'label=nokey', 'colour=red', 'limit=1&limit=2'])(
    'refuses %s',
    async (query) => {
      expect((await ada.send('GET', `/v1/servers?${query}`)).status).toBe(400)
    },
  )
})

test('another account sees and changes nothing', async () => {
  const id = await createSettled()
  const replies = await Promise.all([
    bob.send('GET', `/v1/servers/${id}`),
    bob.send('PATCH', `/v1/servers/${id}`, { body: {} }),
    bob.send('DELETE', `/v1/servers/${id}`),
    bob.send('POST', `/v1/servers/${id}/stop`),
    bob.send('GET', `/v1/servers/${id}/console/stream`),
  ])
  expect(replies.map((reply) => reply.status)).toEqual([404, 404, 404, 404, 404])
  expect((await bob.send('GET', '/v1/servers')).body.items).toEqual([])
  expect((await Promise.all(replies.map((reply) => cloud.auditOf(reply)))).flat()).toEqual([])
})
