/** What servers have in networks while everything is shaken: interfaces that come and go, firewalls, and floating IPs
 *  that are allocated, moved, taken off and released; and what must hold of them afterwards. */
import type { Database } from '../../db/kit/open.ts'
import { accountNamespace } from '../../resources/index.ts'
import { FloatingIp } from '../../resources/floating-ip/index.ts'
import { Network } from '../../resources/network/index.ts'
import { activeOperationOf } from '../../resources/operation/index.ts'
import { PublicPool, type PublicPoolSpec } from '../../resources/public-pool/index.ts'
import { Server } from '../../resources/server/index.ts'
import { ZONES } from './catalog.ts'
import type { Account, Send } from './requests.ts'
import type { World } from './world.ts'

export function runPorts(world: World, accounts: readonly Account[], send: Send, isOver: () => boolean): void {
  const { scheduler, admin } = world
  const floating = new Map<string, Set<string>>(accounts.map(({ id }) => [id, new Set()]))
  void scheduler.repeat({ least: 1_000, most: 6_000 }, isOver, async () => {
    const account = scheduler.pick(accounts)
    if (account !== undefined) await act(world, account, floating.get(account.id)!, send) // one for each account
  })
  // A pool of five addresses: accounts wait for each other's.
  for (const [index, zone] of ZONES.entries()) {
    const cidr = `203.0.113.${128 + 8 * index}/29`
    const spec = { zone, family: 'ipv4', cidr, use: 'floating_ipv4' } as PublicPoolSpec // has defaults
    void admin.create(PublicPool, { metadata: { name: `floating-${zone}` }, spec }).catch(() => {})
  }
}

interface FloatingIpAnswer {
  readonly floating_ip?: { readonly id: string }
}
interface InterfacesAnswer {
  readonly items?: readonly { readonly id: string }[]
}

async function act({ scheduler, admin }: World, account: Account, held: Set<string>, send: Send): Promise<void> {
  const { random } = scheduler
  const dice = random.fraction()
  const [address, server] = [scheduler.pick([...held]), scheduler.pick([...account.servers])]
  const zone = scheduler.pick(ZONES) ?? ZONES[0]
  const networkOf = async (): Promise<string | undefined> => {
    const { items } = await admin.list(Network, { namespace: accountNamespace(account.id) })
    return scheduler.pick(items)?.metadata.name
  }
  if (dice < 0.15 || server === undefined) {
    const made = (await send(account, 'POST', '/v1/floating-ips', { zone })) as FloatingIpAnswer | undefined
    if (made?.floating_ip !== undefined) held.add(made.floating_ip.id)
  } else if (dice < 0.4 && address !== undefined) {
    const network = random.fraction() < 0.5 ? await networkOf() : undefined
    const target = network === undefined ? 'public' : `private:${network}`
    await send(account, 'POST', `/v1/floating-ips/${address}/assign`, { server_id: server, target })
  } else if (dice < 0.5 && address !== undefined)
    await send(account, 'POST', `/v1/floating-ips/${address}/assign`, { server_id: null })
  else if (dice < 0.58 && address !== undefined) await send(account, 'DELETE', `/v1/floating-ips/${address}`)
  else if (dice < 0.8) {
    const network = await networkOf()
    if (network !== undefined) await send(account, 'POST', `/v1/servers/${server}/interfaces`, { network_id: network })
  } else if (dice < 0.9) {
    const answer = await send(account, 'GET', `/v1/servers/${server}/interfaces`)
    const one = scheduler.pick(((answer as InterfacesAnswer | undefined)?.items ?? []).slice(1))
    if (one !== undefined) await send(account, 'DELETE', `/v1/servers/${server}/interfaces/${one.id}`)
  } else
    await send(account, 'PUT', `/v1/servers/${server}/firewall`, {
      enabled: random.fraction() < 0.7,
      rules: [{ direction: 'in', action: 'accept', protocol: 'tcp', port_start: 22, port_end: 22 }],
    })
}

/** Nothing of them is under way. */
export async function arePortsQuiet({ admin }: World): Promise<boolean> {
  return (await admin.list(FloatingIp)).items.every(
    (object) => object.metadata.deletionTimestamp === undefined && activeOperationOf(object) === undefined,
  )
}

/** What is claimed is what servers and floating IPs have; firewalls are applied as they are. */
export async function checkPorts({ admin }: World, db: Database): Promise<string[]> {
  const violations: string[] = []
  const { items: servers } = await admin.list(Server)
  const { items: floating } = await admin.list(FloatingIp)
  const serverOf = (accountId: string, id: string | null) =>
    servers.find(({ metadata }) => metadata.namespace === accountNamespace(accountId) && metadata.name === id)
  for (const row of await db.selectFrom('floating_ip').selectAll().execute()) {
    const object = floating.find(
      ({ metadata }) => metadata.namespace === accountNamespace(row.account_id) && metadata.name === row.id,
    )
    if (object === undefined) violations.push(`an address is held for floating IP ${row.id}, which does not exist`)
    else if ((object.spec.serverId ?? null) !== row.server_id)
      violations.push(`floating IP ${row.id} shall lead to ${object.spec.serverId} and leads to ${row.server_id}`)
    if (row.server_id !== null && serverOf(row.account_id, row.server_id) === undefined)
      violations.push(`floating IP ${row.id} leads to server ${row.server_id}, which does not exist`)
  }
  const rows = await db.selectFrom('network_interface').selectAll().execute()
  for (const row of rows) {
    const server = serverOf(row.account_id, row.server_id)
    if (server === undefined) violations.push(`interface ${row.id} is of server ${row.server_id}, which does not exist`)
    else if (!(server.spec.networks ?? []).some(({ networkId }) => networkId === row.network_id))
      violations.push(`server ${row.server_id} has an interface in network ${row.network_id}, which it shall not have`)
    if (row.is_leaving) violations.push(`interface ${row.id} came to rest on its way out`)
  }
  for (const { metadata, status } of servers) {
    const { generation = 0, appliedGeneration = 0 } = status?.firewall ?? {}
    if (appliedGeneration > generation)
      violations.push(`server ${metadata.name} follows firewall ${appliedGeneration} of ${generation}`)
  }
  return violations
}
