/** A product that is killed, and a customer who goes on all the same. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { eventually, until } from '../eventually.ts'
import { Customer, type Operation, type Server } from './customer.ts'
import { clearAway, newFolder, Product } from './product.ts'

const FLAGS = ['--hypervisor', 'qemu', '--nodes', 'eu-1a=1']

export interface Survivor {
  readonly customer: Customer
  /** The one that was started last. */
  readonly product: Product
  /** Starts it where it was, after it was killed. */
  restart(): Promise<void>
  create(hostname: string): Promise<{ readonly server: Server; readonly operation: Operation }>
  remove(id: string): Promise<Operation>
  /** Waits until nothing is left of any server. */
  nothingIsLeft(): Promise<unknown>
  close(): Promise<void>
}

/** What is killed comes back within the time that nobody is woken for: the others log no warning. */
export async function openSurvivor(email: string, warnings: readonly RegExp[] = []): Promise<Survivor> {
  const data = await newFolder()
  const start = () => Product.start({ data, flags: FLAGS, warnings })
  let product = await start()
  const customer = await Customer.signUp(() => product, email)
  await customer.addSshKey()

  async function begun(kind: string, serverId: string): Promise<Operation> {
    const { body } = await customer.request<{ items?: readonly Operation[] }>(
      'GET',
      `/v1/operations?resource=server:${serverId}`,
    )
    const operation = body.items?.find((one) => one.kind === kind)
    if (operation === undefined) throw new Error(`there is no ${kind} of ${serverId}`)
    return operation
  }

  return {
    customer,
    get product() {
      return product
    },
    async restart() {
      product = await start()
    },
    /** While parts are being replaced the API may answer 503, also for a change that it made: then the operation is
     *  looked up, as a client would. */
    create: (hostname) =>
      eventually('the creation to be accepted', async () => {
        try {
          return await customer.createServer({ zone: 'eu-1a', hostname, plan: 'tiny', template: 'tiny-linux' })
        } catch (refusal) {
          const { body } = await customer.request<{ items?: readonly Server[] }>(
            'GET',
            `/v1/servers?hostname=${hostname}`,
          )
          const server = body.items?.[0]
          if (server === undefined) throw refusal
          return { server, operation: await begun('server.create', server.id) }
        }
      }),
    remove: (id) =>
      eventually('the deletion to be accepted', () =>
        customer.change('DELETE', `/v1/servers/${id}`).catch(() => begun('server.delete', id)),
      ),
    nothingIsLeft: () =>
      until(
        'nothing to be left',
        () => product.leftovers(),
        (left) => left.length === 0,
      ),
    close: () => clearAway(product, data),
  }
}

/** An agent that was killed while it began a guest has used up an incarnation: the guest counts as started and crashed,
 *  which ends the creation, and the next start follows by itself. */
const runsAgain = (survivor: Survivor, id: string): Promise<unknown> =>
  until(
    'the server to run, once',
    async () => ({ ...(await survivor.customer.server(id)), guests: await survivor.product.guests() }),
    ({ state, active_operation, guests }) => state === 'started' && active_operation === null && guests.length === 1,
  )

/** Everything is killed so long after a creation and after the deletion was accepted; afterwards all converges. */
export async function surviveKills(survivor: Survivor, milliseconds: number): Promise<void> {
  const { server, operation } = await survivor.create(`crash-${milliseconds}`)
  await sleep(milliseconds)
  await survivor.product.killEverything()
  await survivor.restart()
  expect(await survivor.customer.finished(operation.id)).toMatchObject({ kind: 'server.create', status: 'succeeded' })
  await runsAgain(survivor, server.id)

  const deletion = await survivor.remove(server.id)
  await sleep(milliseconds)
  await survivor.product.killEverything()
  await survivor.restart()
  expect(await survivor.customer.finished(deletion.id)).toMatchObject({ kind: 'server.delete', status: 'succeeded' })
  await survivor.nothingIsLeft()
}
