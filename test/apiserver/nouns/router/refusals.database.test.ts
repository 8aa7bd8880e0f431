/** What REST refuses of routers, with its sentence. What kubectl refuses is in `admission/admit.database.test.ts`. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Zone } from '../../../../resources/catalog/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { Network } from '../../../../resources/network/index.ts'
import { Router } from '../../../../resources/router/index.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'
import { naming, refusals } from '../../refusals.ts'

const database = useDatabase()
let cloud: Cloud
let owner: Person
const ids: Record<string, string> = {}

/** What its controller says when its operation has succeeded. */
async function finish(type: typeof Network | typeof Router, id: string): Promise<void> {
  const key = { namespace: accountNamespace(owner.accountId), name: id }
  const found = await cloud.admin.get(type as typeof Router, key) // only what both have is read
  if (found?.spec.operation === undefined) throw new Error(`${id} has no operation`)
  const { kind, actor, requestedAt, deadlineAt, id: operationId } = found.spec.operation
  const operation = { id: operationId, kind, actor, deadlineAt, createdAt: requestedAt, error: '' }
  const ended = { ...operation, status: 'succeeded', step: 'installed', stepIndex: 3, stepCount: 3 } as const
  await cloud.admin.patch(type as typeof Router, key, { status: { operation: ended } }, 'status')
}

async function make(noun: 'network' | 'router', name: string, body: object): Promise<void> {
  const sent = naming(ids).body({ name, zone: cloud.zone, ...body })
  const reply = await owner.send('POST', `/v1/${noun}s`, { body: sent })
  expect(reply.status, JSON.stringify(reply.body)).toBe(202)
  const { id } = reply.body[noun]
  ids[name] = id
  await finish(noun === 'network' ? Network : Router, id)
}

const BUSY = 'Another operation runs on this resource. Wait until it has ended, then try again.'
const FULL = 'Zone eu-1-a has no free public IPv4 address now. Choose another zone, or try again later.'

beforeAll(async () => {
  cloud = await openCloud(database.db)
  owner = await cloud.signUp('owner@example.com')
  for (const name of ['bare', 'closed'])
    await cloud.admin.create(Zone, {
      metadata: { name },
      spec: { displayName: name, region: 'eu-1', isClosed: name === 'closed', capabilities: [] },
    })
  await database.db.updateTable('account_quota').set({ limit: 1_000 }).execute()
  await make('network', 'back', { ipv4_cidr: '10.1.0.0/24' })
  await make('network', 'over', { ipv4_cidr: '10.1.0.128/25' })
  await make('network', 'front', { ipv4_cidr: '10.2.0.0/24' })
  await make('network', 'free', { ipv4_cidr: '10.3.0.0/24' })
  await make('router', 'out', { network_ids: ['back'] })
  await make('router', 'other', { network_ids: ['front'] })
  await make('router', 'alone', {})
})
afterAll(() => cloud.close())

const route = (destination: string, next_hop: string) => ({ static_routes: [{ destination, next_hop }] })

test('a router is not made, changed or deleted', async () => {
  const routers = '/v1/routers'
  const out = '/v1/routers/:out'
  const make = (what: string, body: object) =>
    [`made ${what}`, 'POST', routers, { zone: cloud.zone, name: 'new', ...body }] as const
  expect(
    await refusals(owner, ids, [
      make('in a zone that is not there', { zone: 'nowhere' }),
      make('in a zone without networks', { zone: 'bare' }),
      make('in a closed zone', { zone: 'closed' }),
      make('at a network that is not there', { network_ids: ['nothing'] }),
      make('at a network of another router', { network_ids: ['front'] }),
      make('with NAT where no address is left', { nat_enabled: true }),
      make('with a route to nowhere', route('127.0.0.0/8', '10.1.0.9')),
      make('with a route by nobody', route('10.9.0.0/16', '10.7.0.9')),
      make('with a second way outside', { nat_enabled: true, ...route('0.0.0.0/0', '10.1.0.9') }),
      make('with the name of another', { name: 'out' }),
      ['changed where it is not there', 'PATCH', `${routers}/nothing`, { name: 'a' }],
      ['named as another', 'PATCH', out, { name: 'other' }],
      ['given NAT without an address', 'PATCH', out, { nat_enabled: true }],
      ['given a route by nobody', 'PATCH', out, route('10.9.0.0/16', '10.7.0.9')],
      ['given a network that is not there', 'POST', `${out}/networks`, { network_id: 'nothing' }],
      ['given a network of another router', 'POST', `${out}/networks`, { network_id: 'front' }],
      ['given a network of its own', 'POST', `${out}/networks`, { network_id: 'back' }],
      ['given a network that overlaps', 'POST', `${out}/networks`, { network_id: 'over' }],
      ['given a network where it is not there', 'POST', `${routers}/nothing/networks`, { network_id: 'free' }],
      ['parted from a network of another', 'DELETE', `${out}/networks/:front`],
      ['parted from a network that is not there', 'DELETE', `${out}/networks/nothing`],
      ['deleted with networks', 'DELETE', out],
    ]),
  ).toEqual([
    'made in a zone that is not there: 400 (zone) zone: there is no zone nowhere; there are bare, closed, eu-1-a',
    'made in a zone without networks: 409 zone_capability_missing The zone bare has no private ' +
      'networks: none of its hosts answers yet.',
    'made in a closed zone: 503 no_capacity The zone takes nothing new.',
    'made at a network that is not there: 404 No such network.',
    'made at a network of another router: 409 in_use The network is at a router already. Detach it there first.',
    `made with NAT where no address is left: 503 no_free_address ${FULL}`,
    'made with a route to nowhere: 400 (static_routes.0.destination) static_routes.0.destination: ' +
      'cannot be the destination of a route',
    'made with a route by nobody: 400 (static_routes.0.next_hop) static_routes.0.next_hop: is in ' +
      "none of the router's networks",
    'made with a second way outside: 400 (static_routes.0.destination) static_routes.0.destination: ' +
      'is where the address of the router leads already: it has NAT',
    'made with the name of another: 409 name_taken The account has a router of this name in zone eu-1-a.',
    'changed where it is not there: 404 No such router.',
    'named as another: 409 name_taken The account has a router of this name in zone eu-1-a.',
    `given NAT without an address: 503 no_free_address ${FULL}`,
    'given a route by nobody: 400 (static_routes.0.next_hop) static_routes.0.next_hop: is in none of ' +
      "the router's networks",
    'given a network that is not there: 404 No such network.',
    'given a network of another router: 409 in_use The network is at a router already. Detach it there first.',
    'given a network of its own: 409 in_use The network is at a router already. Detach it there first.',
    'given a network that overlaps: 409 in_use The range of the network overlaps 10.1.0.0/24, which ' +
      'is at the router already.',
    'given a network where it is not there: 404 No such router.',
    'parted from a network of another: 404 No such network at the router.',
    'parted from a network that is not there: 404 No such network at the router.',
    'deleted with networks: 409 in_use Networks are at the router. Detach them first.',
  ])
})

test('a router that changes is named and labelled only', async () => {
  const alone = '/v1/routers/:alone'
  expect(
    await refusals(owner, ids, [
      ['given a network', 'POST', `${alone}/networks`, { network_id: 'free' }],
      ['given another network', 'POST', `${alone}/networks`, { network_id: 'over' }],
      ['parted from it', 'DELETE', `${alone}/networks/:free`],
      ['parted from another', 'DELETE', `${alone}/networks/:over`],
      ['given a route', 'PATCH', alone, route('10.9.0.0/16', '10.3.0.9')],
      ['deleted', 'DELETE', alone],
      ['named and labelled', 'PATCH', alone, { name: 'renamed', labels: { a: 'b' } }],
    ]),
  ).toEqual([
    'given a network: 202',
    `given another network: 409 operation_in_progress ${BUSY}`,
    `parted from it: 409 operation_in_progress ${BUSY}`,
    'parted from another: 404 No such network at the router.',
    `given a route: 409 operation_in_progress ${BUSY}`,
    `deleted: 409 operation_in_progress ${BUSY}`,
    'named and labelled: 200',
  ])
})
