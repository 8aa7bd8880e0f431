/** Nodes that share no storage, with real QEMU: the disk goes over with the running guest, and is copied for one that
 *  stands still. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { until } from '../eventually.ts'
import { Customer, type Operation } from './customer.ts'
import { clearAway, newFolder, Product } from './product.ts'

const POLL_MILLISECONDS = 100

let data: string
let product: Product
let customer: Customer

beforeAll(async () => {
  data = await newFolder()
  product = await Product.start({
    data,
    flags: ['--hypervisor', 'qemu', '--nodes', 'eu-1a=2'],
    environment: { SVCCLOUD_SHARED_VOLUMES: 'none' },
    warnings: [],
  })
  customer = await Customer.signUp(() => product, 'mover@example.com')
  await customer.addSshKey()
})
afterAll(() => clearAway(product, data))

interface Watched extends Operation {
  readonly progress?: {
    readonly state: string
    readonly phase: string
    readonly transferred_bytes: number
    readonly total_bytes: number
    readonly reported_at: string | null
  }
}

/** Polls to the end; answers the end, and all that was shown on the way. */
async function watched(
  id: string,
): Promise<{ readonly status: string; readonly progress: readonly NonNullable<Watched['progress']>[] }> {
  const progress: NonNullable<Watched['progress']>[] = []
  for (;;) {
    const operation: Watched = await customer.operation(id)
    if (operation.progress !== undefined) progress.push(operation.progress)
    if (['succeeded', 'failed', 'cancelled'].includes(operation.status)) return { status: operation.status, progress }
    await sleep(POLL_MILLISECONDS)
  }
}

it('takes the disk along, live and cold, and leaves nothing behind', async () => {
  const { server, operation } = await customer.createServer({
    zone: 'eu-1a',
    hostname: 'carrier',
    plan: 'tiny',
    template: 'tiny-linux',
  })
  expect(await customer.finished(operation.id)).toMatchObject({ status: 'succeeded' })
  const first = customer.console(server.id)
  await first.see(/root@carrier:~# /, 0)
  await first.type('echo memory > /tmp/kept; echo disk > /data/kept; sync; echo written.\n')
  await first.see(/\nwritten\./, 0)
  first.close()

  const { status, progress } = await watched((await customer.change('POST', `/v1/servers/${server.id}/move`, {})).id)
  expect(status).toBe('succeeded')
  expect(progress.map(({ state }) => state)).toEqual(expect.arrayContaining(['preparing', 'sending']))
  const sent = progress
    .filter(({ phase }) => phase === 'transferring')
    .map(({ transferred_bytes }) => transferred_bytes)
  expect(sent).toEqual(sent.toSorted((one, other) => one - other))
  expect(await customer.server(server.id)).toMatchObject({ state: 'started' })
  const second = customer.console(server.id)
  await second.type('cat /tmp/kept /data/kept\n')
  await second.see(/memory\r?\ndisk/, 0)
  second.close()
  expect(await product.disks()).toHaveLength(1)

  expect(
    await customer.finished((await customer.change('POST', `/v1/servers/${server.id}/stop`, {})).id),
  ).toMatchObject({ status: 'succeeded' })
  expect(
    await customer.finished((await customer.change('POST', `/v1/servers/${server.id}/move`, {})).id),
  ).toMatchObject({ kind: 'server.move', status: 'succeeded' })
  expect(await customer.server(server.id)).toMatchObject({ state: 'stopped' })
  expect(await customer.finished((await customer.change('POST', `/v1/servers/${server.id}/start`)).id)).toMatchObject({
    status: 'succeeded',
  })
  const third = customer.console(server.id)
  await third.see(/root@carrier:~# /, 0)
  const shown = third.shown.length
  await third.type('cat /data/kept\n')
  await third.see(/\ndisk/, shown)
  third.close()

  expect(await customer.finished((await customer.change('DELETE', `/v1/servers/${server.id}`)).id)).toMatchObject({
    status: 'succeeded',
  })
  await until(
    'nothing to be left',
    () => product.leftovers(),
    (left) => left.length === 0,
  )
})
