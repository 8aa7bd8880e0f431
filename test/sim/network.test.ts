/** A network without other faults: a server is in it, has a firewall, leaves it, and another comes to its address.
 *  Where the network answers before rows are removed, or says what hosts have not done, the watchers must see it. */
import { expect, it } from 'vitest'
import { useConnection } from './connection.ts'
import { SimulatedPostgres } from './database.ts'
import { empty } from './simulate.ts'
import { ask } from './requests.ts'
import { openAccounts } from './workload.ts'
import { KEY, PLAN, TEMPLATE } from './catalog.ts'
import { openWorld, type WorldOptions } from './world.ts'

const SEED = 1
const MINUTE_MILLISECONDS = 60_000
const ZONE = 'zone-a'
const FIREWALL = {
  enabled: true,
  rules: [{ direction: 'in', action: 'accept', protocol: 'tcp', port_start: 22, port_end: 22 }],
}

const connection = useConnection()

/** The addresses that the servers had one after the other, and what the watchers saw. */
async function exchangeAddress(options: WorldOptions) {
  const client = connection()
  await empty(client)
  const world = await openWorld(SEED, (scheduler) => new SimulatedPostgres(client, scheduler), {
    ...options,
    hasNetwork: true,
  })
  const { scheduler } = world
  const pass = (milliseconds: number, isDone: () => boolean = () => false) =>
    scheduler.runUntil(scheduler.nowMilliseconds + milliseconds, isDone)
  world.calm()
  const [account] = await scheduler.track(openAccounts(world.db, world, 1))
  if (account === undefined) throw new Error('no account')
  const send = async (method: string, path: string, body?: unknown): Promise<Record<string, any>> => {
    let answer: Awaited<ReturnType<typeof ask>>
    void ask(world, account, method, path, body).then((given) => (answer = given))
    await pass(MINUTE_MILLISECONDS / 2)
    expect(answer?.response.status, `${method} ${path}: ${JSON.stringify(answer?.json)}`).toBeLessThan(300)
    return answer?.json as Record<string, any> // what is read of it
  }
  const makeServer = async (hostname: string, networks: readonly object[]): Promise<string> =>
    (
      await send('POST', '/v1/servers', {
        zone: ZONE,
        hostname,
        plan: PLAN,
        template: TEMPLATE,
        ssh_keys: [KEY],
        networks,
      })
    )['server'].id
  const portOf = async (server: string) => (await send('GET', `/v1/servers/${server}/interfaces`))['items'][1]

  await pass(MINUTE_MILLISECONDS, () => world.api() !== undefined)
  await pass(MINUTE_MILLISECONDS)
  const { id: network_id } = (await send('POST', '/v1/networks', { zone: ZONE, name: 'back' }))['network']
  const [one, other] = [await makeServer('one', [{ network_id }]), await makeServer('other', [])]
  await send('PUT', `/v1/servers/${one}/firewall`, FIREWALL)
  const firewall = await send('GET', `/v1/servers/${one}/firewall`)
  await send('PUT', `/v1/servers/${one}/firewall`, { enabled: false, rules: [] })
  const before = await portOf(one)
  await send('DELETE', `/v1/servers/${one}/interfaces/${before.id}`)
  await send('POST', `/v1/servers/${other}/interfaces`, { network_id })
  const after = await portOf(other)
  world.end()
  await scheduler.drain()
  return { before, after, firewall, violations: world.isolationViolations() }
}

it('gives an address to another server once the first has left, and reports when hosts filter', async () => {
  const { before, after, firewall, violations } = await exchangeAddress({})
  expect(after.ipv4_address).toBe(before.ipv4_address)
  expect(firewall['firewall'] ?? firewall).toMatchObject({ generation: 1, applied_generation: 1 })
  expect(violations).toEqual([])
})

it('finds an address that is given away while the network has it at another port', async () => {
  const { violations } = await exchangeAddress({ without: 'network_order' })
  expect(violations).toContainEqual(expect.stringMatching(/^10\.\S+ in .* is at the ports \S+ and \S+$/))
})

it('finds a firewall that is said to be applied before its host has it', async () => {
  const { violations } = await exchangeAddress({ without: 'network_truth' })
  expect(violations).toContainEqual(expect.stringMatching(/ says that firewall \d is applied, and \S+ has not/))
})
