/** The whole product on a real Ceph cluster of three hosts in two racks: two nodes whose storages of tier `standard`
 *  are images of its pool, and how that keeps them. */
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { useCeph } from '../ceph.ts'
import { Unrecoverable, until } from '../eventually.ts'
import { Customer, type Operation } from './customer.ts'
import { clearAway, newFolder, Product } from './product.ts'
import { UNREAD } from './warnings.ts'

const cluster = useCeph(['rack-0', 'rack-0', 'rack-1'])
let data: string
let product: Product
let customer: Customer

beforeAll(async () => {
  data = await newFolder()
  const { pool, user, keyring, configuration } = cluster.ceph
  product = await Product.start({
    data,
    flags: ['--hypervisor', 'qemu', '--nodes', 'eu-1a=2'],
    environment: {
      SVCCLOUD_CEPH_POOL: pool,
      SVCCLOUD_CEPH_USER: user,
      SVCCLOUD_CEPH_KEYRING: keyring,
      SVCCLOUD_CEPH_CONFIGURATION: configuration,
    },
    warnings: UNREAD,
  })
  customer = await Customer.signUp(() => product, 'ceph@example.com')
  await customer.addSshKey()
})
afterAll(() => clearAway(product, data))

interface Shown {
  readonly storage?: {
    readonly id: string
    readonly serial: string
    readonly durability: string
    readonly server_id: string | null
    readonly active_operation: Operation | null
  }
  readonly snapshot?: { readonly id: string }
  readonly backup?: { readonly id: string }
}
interface Made extends Shown {
  readonly operation: Operation
}
const images = async (): Promise<readonly string[]> =>
  JSON.parse(await cluster.ceph.rbd('ls', '--format', 'json', cluster.ceph.pool))
async function succeed(operation: Operation): Promise<Operation> {
  const end = await customer.finished(operation.id)
  expect(end).toMatchObject({ status: 'succeeded', error: '' })
  return end
}
/** Begins it and waits until it has succeeded. */
async function make(path: string, body: object): Promise<Made> {
  const { status, body: made } = await customer.request<Made>('POST', path, body)
  expect(status, JSON.stringify(made)).toBe(202)
  await succeed(made.operation)
  return made
}
const remove = async (path: string) => succeed(await customer.change('DELETE', path))

it('has disks that outlive moves, deletion and restore, and leaves nothing behind', { timeout: 240_000 }, async () => {
  const { server, operation } = await customer.createServer({
    zone: 'eu-1a',
    hostname: 'carrier',
    plan: 'tiny',
    template: 'tiny-linux',
  })
  await succeed(operation)
  const { storage } = await make('/v1/storages', { zone: 'eu-1a', size_gibibytes: 1, server_id: server.id })
  const { id = '', serial = '' } = storage ?? {}
  expect(await images()).toHaveLength(2)
  const first = customer.console(server.id)
  await first.see(/root@carrier:~# /, 0)
  await first.type(
    `D=/dev/$(grep -l ${serial} /sys/block/vd*/serial | cut -d/ -f4); echo kept | dd of=$D conv=sync,fsync; ` +
      'echo memory > /tmp/kept; echo written.\n',
  )
  await first.see(/\nwritten\./, 0)
  first.close()

  const { snapshot } = await make(`/v1/storages/${id}/snapshots`, { title: 'before' })
  await make(`/v1/storages/${id}/resize`, { size_gibibytes: 2 })
  const { storage: clone } = await make('/v1/storages', { source_snapshot_id: snapshot?.id })
  await succeed(await customer.change('POST', `/v1/servers/${server.id}/move`, {}))
  const { backup } = await make(`/v1/storages/${id}/backups`, { title: 'kept' })
  await remove(`/v1/snapshots/${snapshot?.id}`)
  await succeed(await customer.change('POST', `/v1/storages/${id}/detach`))
  await remove(`/v1/storages/${id}`)
  const { storage: restored } = await make('/v1/storages', { source_backup_id: backup?.id, server_id: server.id })
  await make(`/v1/storages/${clone?.id}/attach`, { server_id: server.id })

  const second = customer.console(server.id)
  await second.type(
    `for S in ${restored?.serial} ${clone?.serial}; do D=/dev/$(grep -l $S /sys/block/vd*/serial | cut -d/ -f4); ` +
      'dd if=$D bs=4 count=1 2>/dev/null; echo " in $(cat /tmp/kept)."; done\n',
  )
  await second.see(/kept in memory\.\r?\nkept in memory\./, 0)
  second.close()
  const { body } = await customer.request<Shown>('GET', `/v1/storages/${restored?.id}`)
  expect(body.storage?.durability).toBe('replicated')

  await succeed(await customer.change('DELETE', `/v1/servers/${server.id}`))
  for (const path of [restored?.id, clone?.id].map((each) => `/v1/storages/${each}`)) {
    const read = async () => (await customer.request<Shown>('GET', path)).body.storage
    const isFree = (storage: Shown['storage']) => storage?.server_id === null && storage.active_operation === null
    await until('the storage to be detached', read, isFree)
    await remove(path)
  }
  await until('the pool to be empty', images, (left) => left.length === 0)
})

/** As the documentation gives them to the client that sets the policy. */
const POLICY_CAPS = [
  'mon',
  'allow r, allow command "osd pool set", allow command "osd crush rule create-replicated"',
  'mgr',
  'allow command "pg dump"',
]

interface PolicyAnswer {
  readonly status: number
  readonly reason?: string
  readonly storage_policy?: { readonly replicas: number | null; readonly failure_domain: string | null }
  readonly operation?: Operation
}
async function policy(body?: object): Promise<PolicyAnswer> {
  const token = await readFile(product.endpoints.operator_token_file ?? '', 'utf8')
  const answer = await fetch(`${product.endpoints.operator_url}/v1/operator/zones/eu-1a/storage-policy`, {
    headers: { authorization: `Bearer ${token.trim()}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { method: 'PUT', body: JSON.stringify(body) }),
  })
  return { ...((await answer.json()) as object), status: answer.status }
}
/** What the administrator of the cluster sees. */
async function poolHas(): Promise<{ readonly copies: number; readonly failureDomain: string }> {
  const { ceph } = cluster
  const read = async (...words: readonly string[]) => JSON.parse(await ceph.administer(...words, '--format', 'json'))
  const { size } = await read('osd', 'pool', 'get', ceph.pool, 'size')
  const { crush_rule: rule } = await read('osd', 'pool', 'get', ceph.pool, 'crush_rule')
  const { steps } = await read('osd', 'crush', 'rule', 'dump', rule)
  const chosen = steps.find(({ op }: { readonly op: string }) => op.startsWith('choose'))
  return { copies: size, failureDomain: chosen.type }
}
interface ZoneShown {
  readonly spec: { readonly operation?: { readonly id: string; readonly actor: string } }
  readonly status: { readonly operation?: { readonly id: string; readonly status: string } }
}
const ZONE = '/apis/svccloud.dev/v1alpha1/zones/eu-1a'
const zone = async () => (await product.kubernetes(ZONE)) as unknown as ZoneShown
const rebalanced = (id: string | undefined) =>
  until('the storage to keep its data so', zone, ({ status }) => {
    if (status.operation?.id === id && status.operation?.status === 'failed')
      throw new Unrecoverable(JSON.stringify(status.operation))
    return status.operation?.id === id && status.operation?.status === 'succeeded'
  })

it('keeps as many copies as the zone says, and by itself as many as there are hosts', {
  timeout: 240_000,
}, async () => {
  const { ceph } = cluster
  const { storage } = await make('/v1/storages', { zone: 'eu-1a', size_gibibytes: 1 })
  const durability = async () =>
    (await customer.request<Shown>('GET', `/v1/storages/${storage?.id}`)).body.storage?.durability
  expect(await policy()).toMatchObject({ status: 200, storage_policy: { replicas: null, failure_domain: null } })
  expect(await policy({ replicas: 2, failure_domain: 'host' })).toMatchObject({ status: 501 })
  expect(await poolHas()).toEqual({ copies: 1, failureDomain: 'osd' })

  const key = (await ceph.administer('auth', 'get-or-create-key', 'client.svccloud-policy', ...POLICY_CAPS)).trim()
  await product.kubernetes('/api/v1/namespaces/svccloud-system/secrets', {
    method: 'POST',
    body: {
      metadata: { name: 'ceph-policy' },
      stringData: { monitors: ceph.monitors, username: 'svccloud-policy', key },
    },
  })
  await product.kubernetes(ZONE, {
    method: 'PATCH',
    body: { spec: { sharedStorage: { protocol: 'ceph', secretName: 'ceph-policy' } } },
  })
  const { spec } = await until('more copies by itself', zone, (found) => found.spec.operation !== undefined)
  expect(spec.operation?.actor).toBe('system:zones')
  await rebalanced(spec.operation?.id)
  expect(await poolHas()).toEqual({ copies: 3, failureDomain: 'host' })
  expect(await policy()).toMatchObject({ status: 200, storage_policy: { replicas: 3, failure_domain: 'host' } })
  await until('what customers see to follow', durability, (seen) => seen === 'replicated')

  expect(await policy({ replicas: 3, failure_domain: 'rack' })).toMatchObject({
    status: 409,
    reason: 'state_not_allowed',
  })
  const asked = await policy({ replicas: 2, failure_domain: 'rack' })
  expect(asked.status, JSON.stringify(asked)).toBe(202)
  await rebalanced(asked.operation?.id)
  expect(await poolHas()).toEqual({ copies: 2, failureDomain: 'rack' })
  expect(await policy()).toMatchObject({ status: 200, storage_policy: { replicas: 2, failure_domain: 'rack' } })

  const single = await policy({ replicas: 1, failure_domain: 'host' })
  await rebalanced(single.operation?.id)
  expect(await poolHas()).toEqual({ copies: 1, failureDomain: 'host' })
  await until('what customers see to follow', durability, (seen) => seen === 'single_copy')
  await remove(`/v1/storages/${storage?.id}`)
})
