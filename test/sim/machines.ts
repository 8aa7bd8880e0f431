/** Network edges and load balancers that are made, changed and deleted while everything is shaken, in separate worlds;
 *  their guests take documents, lose answers and lie. And what must hold of them, at every instant and afterwards. */
import type { Database } from '../../db/kit/open.ts'
import { MANAGED_TEMPLATE, machineOwnerOf } from '../../domain/managed-machine/rules.ts'
import { type KubeObject, type ResourceType, Secret } from '../../kit/kube/object.ts'
import { Template } from '../../resources/catalog/index.ts'
import { Database as DatabaseKind } from '../../resources/database/index.ts'
import { Edge, type EdgeStatus } from '../../resources/edge/index.ts'
import { accountNamespace } from '../../resources/index.ts'
import { nodeNamespace } from '../../resources/instance/index.ts'
import { LoadBalancer, type LoadBalancerStatus, numberOf } from '../../resources/load-balancer/index.ts'
import { MACHINE_DOCUMENT_KEY, MachineDocument, ManagedMachine } from '../../resources/managed-machine/index.ts'
import { Network } from '../../resources/network/index.ts'
import { NodePool } from '../../resources/node-pool/index.ts'
import { activeOperationOf } from '../../resources/operation/index.ts'
import { PublicPool, type PublicPoolSpec } from '../../resources/public-pool/index.ts'
import { Server } from '../../resources/server/index.ts'
import { TINY_LINUX } from '../catalog.ts'
import { KEY, NODES, PLAN, ZONES } from './catalog.ts'
import { type Account, ask, type Send } from './requests.ts'
import type { World } from './world.ts'

/** Of a dice: seldom, because most would be deleted while they are made, and no machine of theirs would ever answer. */
const DELETED_FROM = 0.95

export function runMachines(world: World, accounts: readonly Account[], send: Send, isOver: () => boolean): void {
  const { scheduler, admin } = world
  const { random } = scheduler
  const spec = { ...TINY_LINUX, image: { built: MANAGED_TEMPLATE } }
  void admin.create(Template, { metadata: { name: MANAGED_TEMPLATE }, spec } as never).catch(() => {})
  for (const [index, zone] of ZONES.entries()) {
    const four = { zone, family: 'ipv4', cidr: `203.0.113.${32 + 32 * index}/27`, use: 'server_ipv4' } as PublicPoolSpec
    void admin.create(PublicPool, { metadata: { name: `machines-${zone}` }, spec: four }).catch(() => {})
  }
  void scheduler.repeat({ least: 300, most: 1_800 }, isOver, async () => {
    const account = scheduler.pick(accounts)
    if (account === undefined) return
    await (random.fraction() < 0.5 ? actOnBalancers : actOnEdges)(world, account, send)
  })
  void scheduler.repeat({ least: 4_000, most: 15_000 }, isOver, async () => {
    const type: ResourceType = random.fraction() < 0.5 ? Edge : LoadBalancer
    const object = scheduler.pick((await admin.list(type)).items)
    if (object === undefined) return
    const key = { namespace: object.metadata.namespace ?? '', name: object.metadata.name }
    const change = type === Edge ? { roles: ['nat_gateway'], members: [] } : { frontends: [], backends: [] }
    if (random.fraction() < 0.1) await admin.delete(type, key).catch(() => {})
    else await admin.patch(type, key, { spec: change }).catch(() => {})
  })
}

async function networkOf({ scheduler, admin }: World, account: Account) {
  const { items } = await admin.list(Network, { namespace: accountNamespace(account.id) })
  return scheduler.pick(items.filter(({ metadata }) => metadata.deletionTimestamp === undefined))
}

async function actOnBalancers(world: World, account: Account, send: Send): Promise<void> {
  const { scheduler, admin } = world
  const { random } = scheduler
  const { items } = await admin.list(LoadBalancer, { namespace: accountNamespace(account.id) })
  const balancer = scheduler.pick(items)
  const dice = random.fraction()
  const backend = {
    name: 'web',
    members: [{ name: 'six', address: '2001:db8:9::9', port: 80 + Math.floor(dice * 99) }],
  }
  const configuration = {
    frontends: [{ name: 'web', port: 80 + Math.floor(random.fraction() * 9), mode: 'tcp', backend: 'web' }],
    backends: [backend],
  }
  if (balancer === undefined || dice < 0.25) {
    const network = await networkOf(world, account)
    if (network === undefined) return
    await send(account, 'POST', '/v1/load-balancers', {
      zone: network.spec.zone,
      name: `name ${Math.floor(random.fraction() * 5)}`,
      network_id: network.metadata.name,
      plan: PLAN,
      public_ipv4: random.fraction() < 0.6,
      ...configuration,
    })
    return
  }
  const path = `/v1/load-balancers/${balancer.metadata.name}`
  const member = balancer.spec.backends[0]?.members[0]
  if (dice < 0.6) await send(account, 'PUT', `${path}/configuration`, configuration)
  else if (dice < 0.7)
    await send(account, 'POST', `${path}/backends/web/members`, {
      name: `one-${Math.floor(random.fraction() * 9)}`,
      address: '2001:db8:9::8',
      port: 80,
    })
  else if (dice < 0.78 && member !== undefined)
    await send(account, 'PATCH', `${path}/backends/web/members/${member.id ?? member.name}`, { weight: 1 })
  else if (dice < 0.82 && member !== undefined)
    await send(account, 'DELETE', `${path}/backends/web/members/${member.id ?? member.name}`)
  else if (dice < DELETED_FROM)
    await send(account, 'PATCH', path, { name: `name ${Math.floor(random.fraction() * 5)}` })
  else await send(account, 'DELETE', path)
}

const ROLE_SETS = [['nat_gateway'], ['load_balancer'], ['nat_gateway', 'load_balancer'], ['bastion', 'nat_gateway']]
const MEMBER = { name: 'six', frontend_port: 80, address: '2001:db8:9::9', port: 80 }

async function actOnEdges(world: World, account: Account, send: Send): Promise<void> {
  const { scheduler, admin } = world
  const { random } = scheduler
  const { items } = await admin.list(Edge, { namespace: accountNamespace(account.id) })
  const edge = scheduler.pick(items)
  const dice = random.fraction()
  const roles = scheduler.pick(ROLE_SETS) ?? []
  const members = roles.includes('load_balancer') && random.fraction() < 0.7 ? [MEMBER] : []
  if (roles.includes('bastion')) await send(account, 'POST', '/v1/ssh-keys', { name: 'key', public_key: KEY })
  if (edge === undefined || dice < 0.3) {
    const network = await networkOf(world, account)
    if (network === undefined) return
    const placement = scheduler.pick(['combined', 'combined', 'separate'])
    const body = { network_id: network.metadata.name, roles, members, plan: PLAN, placement }
    await send(account, 'POST', '/v1/edges', body)
    return
  }
  const path = `/v1/edges/${edge.metadata.name}`
  if (dice < 0.6) await send(account, 'PATCH', path, { roles, members })
  else if (dice < DELETED_FROM)
    await send(account, 'PATCH', path, { name: `name ${Math.floor(random.fraction() * 5)}` })
  else await send(account, 'DELETE', path)
}

/** Every guest runs what was made for itself. Looked at at every instant. */
export function watchMachines({ hosts, guests }: Pick<World, 'hosts' | 'guests'>): string[] {
  const foreign = hosts.flatMap(({ name, machine }) =>
    machine
      .running()
      .filter((guest) => guest.configuration !== undefined && guest.configuration.machine !== guest.name)
      .map((guest) => `guest ${guest.name} on ${name} runs the configuration of ${guest.configuration?.machine}`),
  )
  return [...foreign, ...(guests?.violations ?? [])]
}

/** Nothing of them is under way. One that is not whole gets another machine: the guest of the one it has may hang,
 *  which is waited for minutes. */
export async function areMachinesQuiet({ admin, guests }: Pick<World, 'admin' | 'guests'>): Promise<boolean> {
  if (guests === undefined) return true
  const edges = (await admin.list(Edge)).items
  const balancers = (await admin.list(LoadBalancer)).items
  return (
    [...edges, ...balancers].every(
      (object) => object.metadata.deletionTimestamp === undefined && activeOperationOf(object) === undefined,
    ) &&
    balancers.every((balancer) => !isBroken(balancer)) &&
    edges.every((edge) => !hasBrokenMachine(edge))
  )
}

const isBroken = ({ status }: KubeObject<unknown, LoadBalancerStatus>): boolean =>
  status?.isMade === true && status.isHealthy !== true

const hasBrokenMachine = ({ status }: KubeObject<unknown, EdgeStatus>): boolean =>
  status?.state === 'running' && status.machines?.some(({ isHealthy }) => !isHealthy) === true

/** Asks for the deletion of all of them; answers how many there were. */
export async function deleteMachines(world: World, accounts: readonly Account[]): Promise<number> {
  if (world.guests === undefined) return 0
  const edges = (await world.admin.list(Edge)).items
  const balancers = (await world.admin.list(LoadBalancer)).items
  for (const account of accounts)
    for (const [path, items] of [['edges', edges] as const, ['load-balancers', balancers] as const])
      for (const { metadata } of items)
        if (metadata.namespace === accountNamespace(account.id))
          await ask(world, account, 'DELETE', `/v1/${path}/${metadata.name}`)
  return edges.length + balancers.length
}

/** What is claimed is of those that exist, machines are of owners that exist, documents hold what their owner has
 *  claimed, and what is said to be applied is what guests run. */
export async function checkMachines(world: World, db: Database): Promise<string[]> {
  if (world.guests === undefined) return []
  return [
    ...(await checkClaims(world, db)),
    ...(await checkLeftovers(world)),
    ...(await checkDocuments(world, db)),
    ...(await checkApplied(world)),
  ]
}

async function ownersOf({ admin }: World): Promise<ReadonlySet<string>> {
  const idOf = (type: string) => (object: { readonly metadata: { namespace?: string; name: string } }) =>
    `${object.metadata.namespace} ${type} ${object.metadata.name}`
  return new Set([
    ...(await admin.list(Edge)).items.map(idOf('edge')),
    ...(await admin.list(LoadBalancer)).items.map(idOf('load_balancer')),
    ...(await admin.list(DatabaseKind)).items.map(idOf('database')),
    ...(await admin.list(NodePool)).items.map(idOf('node_pool')),
  ])
}

async function checkClaims(world: World, db: Database): Promise<string[]> {
  const owners = await ownersOf(world)
  const holders = [
    ...(await db.selectFrom('quota_holding').select(['account_id', 'holder']).execute()),
    ...(await db.selectFrom('shared_address').select(['account_id', 'holder']).execute()),
    ...(await db.selectFrom('public_address').select(['account_id', 'holder']).execute()),
  ]
  const claims = [
    ...(await db.selectFrom('edge').select(['account_id', 'id']).execute()).map((row) => ({ ...row, type: 'edge' })),
    ...(await db.selectFrom('load_balancer').select(['account_id', 'id']).execute()).map((row) => ({
      ...row,
      type: 'load_balancer',
    })),
    ...holders.flatMap(({ account_id, holder }) => {
      const [type = '', id = ''] = holder?.split('/') ?? []
      return type === 'edge' || type === 'load_balancer' ? [{ account_id, id, type }] : []
    }),
  ]
  return claims
    .filter(({ account_id, id, type }) => !owners.has(`${accountNamespace(account_id ?? '')} ${type} ${id}`))
    .map(({ id, type }) => `something is claimed for the ${type} ${id}, which does not exist`)
}

async function checkLeftovers(world: World): Promise<string[]> {
  const { admin } = world
  const owners = await ownersOf(world)
  const servers = (await admin.list(Server)).items
  const violations = servers.flatMap(({ metadata, spec }) => {
    const owner = machineOwnerOf(spec.managedBy)
    return owner === undefined || owners.has(`${metadata.namespace} ${owner.type} ${owner.id}`)
      ? []
      : [`machine ${metadata.name} is left of ${spec.managedBy}`]
  })
  const uids = new Set(servers.map(({ metadata }) => metadata.uid))
  const machines = (await admin.list(ManagedMachine)).items
  for (const { metadata } of machines)
    if (!uids.has(metadata.name)) violations.push(`ManagedMachine ${metadata.namespace}/${metadata.name} of no server`)
  for (const { name } of NODES)
    for (const { metadata } of (await admin.list(Secret, { namespace: nodeNamespace(name) })).items)
      if (
        metadata.name.startsWith('machine-') &&
        !machines.some((one) => `machine-${one.metadata.name}` === metadata.name)
      )
        violations.push(`the document ${metadata.name} is left on ${name}`)
  return violations
}

/** Addresses between which two machines move, as a document has them. */
const SHARED = /^ {4}(\S+)\/\d+ dev /gm

async function checkDocuments({ admin }: World, db: Database): Promise<string[]> {
  const violations: string[] = []
  const servers = (await admin.list(Server)).items
  const shared = await db.selectFrom('shared_address').selectAll().execute()
  const holders = await db.selectFrom('public_address').select(['account_id', 'holder', 'address']).execute()
  for (const { metadata, spec } of (await admin.list(ManagedMachine)).items) {
    const { namespace = '' } = metadata
    const secret = spec.configuration && (await admin.get(Secret, { namespace, name: spec.configuration.secretName }))
    const text = secret?.data?.[MACHINE_DOCUMENT_KEY]
    const server = servers.find((one) => one.metadata.uid === metadata.name)
    const owner = machineOwnerOf(spec.managedBy)
    if (text === undefined || owner === undefined || server === undefined) continue
    const document = MachineDocument.parse(JSON.parse(Buffer.from(text, 'base64').toString()))
    if (document.machine !== metadata.name)
      violations.push(`${metadata.name} is given what ${document.machine} shall run`)
    const isOwn = (row: { readonly account_id: string | null; readonly holder: string | null }) =>
      accountNamespace(row.account_id ?? '') === server.metadata.namespace && row.holder === `${owner.type}/${owner.id}`
    const own = [
      ...shared.filter(isOwn).flatMap((row) => [row.ipv4_address, row.ipv6_address]),
      ...holders.filter(isOwn).map(({ address }) => address),
    ].toSorted()
    const told = [...(document.keepalived?.config ?? '').matchAll(SHARED)].map(([, address = '']) => address).toSorted()
    if (owner.type === 'load_balancer' && told.join() !== own.join())
      violations.push(`${spec.managedBy} has claimed ${own.join(' ')}, and its machine is told ${told.join(' ')}`)
  }
  return violations
}

async function checkApplied({ admin, hosts }: World): Promise<string[]> {
  const running = new Map(
    hosts.flatMap(({ machine }) => machine.running().map((guest) => [guest.name, guest] as const)),
  )
  const servers = (await admin.list(Server)).items
  const delivered = (await admin.list(ManagedMachine)).items
  const violations: string[] = []
  for (const balancer of (await admin.list(LoadBalancer)).items) {
    const { metadata, spec, status } = balancer
    const own = servers.filter(
      (one) => one.metadata.namespace === metadata.namespace && one.spec.managedBy === `load_balancer:${metadata.name}`,
    )
    const number = numberOf(spec)
    const isRun = own.map((server) => {
      const guest = running.get(server.metadata.uid ?? '')
      const { configuration } =
        delivered.find(
          (one) =>
            one.metadata.name === server.metadata.uid && one.metadata.namespace === `node-${server.status?.nodeName}`,
        )?.spec ?? {}
      return (
        guest?.configuration?.fingerprint === configuration?.fingerprint &&
        guest?.configuration?.generation === number.generation
      )
    })
    const isApplied = status?.applied?.digest === number.digest && status.applied.generation === number.generation
    if (isApplied !== (own.length === 2 && isRun.every(Boolean)))
      violations.push(
        `load balancer ${metadata.name} says ${isApplied} of its configuration ${number.generation}, and of its ` +
          `machines ${isRun.filter(Boolean).length} of ${own.length} run it`,
      )
    if (isBroken(balancer))
      violations.push(`load balancer ${metadata.name} came to rest and is not whole: ${status?.healthDetail}`)
  }
  for (const edge of (await admin.list(Edge)).items)
    if (hasBrokenMachine(edge))
      violations.push(`edge ${edge.metadata.name} came to rest with a machine that is not healthy`)
  return violations
}
