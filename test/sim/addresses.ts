/** Public addresses while everything is shaken: pools of a few addresses that operators drain, bring back, retire and
 *  replace, and servers that exchange their prefix. Nobody ever has what somebody else has. */
import { countAllocated, listAddresses } from '../../db/public-pool/index.ts'
import { serverHolder } from '../../db/server/holders.ts'
import type { Database } from '../../db/kit/open.ts'
import { prefixOf } from '../../domain/public-pool/rules.ts'
import { memoryStorage } from '../../embedded/kubernetes/storage/memory.ts'
import type { Storage } from '../../embedded/kubernetes/storage/storage.ts'
import { accountNamespace } from '../../resources/index.ts'
import { Instance, type InstanceSpec } from '../../resources/instance/index.ts'
import { PublicPool, type PublicPoolSpec } from '../../resources/public-pool/index.ts'
import { Server } from '../../resources/server/index.ts'
import type { Account, Send } from './requests.ts'
import { ZONES } from './catalog.ts'
import type { World } from './world.ts'

/** Each gives so few that a handful of servers empties it. */
const CIDRS = {
  server_ipv6_prefix: (number: number) => `2001:db8:${number.toString(16)}::/61`,
  server_ipv4: (number: number) => `198.51.${number}.0/28`,
} as const
type Use = keyof typeof CIDRS
const USES = ['server_ipv6_prefix', 'server_ipv4'] as const
/** Of one use in one zone. */
const POOLS_MAXIMUM = 3

export interface AddressWatch {
  /** Sees every version of every object at the instant at which it is written. */
  readonly storage: Storage
  /** Addresses that two servers had at once, so far. */
  violations(): readonly string[]
}

/** Looks for two servers whose Instances have one address at the same time. */
export function watchAddresses(): AddressWatch {
  const held = new Map<string, { readonly server: string; readonly addresses: readonly string[] }>()
  const violations: string[] = []
  const storage = memoryStorage()
  const kind = `${Instance.group}/${Instance.plural}`
  return {
    storage: {
      ...storage,
      append(record) {
        if (record.storageKey === kind) {
          if (record.object === undefined) held.delete(record.key)
          else {
            const spec = record.object['spec'] as InstanceSpec // of the kind's own schema
            const [server, addresses] = [
              spec.server.uid,
              spec.interfaces.filter(({ kind }) => kind === 'public').flatMap(addressesOf),
            ]
            for (const other of held.values()) {
              const shared =
                other.server === server ? [] : addresses.filter((address) => other.addresses.includes(address))
              for (const address of shared)
                violations.push(`${address} is of the servers ${other.server} and ${server} at once`)
            }
            held.set(record.key, { server, addresses })
          }
        }
        return storage.append(record)
      },
    },
    violations: () => violations,
  }
}

const addressesOf = ({
  macAddress,
  ipv4,
  ipv6,
  routedPrefixes = [],
}: InstanceSpec['interfaces'][number]): readonly string[] => [
  ...new Set([
    macAddress,
    ...(ipv4 === undefined ? [] : [ipv4.address]),
    ...(ipv6 === undefined ? [] : [prefixOf(ipv6.address)]),
    ...routedPrefixes,
  ]),
]

const poolDraft = (
  zone: string,
  use: Use,
  number: number,
): { readonly metadata: { readonly name: string }; readonly spec: PublicPoolSpec } => ({
  metadata: { name: `pool-${number}` },
  spec: {
    zone,
    use,
    family: use === 'server_ipv4' ? 'ipv4' : 'ipv6',
    cidr: CIDRS[use](number),
    isPrivate: false,
    announce: 'static',
    state: 'active',
  },
})

export function runAddresses(world: World, accounts: readonly Account[], send: Send, isOver: () => boolean): void {
  const { scheduler, admin, db } = world
  const { random } = scheduler
  let number = 0

  async function offer(): Promise<void> {
    for (const zone of ZONES)
      for (const use of USES) await admin.create(PublicPool, poolDraft(zone, use, (number += 1)))
  }

  const customer = () =>
    scheduler.repeat({ least: 200, most: 2_200 }, isOver, async () => {
      const account = scheduler.pick(accounts)
      const server = account && scheduler.pick([...account.servers])
      if (account !== undefined && server !== undefined)
        await send(account, 'POST', `/v1/servers/${server}/renumber-ipv6`)
    })

  const operator = () =>
    scheduler.repeat({ least: 300, most: 2_800 }, isOver, async () => {
      const [zone, use] = [scheduler.pick(ZONES), random.fraction() < 0.7 ? USES[0] : USES[1]]
      const pools = (await admin.list(PublicPool)).items.filter(({ spec }) => spec.zone === zone && spec.use === use)
      const pool = scheduler.pick(pools)
      if (pool === undefined || zone === undefined) return
      const {
        metadata: { name },
        spec: { state },
      } = pool
      const dice = random.fraction()
      // What is on its way out, or refused as the API would, is the operator's error, not ours.
      if (dice < 0.3) {
        if (pools.length < POOLS_MAXIMUM) await admin.create(PublicPool, poolDraft(zone, use, (number += 1)))
      } else if (dice < 0.8)
        await admin
          .patch(PublicPool, { name }, { spec: { state: state === 'active' ? 'draining' : 'active' } })
          .catch(() => {})
      else if (state === 'draining' && ((await countAllocated(db, [name])).get(name) ?? 0) === 0)
        await admin.delete(PublicPool, { name }).catch(() => {})
    })

  void offer().then(() => {
    void customer()
    void operator()
  })
}

/** `checkNetworks`, `checkPorts` and `checkMachines` look at those. */
const OTHER_HOLDERS = ['router', 'floating_ip', 'load_balancer']

/** Addresses are of servers that exist; each server has the IPv4 address that it was promised and at most one prefix
 *  that is not on its way out, and says so, and so does its host. A server that was there before the first pool of its
 *  zone has no prefix. */
export async function checkAddresses({ admin }: World, db: Database): Promise<string[]> {
  const violations: string[] = []
  const { items: servers } = await admin.list(Server)
  const { items: instances } = await admin.list(Instance)
  const { items: pools } = await admin.list(PublicPool)
  const known = new Set(servers.map(({ metadata: { namespace, name } }) => `${namespace} ${serverHolder(name)}`))
  for (const { address, account_id, holder } of await db
    .selectFrom('public_address')
    .select(['address', 'account_id', 'holder'])
    .where('holder', 'is not', null)
    .execute()) {
    if (OTHER_HOLDERS.some((noun) => holder?.startsWith(`${noun}/`) === true)) continue
    if (!known.has(`${accountNamespace(account_id ?? '')} ${holder}`))
      violations.push(`address ${address} is of ${holder}, which does not exist`)
  }
  for (const { account_id: accountId, server_id: serverId } of await db
    .selectFrom('placement')
    .select(['account_id', 'server_id'])
    .execute()) {
    const server = servers.find(
      ({ metadata }) => metadata.namespace === accountNamespace(accountId) && metadata.name === serverId,
    )
    if (server === undefined) continue // reported by `checkHoldings`
    const held = await listAddresses(db, { accountId, holder: serverHolder(serverId) })
    const current = (use: Use) => held.filter((one) => one.use === use && one.isCurrent)
    const [ipv4, ipv6] = [current('server_ipv4'), current('server_ipv6_prefix')]
    if (ipv6.length > 1 || ipv4.length !== (server.spec.publicIpv4 ? 1 : 0))
      violations.push(
        `server ${serverId} has ${ipv6.length} IPv6 prefixes and ${ipv4.length} of ` +
          `${server.spec.publicIpv4 ? 1 : 0} IPv4 addresses`,
      )
    const { publicIpv4, publicIpv6, ipv6RenumberAvailable = false } = server.status ?? {}
    if (publicIpv4 !== ipv4[0]?.address || publicIpv6 !== ipv6[0]?.address)
      violations.push(
        `server ${serverId} says it has ${publicIpv4} and ${publicIpv6}, and has ${ipv4[0]?.address} and ` +
          `${ipv6[0]?.address}`,
      )
    if (ipv6RenumberAvailable !== (ipv6[0]?.isDraining === true))
      violations.push(
        `server ${serverId} says ${ipv6RenumberAvailable} of another prefix, and its pool is ` +
          `${ipv6[0]?.isDraining === true ? 'draining' : 'active'}`,
      )
    for (const { spec } of instances.filter(({ metadata }) => metadata.name === server.metadata.uid)) {
      const [own, onHost] = [
        held.map((one) => (one.use === 'server_ipv4' ? one.address : prefixOf(one.address))),
        spec.interfaces
          .filter(({ kind }) => kind === 'public')
          .flatMap(addressesOf)
          .filter((address) => address !== server.status?.macAddress),
      ]
      if (own.toSorted().join() !== onHost.toSorted().join())
        violations.push(`server ${serverId} has ${own.join(', ')}, and its Instance has ${onHost.join(', ')}`)
    }
  }
  const rows = await db.selectFrom('public_pool').select(['id', 'state']).execute()
  for (const { id } of rows)
    if (!pools.some(({ metadata }) => metadata.name === id))
      violations.push(`pool ${id} gives addresses and is not in Kubernetes`)
  for (const {
    metadata: { name, deletionTimestamp },
    spec,
  } of pools) {
    const row = rows.find(({ id }) => id === name)
    if (row?.state !== (deletionTimestamp === undefined ? spec.state : 'draining'))
      violations.push(`pool ${name} shall be ${spec.state} and is ${row?.state}`)
  }
  return violations
}
