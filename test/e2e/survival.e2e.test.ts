/** `kill -9` of everything and of each component, with a real guest and in the middle of changes: afterwards all
 *  converges. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { signalProcess } from '../../kit/sys/process.ts'
import { eventually, until } from '../eventually.ts'
import { Customer, type Operation, type Server } from './customer.ts'
import { clearAway, newFolder, Product } from './product.ts'

let data: string
let product: Product
let customer: Customer
const flags = ['--hypervisor', 'qemu', '--nodes', 'eu-1a=1']

beforeAll(async () => {
  data = await newFolder()
  product = await Product.start({ data, flags })
  customer = await Customer.signUp(() => product, 'survivor@example.com')
  await customer.addSshKey()
})
afterAll(() => clearAway(product, data))

/** While parts are being replaced the API may answer 503, also for a change that it made: then the operation is looked
 *  up, as a client would. */
const create = (hostname: string) =>
  eventually('the creation to be accepted', async () => {
    try {
      return await customer.createServer({ zone: 'eu-1a', hostname, plan: 'tiny', template: 'tiny-linux' })
    } catch (refusal) {
      const { body } = await customer.request<{ items?: readonly Server[] }>('GET', `/v1/servers?hostname=${hostname}`)
      const server = body.items?.[0]
      if (server === undefined) throw refusal
      return { server, operation: await begun('server.create', server.id) }
    }
  })

const remove = (id: string) =>
  eventually('the deletion to be accepted', () =>
    customer.change('DELETE', `/v1/servers/${id}`).catch(() => begun('server.delete', id)),
  )

async function begun(kind: string, serverId: string): Promise<Operation> {
  const { body } = await customer.request<{ items?: readonly Operation[] }>(
    'GET',
    `/v1/operations?resource=server:${serverId}`,
  )
  const operation = body.items?.find((one) => one.kind === kind)
  if (operation === undefined) throw new Error(`there is no ${kind} of ${serverId}`)
  return operation
}

const expectNothingLeft = () =>
  until(
    'nothing to be left',
    () => product.leftovers(),
    (left) => left.length === 0,
  )

it('finds a running guest again after everything was killed', async () => {
  const { server, operation } = await create('survivor')
  expect(await customer.finished(operation.id)).toMatchObject({ status: 'succeeded' })
  const guests = await product.guests()
  expect(guests).toHaveLength(1)
  const before = customer.console(server.id)
  await before.see(/root@survivor:~# /, 0)
  await before.type('touch /tmp/before\n')
  before.close()

  await product.killEverything()
  expect(await product.guests()).toEqual(guests)
  product = await Product.start({ data, flags })

  expect(await product.guests()).toEqual(guests)
  expect(await customer.server(server.id)).toMatchObject({ state: 'started' })
  const after = await eventually('the console', async () => {
    const console = customer.console(server.id)
    await console.see(/survivor/, 0, 2_000).catch((error: unknown) => {
      console.close()
      throw error
    })
    return console
  })
  const shown = after.shown.length
  await after.type('ls /tmp\n')
  await after.see(/before/, shown)
  after.close()
  expect(await customer.finished((await remove(server.id)).id)).toMatchObject({ status: 'succeeded' })
  await expectNothingLeft()
})

describe('everything killed in the middle of a change', () => {
  it.each([0, 300, 1_500])('%i ms into a creation and a deletion', async (milliseconds) => {
    const { server, operation } = await create(`crash-${milliseconds}`)
    await sleep(milliseconds)
    await product.killEverything()
    product = await Product.start({ data, flags })
    expect(await customer.finished(operation.id)).toMatchObject({ kind: 'server.create', status: 'succeeded' })
    expect(await customer.server(server.id)).toMatchObject({ state: 'started' })
    expect(await product.guests()).toHaveLength(1)

    const deletion = await remove(server.id)
    await sleep(milliseconds)
    await product.killEverything()
    product = await Product.start({ data, flags })
    expect(await customer.finished(deletion.id)).toMatchObject({ kind: 'server.delete', status: 'succeeded' })
    await expectNothingLeft()
  })
})

describe('one component killed in the middle of a change', () => {
  it.each(['postgres', 'kubernetes', 'controllers', 'apiserver', 'agent-eu-1a-1'])('%s', async (component) => {
    const { server, operation } = await create(`without-${component}`)
    await product.killComponent(component)
    expect(await customer.finished(operation.id)).toMatchObject({ status: 'succeeded' })
    expect(await product.guests()).toHaveLength(1)
    const deletion = await remove(server.id)
    await product.killComponent(component)
    expect(await customer.finished(deletion.id)).toMatchObject({ status: 'succeeded' })
    await expectNothingLeft()
  })
})

it('ends the components with their supervisor, and never the guests', async () => {
  const { operation } = await create('orphan')
  expect(await customer.finished(operation.id)).toMatchObject({ status: 'succeeded' })
  const [guests, components] = [await product.guests(), [...(await product.processes()).values()]]
  signalProcess(product.endpoints.pid, 'SIGKILL')
  await eventually('the components to end', async () => components.every((pid) => !signalProcess(pid, 0)))
  expect(await product.guests()).toEqual(guests)
  product = await Product.start({ data, flags })
  expect(await product.guests()).toEqual(guests)
})
