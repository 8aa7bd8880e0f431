/** Private networks and routers that are made, joined, parted, changed and deleted while everything is shaken, and what
 *  must hold of them afterwards. */
import type { Database } from '../../db/kit/open.ts'
import { defined } from '../../domain/defined.ts'
import { overlapping } from '../../domain/network/rules.ts'
import { accountNamespace } from '../../resources/index.ts'
import { Network } from '../../resources/network/index.ts'
import { activeOperationOf } from '../../resources/operation/index.ts'
import { PublicPool, type PublicPoolSpec } from '../../resources/public-pool/index.ts'
import { Router } from '../../resources/router/index.ts'
import { ZONES } from './catalog.ts'
import type { Account, Send } from './requests.ts'
import type { World } from './world.ts'

/** Some overlap. */
const RANGES = [undefined, undefined, '10.0.0.0/22', '10.0.1.0/24', '192.168.0.0/28']

interface Held {
  readonly networks: Set<string>
  readonly routers: Set<string>
}

export function runNetworks(world: World, accounts: readonly Account[], send: Send, isOver: () => boolean): void {
  const { scheduler, admin } = world
  const { random } = scheduler
  const held = new Map<string, Held>(accounts.map(({ id }) => [id, { networks: new Set(), routers: new Set() }]))
  const customer = () =>
    scheduler.repeat({ least: 400, most: 4_000 }, isOver, async () => {
      const account = scheduler.pick(accounts)
      if (account !== undefined) await act(world, account, held.get(account.id)!, send) // one for each account
    })
  void customer()
  void customer()
  void scheduler.repeat({ least: 5_000, most: 20_000 }, isOver, async () => {
    const account = scheduler.pick(accounts)
    const network = scheduler.pick([...(held.get(account?.id ?? '')?.networks ?? [])])
    if (account === undefined || network === undefined) return
    const key = { namespace: accountNamespace(account.id), name: network }
    await admin.patch(Network, key, { spec: { dhcpEnabled: random.fraction() < 0.5 } }).catch(() => {})
  })
  // A pool of one address: routers wait for each other's.
  for (const [index, zone] of ZONES.entries()) {
    const cidr = `203.0.113.${8 * index}/30`
    const spec = { zone, family: 'ipv4', cidr, use: 'edge' } as PublicPoolSpec // has defaults
    void admin.create(PublicPool, { metadata: { name: `routers-${zone}` }, spec }).catch(() => {})
  }
}

async function act({ scheduler }: World, account: Account, { networks, routers }: Held, send: Send): Promise<void> {
  const { random } = scheduler
  const dice = random.fraction()
  const [network, router, zone] = [
    scheduler.pick([...networks]),
    scheduler.pick([...routers]),
    scheduler.pick(ZONES) ?? ZONES[0],
  ]
  const name = `name ${Math.floor(random.fraction() * 1_000)}`
  if (network === undefined || dice < 0.15) {
    const range = scheduler.pick(RANGES)
    const body = { zone, name, ...defined({ ipv4_cidr: range }) }
    const made = await send(account, 'POST', '/v1/networks', body)
    const id = (made as { readonly network?: { readonly id: string } } | undefined)?.network?.id
    if (id !== undefined) networks.add(id)
  } else if (router === undefined || dice < 0.25) {
    const made = await send(account, 'POST', '/v1/routers', {
      zone,
      name,
      nat_enabled: random.fraction() < 0.3,
      network_ids: random.fraction() < 0.5 ? [network] : [],
    })
    const id = (made as { readonly router?: { readonly id: string } } | undefined)?.router?.id
    if (id !== undefined) routers.add(id)
  } else if (dice < 0.5) await send(account, 'POST', `/v1/routers/${router}/networks`, { network_id: network })
  else if (dice < 0.65) await send(account, 'DELETE', `/v1/routers/${router}/networks/${network}`)
  else if (dice < 0.75) await send(account, 'PATCH', `/v1/routers/${router}`, { nat_enabled: random.fraction() < 0.5 })
  else if (dice < 0.8) await send(account, 'PATCH', `/v1/networks/${network}`, { name })
  else if (dice < 0.85)
    await send(account, 'PATCH', `/v1/networks/${network}`, { dns_servers: [`10.0.0.${Math.floor(dice * 100)}`] })
  else if (dice < 0.92) await send(account, 'DELETE', `/v1/routers/${router}`)
  else await send(account, 'DELETE', `/v1/networks/${network}`)
}

/** Nothing of them is under way. */
export async function areNetworksQuiet({ admin }: World): Promise<boolean> {
  const objects = [...(await admin.list(Network)).items, ...(await admin.list(Router)).items]
  return objects.every(
    (object) => object.metadata.deletionTimestamp === undefined && activeOperationOf(object) === undefined,
  )
}

/** What is claimed is what networks and routers have: each range once at a router, each address at one. */
export async function checkNetworks({ admin }: World, db: Database): Promise<string[]> {
  const violations: string[] = []
  const keyOf = (row: { readonly account_id: string; readonly id: string }) =>
    `${accountNamespace(row.account_id)}/${row.id}`
  const byKey = <T extends { readonly metadata: { readonly namespace?: string; readonly name: string } }>(
    items: readonly T[],
  ) => new Map(items.map((item) => [`${item.metadata.namespace}/${item.metadata.name}`, item]))
  const networks = byKey((await admin.list(Network)).items)
  const routers = byKey((await admin.list(Router)).items)
  const networkRows = await db.selectFrom('network').selectAll().execute()
  const routerRows = await db.selectFrom('router').selectAll().execute()
  const joined = await db.selectFrom('router_network').selectAll().execute()
  for (const row of networkRows) {
    const network = networks.get(keyOf(row))
    if (network === undefined) violations.push(`a range is held for network ${row.id}, which does not exist`)
    else if (network.status?.ipv4Cidr !== row.ipv4_cidr || network.status.ipv6Prefix !== row.ipv6_prefix)
      violations.push(`network ${row.id} shows ${network.status?.ipv4Cidr} and holds ${row.ipv4_cidr}`)
    else if (network.spec.name !== row.name)
      violations.push(`network ${row.id} shall be called ${network.spec.name} and is ${row.name}`)
    if (row.is_ending) violations.push(`network ${row.id} came to rest on its way out`)
  }
  for (const row of routerRows) {
    const router = routers.get(keyOf(row))
    if (router === undefined) violations.push(`router ${row.id} is claimed and does not exist`)
    if (row.is_ending) violations.push(`router ${row.id} came to rest on its way out`)
    const at = joined.filter((one) => one.account_id === row.account_id && one.router_id === row.id)
    const [has, shall] = [
      at
        .map((one) => one.network_id)
        .sort()
        .join(),
      router?.spec.networkIds.toSorted().join() ?? '',
    ]
    if (router !== undefined && has !== shall)
      violations.push(`router ${row.id} shall have the networks ${shall} and has ${has}`)
    const ranges = at.flatMap((one) => {
      const network = networkRows.find(({ account_id, id }) => account_id === one.account_id && id === one.network_id)
      return network === undefined ? [] : [{ cidr: network.ipv4_cidr }]
    })
    if (ranges.some((range) => overlapping(range.cidr, ranges).length > 1))
      violations.push(`router ${row.id} has networks that overlap`)
    const addresses = await db
      .selectFrom('public_address')
      .select('address')
      .where('account_id', '=', row.account_id)
      .where('holder', '=', `router/${row.id}`)
      .execute()
    if (router !== undefined && addresses.length !== (router.spec.natEnabled ? 1 : 0))
      violations.push(`router ${row.id} has ${addresses.length} addresses, NAT is ${router.spec.natEnabled}`)
  }
  const holders = await db.selectFrom('quota_holding').select(['account_id', 'holder']).execute()
  for (const { account_id, holder } of holders) {
    const [noun, id = ''] = holder.split('/')
    const known = noun === 'network' ? networks : noun === 'router' ? routers : undefined
    if (known !== undefined && !known.has(keyOf({ account_id, id })))
      violations.push(`a part of the quota is held by ${holder}, which does not exist`)
  }
  return violations
}
