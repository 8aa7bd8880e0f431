/** A disk that operators move with real QEMU, to shared storage and back, under a guest that writes to it all the time.
 *  What the guest learned to be on the disk is there afterwards. */
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Customer, type Operation } from './customer.ts'
import { clearAway, newFolder, Product } from './product.ts'

let data: string
let product: Product
let customer: Customer

beforeAll(async () => {
  data = await newFolder()
  product = await Product.start({ data, flags: ['--hypervisor', 'qemu', '--nodes', 'eu-1a=2'], warnings: [] })
  customer = await Customer.signUp(() => product, 'mover@example.com')
  await customer.addSshKey()
})
afterAll(() => clearAway(product, data))

interface Storage {
  readonly id: string
  readonly serial: string
  readonly tier: string
  readonly durability: string
  readonly active_operation: Operation | null
}
const storage = async (id: string): Promise<Storage> =>
  (await customer.request<{ storage: Storage }>('GET', `/v1/storages/${id}`)).body.storage

/** Asks as an operator, and answers the operation. */
async function operate(path: string, body: object): Promise<Operation> {
  const token = await readFile(product.endpoints.operator_token_file ?? '', 'utf8')
  const response = await fetch(`${product.endpoints.operator_url}/v1/operator${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token.trim()}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const answer = (await response.json()) as { readonly operation: Operation }
  expect(response.status, JSON.stringify(answer)).toBe(202)
  return answer.operation
}
const moved = async (id: string, body: object): Promise<Storage> => {
  const { id: operation } = await operate(`/storages/${id}/move`, body)
  expect(await customer.finished(operation)).toMatchObject({ status: 'succeeded', error: '' })
  return storage(id)
}
const nodeOf = async (id: string): Promise<string> => {
  const { items } = await product.kubernetes('/apis/svccloud.dev/v1alpha1/storages')
  const found = items.find(({ metadata }) => metadata.name === id) as
    | { readonly status?: { readonly nodeName?: string } }
    | undefined // a Storage
  return found?.status?.nodeName ?? ''
}
const other = (node: string): string => (node === 'eu-1a-1' ? 'eu-1a-2' : 'eu-1a-1')

it('loses nothing that a guest wrote while its disk went to shared storage and back', {
  timeout: 900_000,
}, async () => {
  const { server, operation } = await customer.createServer({
    zone: 'eu-1a',
    hostname: 'writer',
    plan: 'tiny',
    template: 'tiny-linux',
  })
  const made = (
    await customer.request<{ storage: Storage; operation: Operation }>('POST', '/v1/storages', {
      zone: 'eu-1a',
      size_gibibytes: 1,
      tier: 'local-nvme',
    })
  ).body
  expect(await customer.finished(operation.id)).toMatchObject({ status: 'succeeded' })
  expect(await customer.finished(made.operation.id)).toMatchObject({ status: 'succeeded' })
  const { id, serial } = made.storage
  const attach = await customer.change('POST', `/v1/storages/${id}/attach`, { server_id: server.id })
  expect(await customer.finished(attach.id)).toMatchObject({ status: 'succeeded' })

  const first = customer.console(server.id)
  await first.see(/root@writer:~# /, 0)
  await first.type(
    `D=$(grep -l ${serial} /sys/block/vd*/serial | cut -d/ -f4); n=0; while [ ! -e /tmp/stop ]; do n=$((n+1)); ` +
      `printf %08d $n | dd of=/dev/$D bs=512 seek=$n conv=notrunc,fsync 2>/dev/null && echo "kept $n"; ` +
      'sleep 0.2; done &\n',
  )
  const keptAfter = async (console: typeof first): Promise<number> => {
    const from = console.shown.length
    await console.see(/kept \d+\r?\n/, from)
    return Number([...console.shown.matchAll(/kept (\d+)\r?\n/g)].at(-1)?.[1])
  }
  const before = await keptAfter(first)
  const home = await nodeOf(id)
  expect(await moved(id, { tier: 'standard' })).toMatchObject({ tier: 'standard', durability: 'replicated' })
  expect(await nodeOf(id)).toBe(other(home))
  const between = await keptAfter(first)
  expect(between).toBeGreaterThan(before)
  expect(await moved(id, { tier: 'local-nvme', target_node_id: home })).toMatchObject({
    tier: 'local-nvme',
    durability: 'single_copy',
  })
  expect(await nodeOf(id)).toBe(home)
  expect(await keptAfter(first)).toBeGreaterThan(between)

  await first.type('touch /tmp/stop; wait; echo 3 > /proc/sys/vm/drop_caches; echo stopped.\n')
  await first.see(/\nstopped\./, 0)
  const last = Number([...first.shown.matchAll(/kept (\d+)\r?\n/g)].at(-1)?.[1])
  const from = first.shown.length
  await first.type(
    `i=0; lost=0; while [ $i -lt ${last} ]; do i=$((i+1)); ` +
      'v=$(dd if=/dev/$D bs=512 skip=$i count=1 2>/dev/null | head -c 8); ' +
      '[ "$v" = $(printf %08d $i) ] || lost=$((lost+1)); done; echo "lost $lost of $i."\n',
  )
  const checked = await first.see(/lost \d+ of \d+\./, from)
  expect(checked).toContain(`lost 0 of ${last}.`)
  first.close()

  // Detached, it is closed: another node can read the whole of it.
  const detach = await customer.change('POST', `/v1/storages/${id}/detach`)
  expect(await customer.finished(detach.id)).toMatchObject({ status: 'succeeded' })
  await moved(id, { target_node_id: other(home) })
  expect(await nodeOf(id)).toBe(other(home))
})
