/** What must hold of the network whatever happens: no packet between tenants, no address at two ports, no rule at a
 *  server that it is not for, and no word that hosts follow a firewall before they do. It is looked at whenever a row
 *  is written, and whenever an object is. */
import { firewallRows } from '../../controllers/network/ovn/firewall.ts'
import type { Row, RowRef } from '../../controllers/network/ovn/row.ts'
import type { Storage } from '../../embedded/kubernetes/storage/storage.ts'
import type { Database } from '../../db/kit/open.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import type { Store } from '../../kit/kube/store.ts'
import { FloatingIp } from '../../resources/floating-ip/index.ts'
import { accountNamespace } from '../../resources/index.ts'
import { Network } from '../../resources/network/index.ts'
import { Router } from '../../resources/router/index.ts'
import { firewallOf, Server, type ServerSpec, type ServerStatus } from '../../resources/server/index.ts'
import type { NetworkDatabase, OwnedRows } from './ovn.ts'

/** Who owns rows, by kind and uid, and of which account. */
export type Tenants = ReadonlyMap<string, string>

interface OwnedRow extends Row {
  readonly zone: string
  readonly kind: string
  readonly uid: string
  readonly owner: string
}

const flatten = (owners: OwnedRows): readonly OwnedRow[] =>
  [...owners].flatMap(([name, rows]) => {
    const [zone = '', owner = ''] = name.split(' ')
    const [kind = '', uid = ''] = owner.split('/')
    return rows.map((row) => ({ ...row, zone, owner, kind, uid }))
  })

const isGuestPort = ({ table, kind, columns }: OwnedRow): boolean =>
  table === 'Logical_Switch_Port' && columns['type'] === '' && (kind === 'Server' || kind === 'PublicPort')

const wordsOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.flatMap((text) => String(text).split(' ')) : []

/** Every address is at one port of its switch, and is one server's outside; every hardware address is at one port. */
export function checkPortAddresses(owners: OwnedRows): string[] {
  const violations: string[] = []
  const holders = new Map<string, string>()
  const take = (where: string, address: string, who: string) => {
    const other = holders.get(`${where} ${address}`)
    if (other !== undefined && other !== who)
      violations.push(`${address} in ${where} is at the ports ${other} and ${who}`)
    holders.set(`${where} ${address}`, who)
  }
  for (const row of flatten(owners)) {
    const { table, zone, key, columns, parent } = row
    if (isGuestPort(row)) {
      const [mac = '', ...addresses] = wordsOf(columns['addresses'])
      take(zone, mac, key)
      for (const address of addresses) take(`${zone} ${parent?.key}`, address, key)
    } else if (table === 'NAT' && columns['type'] !== 'snat')
      take(`${zone} outside`, String(columns['external_ip']), key)
  }
  return violations
}

/** What an account has is joined to nothing of another's but by the outside. */
export function checkTenants(owners: OwnedRows, tenants: Tenants): string[] {
  const rows = flatten(owners)
  const tenantOf = ({ kind, uid }: OwnedRow) => tenants.get(kind === 'PublicPort' ? `Server/${uid}` : `${kind}/${uid}`)
  const find = ({ table, key }: RowRef, zone: string) =>
    rows.find((row) => row.table === table && row.key === key && row.zone === zone)
  const violations: string[] = []
  const publicAddresses = new Map(
    rows
      .filter((row) => isGuestPort(row) && row.kind === 'PublicPort')
      .flatMap((row) => wordsOf(row.columns['addresses']).map((address) => [`${row.zone} ${address}`, row])),
  )
  for (const row of rows) {
    const own = tenantOf(row)
    if (own === undefined) continue
    const holder = row.parent && find(row.parent, row.zone)
    const other = holder && tenantOf(holder)
    if (other !== undefined && other !== own)
      violations.push(`${row.owner} of ${own} is joined to ${holder?.owner} of ${other}`)
    if (row.table !== 'NAT' || row.columns['type'] !== 'dnat') continue
    const port = publicAddresses.get(`${row.zone} ${String(row.columns['logical_ip'])}`)
    const target = port && tenantOf(port)
    if (target !== undefined && target !== own)
      violations.push(`${row.owner} of ${own} leads to ${port?.owner} of ${target}`)
  }
  return violations
}

/** A group holds the ports of its server only, and a rule is for the group that it is of. */
export function checkRules(owners: OwnedRows): string[] {
  const violations: string[] = []
  for (const [name, rows] of owners) {
    const uid = name.split('/')[1] ?? ''
    const own = new Set([uid, ...rows.filter(({ table }) => table === 'Logical_Switch_Port').map(({ key }) => key)])
    for (const { table, key, columns, parent } of rows) {
      const { ports } = columns
      if (table === 'Port_Group' && typeof ports === 'object' && 'references' in ports)
        for (const port of (ports as { readonly references: readonly RowRef[] }).references) // as `refer` makes it
          if (!own.has(port.key)) violations.push(`the firewall of ${name} is at the port ${port.key}`)
      if (table === 'ACL' && parent?.table === 'Port_Group' && !String(columns['match']).includes(`@${parent.key} `))
        violations.push(`rule ${key} of ${name} is not for its group`)
    }
  }
  return violations
}

type ServerObject = KubeObject<ServerSpec, ServerStatus>

/** The hosts that the guest runs on filter by what the server says that they do. */
function checkApplied(server: ServerObject, hosts: readonly string[], database: NetworkDatabase | undefined): string[] {
  const { uid = '', name } = server.metadata
  const { firewall, generation } = firewallOf(server)
  if (generation === 0 || server.status?.firewall?.appliedGeneration !== generation) return []
  const shall = rulesOf(firewallRows(uid, { ...firewall, ports: [] }))
  return hosts.flatMap((host) => {
    const installed = database?.installedOn(host).get(`${server.spec.zone} Server/${uid}`) ?? []
    return rulesOf(installed) === shall
      ? []
      : [`server ${name} says that firewall ${generation} is applied, and ${host} has not installed it`]
  })
}

const rulesOf = (rows: readonly Row[]): string =>
  JSON.stringify(
    rows.filter(({ table }) => table === 'ACL').map(({ key, columns }) => [key, columns['match'], columns['action']]),
  )

export interface IsolationWatch {
  readonly storage: Storage
  onWrite(owners: OwnedRows): void
  violations(): readonly string[]
}

/** Watches what is written to Kubernetes and to the network. `hostsOf` answers where the guest of a server runs. */
export function watchIsolation(
  storage: Storage,
  database: () => NetworkDatabase | undefined,
  hostsOf: (uid: string) => readonly string[],
): IsolationWatch {
  const tenants = new Map<string, string>()
  const violations = new Set<string>()
  const servers = `${Server.group}/${Server.plural}`
  return {
    storage: {
      ...storage,
      append(record) {
        const { object } = record
        const { kind, metadata } = object ?? {}
        if (kind !== undefined && metadata?.uid !== undefined && metadata.namespace !== undefined)
          tenants.set(`${kind}/${metadata.uid}`, metadata.namespace)
        if (record.storageKey === servers && object !== undefined) {
          const server = object as unknown as ServerObject // of the kind's own schema
          for (const found of checkApplied(server, hostsOf(metadata?.uid ?? ''), database())) violations.add(found)
        }
        return storage.append(record)
      },
    },
    onWrite(owners) {
      for (const found of [...checkPortAddresses(owners), ...checkTenants(owners, tenants), ...checkRules(owners)])
        violations.add(found)
    },
    violations: () => [...violations],
  }
}

/** At rest the network has what is claimed and nothing else: each port with its addresses, at the one host of its
 *  server, and each floating IP where it leads. */
export async function checkRows(
  { admin, ovn }: { readonly admin: Store; readonly ovn: NetworkDatabase | undefined },
  db: Database,
): Promise<string[]> {
  if (ovn === undefined) return []
  const violations: string[] = []
  const rows = flatten(ovn.owners)
  const uids = new Map<string, string>()
  for (const type of [Server, Network, Router, FloatingIp])
    for (const { metadata } of (await admin.list<unknown, unknown>(type)).items)
      uids.set(`${metadata.namespace}/${metadata.name} ${type.kind}`, metadata.uid ?? '')
  const known = new Set(uids.values())
  for (const { owner, kind, uid } of rows)
    if (kind in OWNER_KINDS && !known.has(uid))
      violations.push(`the network has rows of ${owner}, which does not exist`)
  const uidOf = (accountId: string, name: string, kind: string) =>
    uids.get(`${accountNamespace(accountId)}/${name} ${kind}`) ?? ''
  const nodes = new Map<string, string>()
  for (const { account_id, server_id, node } of await db.selectFrom('placement').selectAll().execute())
    nodes.set(uidOf(account_id, server_id, 'Server'), node)
  for (const row of rows.filter(isGuestPort)) {
    const { 'requested-chassis': chassis } = row.columns['options'] as Readonly<Record<string, string>> // of a guest
    if (chassis !== nodes.get(row.uid))
      violations.push(`port ${row.key} of ${row.owner} is at ${chassis}, and its server on ${nodes.get(row.uid)}`)
  }
  for (const { id, account_id, server_id, ipv4_address: address } of await db
    .selectFrom('network_interface')
    .selectAll()
    .execute()) {
    const port = rows.find((row) => isGuestPort(row) && row.key === id)
    if (port?.uid !== uidOf(account_id, server_id, 'Server') || !wordsOf(port.columns['addresses']).includes(address))
      violations.push(`interface ${id} of server ${server_id} is not in the network with ${address}`)
  }
  for (const { account_id, id, server_id } of await db.selectFrom('floating_ip').selectAll().execute()) {
    const owner = `FloatingIP/${uidOf(account_id, id, 'FloatingIP')}`
    const isForwarded = rows.some((row) => row.owner === owner && row.table === 'NAT')
    if (isForwarded !== (server_id !== null))
      violations.push(
        `floating IP ${id} leads to ${server_id}, and the network ${isForwarded ? 'somewhere' : 'nowhere'}`,
      )
  }
  return violations
}

const OWNER_KINDS = { Server, PublicPort: Server, Network, Router, FloatingIP: FloatingIp }
