/** A log line at `warn` is worth waking somebody: the ordinary life of a server in a network writes none. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventually } from '../eventually.ts'
import { Customer } from './customer.ts'
import { clearAway, newFolder, Product } from './product.ts'

let data: string
let product: Product
let customer: Customer
beforeAll(async () => {
  data = await newFolder()
  product = await Product.start({ data, flags: ['--hypervisor', 'qemu'], warnings: [] })
  customer = await Customer.signUp(() => product, 'quiet@example.com')
  await customer.addSshKey()
})
afterAll(() => clearAway(product, data))

it('a server is made, changed and deleted without a warning', async () => {
  const made = await customer.request<{ network: { id: string }; operation: { id: string } }>('POST', '/v1/networks', {
    name: 'quiet',
    zone: 'eu-1a',
    ipv4_cidr: '10.77.0.0/24',
  })
  expect(made.status, JSON.stringify(made.body)).toBe(202)
  const networkId = made.body.network.id
  expect(await customer.finished(made.body.operation.id)).toMatchObject({ status: 'succeeded' })
  const { server, operation } = await customer.createServer({
    hostname: 'quiet',
    zone: 'eu-1a',
    plan: 'tiny',
    template: 'tiny-linux',
    public_ipv4: true,
    networks: [{ network_id: networkId }],
    firewall: { enabled: true, rules: [] },
  })
  expect(await customer.finished(operation.id)).toMatchObject({ status: 'succeeded' })
  const { body } = await customer.request<{ items: { id: string; network_id: string | null }[] }>(
    'GET',
    `/v1/servers/${server.id}/interfaces`,
  )
  const own = body.items.find(({ network_id }) => network_id === networkId)
  const detached = await customer.change('DELETE', `/v1/servers/${server.id}/interfaces/${own?.id}`)
  expect(await customer.finished(detached.id)).toMatchObject({ status: 'succeeded' })
  const opened = await customer.change('PUT', `/v1/servers/${server.id}/firewall`, { enabled: false, rules: [] })
  expect(await customer.finished(opened.id)).toMatchObject({ status: 'succeeded' })
  const stop = await customer.change('POST', `/v1/servers/${server.id}/stop`, {})
  expect(await customer.finished(stop.id)).toMatchObject({ status: 'succeeded' })
  const removal = await customer.change('DELETE', `/v1/servers/${server.id}`)
  expect(await customer.finished(removal.id)).toMatchObject({ status: 'succeeded' })
  await eventually('it to be gone', async () =>
    (await customer.request('GET', `/v1/servers/${server.id}`)).status === 404 ? true : undefined,
  )
  expect(await product.stop()).toBe(0) // and has logged nothing at warn
})
