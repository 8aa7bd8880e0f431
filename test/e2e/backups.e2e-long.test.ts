/** Backups of a running product with real disks in two zones: a copy is restored where its own zone is lost, and a
 *  restore in place keeps what was there. */
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runProgram } from '../../agents/node/run-program.ts'
import { eventually } from '../eventually.ts'
import { Customer, type Operation } from './customer.ts'
import { clearAway, newFolder, Product } from './product.ts'

const [ZONE, OTHER_ZONE] = ['eu-1a', 'eu-1b']
let data: string
let product: Product
let customer: Customer

beforeAll(async () => {
  data = await newFolder()
  const flags = ['--hypervisor', 'qemu', '--network', 'user', '--nodes', `${ZONE}=1,${OTHER_ZONE}=1`]
  product = await Product.start({ data, flags, warnings: [] })
  customer = await Customer.signUp(() => product, 'keeper@example.com')
})
afterAll(() => clearAway(product, data))

async function made(noun: 'storage' | 'backup', path: string, body: object): Promise<string> {
  const answer = await customer.request<Record<string, { readonly id: string }> & { readonly operation: Operation }>(
    'POST',
    path,
    body,
  )
  expect(answer.status, JSON.stringify(answer.body)).toBe(202)
  expect(await customer.finished(answer.body.operation.id)).toMatchObject({ status: 'succeeded', error: '' })
  return answer.body[noun]?.id ?? ''
}

/** The file of a storage's disk. */
async function diskOf(storageId: string, node: string): Promise<string> {
  const { items } = await product.kubernetes('/apis/svccloud.dev/v1alpha1/storages')
  const found = items
    .map(({ metadata }) => metadata as { readonly name: string; readonly uid: string })
    .find(({ name }) => name === storageId)
  return join(data, 'nodes', node, 'volumes', `${found?.uid}.qcow2`)
}
/** The place that has the backup is lost, with all in it: a bucket of the zone's object storage where the engine is
 *  built, else a folder of its hosts. */
async function lose(backup: string): Promise<void> {
  const tenants = await readdir(join(data, 'object-storage', 'tenants')).catch(() => [])
  const kept = tenants.map((number) => `object-storage/tenants/${number}/data`)
  const roots = ['backups', ...kept].map((path) => join(data, path))
  const found = roots.map(async (root) => {
    const files = await readdir(root, { recursive: true }).catch(() => [])
    return files.filter((path) => path.includes(backup)).map((path) => join(root, path.split('/')[0] ?? ''))
  })
  const [place, ...others] = new Set((await Promise.all(found)).flat())
  expect([place, others]).toEqual([expect.any(String), []])
  await rm(place ?? '', { recursive: true })
}
const write = (file: string, pattern: number) => runProgram('qemu-io', ['-c', `write -P ${pattern} 0 1M`, file])
const holds = (file: string, pattern: number) => runProgram('qemu-io', ['-r', '-c', `read -P ${pattern} 0 1M`, file])

it('a zone without a network says why, and so does what is refused', async () => {
  const why = 'it was started with --network user'
  interface Zones {
    readonly items: readonly { readonly network_status_reason: string | null }[]
  }
  const reasonOf = async () => (await customer.request<Zones>('GET', '/v1/zones')).body.items[0]?.network_status_reason
  const reason = await eventually('the zone to know', async () => (await reasonOf()) ?? undefined)
  expect(reason).toBe(`host ${ZONE}-1 has user-mode networking: ${why}`)
  const refused = await customer.request('POST', '/v1/networks', { zone: ZONE, name: 'back' })
  expect(refused.body).toMatchObject({
    status: 409,
    reason: 'zone_capability_missing',
    capability: 'private_networks',
    detail: expect.stringContaining(why),
  })
})

it('a copy is restored in its zone, and a restore in place keeps what was there', async () => {
  const storage = await made('storage', '/v1/storages', { zone: ZONE, size_gibibytes: 1 })
  const disk = await diskOf(storage, `${ZONE}-1`)
  await write(disk, 1)
  await eventually('the copies to be offered', async () => {
    const body = { backup_copy_zone: OTHER_ZONE }
    return (await customer.request('PATCH', `/v1/storages/${storage}`, body)).status === 200 || undefined
  })
  const backup = await made('backup', `/v1/storages/${storage}/backups`, {})
  interface Backup {
    readonly id: string
    readonly zone: string
    readonly state: string
    readonly copy_of_backup_id: string | null
  }
  const { body } = await customer.request<{ items: Backup[] }>('GET', `/v1/backups?storage_id=${storage}`)
  const copy = body.items.find(({ copy_of_backup_id: of }) => of === backup)
  expect(copy).toMatchObject({ zone: OTHER_ZONE, state: 'online' })

  await write(disk, 2)
  const restore = await customer.request<{ operation: Operation }>('POST', `/v1/backups/${backup}/restore`, {})
  expect(await customer.finished(restore.body.operation.id)).toMatchObject({ status: 'succeeded', error: '' })
  await holds(disk, 1)
  interface Snapshot {
    readonly id: string
    readonly title: string
    readonly state: string
  }
  const { body: kept } = await customer.request<{ items: Snapshot[] }>('GET', `/v1/snapshots?storage_id=${storage}`)
  expect(kept.items).toMatchObject([{ title: `Before the restore of backup ${backup}`, state: 'online' }])
  const before = await made('storage', '/v1/storages', { source_snapshot_id: kept.items[0]?.id })
  await holds(await diskOf(before, `${ZONE}-1`), 2)

  await lose(backup)
  const again = await made('storage', '/v1/storages', { source_backup_id: copy?.id })
  await holds(await diskOf(again, `${OTHER_ZONE}-1`), 1)

  expect((await customer.request('DELETE', `/v1/storages/${storage}`)).status).toBe(202)
  await eventually('the snapshot to go with its storage', async () => {
    const { status } = await customer.request('GET', `/v1/snapshots/${kept.items[0]?.id}`)
    return status === 404 || undefined
  })
})
