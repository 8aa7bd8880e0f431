/** Network edges: the ways into and out of a private network for servers without IPv4. How roles are assigned to
 *  machines, and what customers may request. Pure. */
import { createHash } from 'node:crypto'
import { contains, parseAddress, parseNetwork } from '../network/addresses.ts'
import { FRONTENDS_MAXIMUM } from '../load-balancer/rules.ts'
import { hostRange } from '../network/rules.ts'
import { type Problem, zoneLacks } from '../problem.ts'

export const EDGE_ROLES = ['bastion', 'nat_gateway', 'load_balancer'] as const
export type EdgeRole = (typeof EDGE_ROLES)[number]
export const EDGE_PLACEMENTS = ['separate', 'combined'] as const
export type EdgePlacement = (typeof EDGE_PLACEMENTS)[number]
export const EDGE_STATES = ['creating', 'running', 'error', 'deleting'] as const

export const EDGE_MEMBERS_MAXIMUM = 250
export const EDGE_NAME_LENGTH_MAXIMUM = 100
/** What a zone needs so that each role has a separate machine. */
export const SEPARATE_EDGES_NODES_MINIMUM = 3
/** A role without a machine for so long puts the edge into state `error`. */
export const ROLE_LOST_SECONDS = 900

const NAME_SUFFIX = '-edge'

/** The name of an edge that nobody named. */
export const defaultEdgeName = (networkName: string): string =>
  `${networkName.slice(0, EDGE_NAME_LENGTH_MAXIMUM - NAME_SUFFIX.length)}${NAME_SUFFIX}`

/** Roles once each, in the order in which answers show them. */
export const canonicalRoles = (roles: readonly EdgeRole[]): EdgeRole[] =>
  EDGE_ROLES.filter((role) => roles.includes(role))

/** A machine of an edge. */
export interface EdgeMachineRule {
  /** Names it among those of its edge. */
  readonly name: 'combined' | 'bastion' | 'nat'
  readonly roles: readonly EdgeRole[]
}

/** The machines of the edge; not those of its load balancer. */
export function edgeMachinesOf(roles: readonly EdgeRole[], placement: EdgePlacement): readonly EdgeMachineRule[] {
  if (placement === 'combined') return [{ name: 'combined', roles: canonicalRoles(roles) }]
  const own = [
    { name: 'bastion', role: 'bastion' },
    { name: 'nat', role: 'nat_gateway' },
  ] as const
  return own.flatMap(({ name, role }) => (roles.includes(role) ? [{ name, roles: [role] }] : []))
}

/** Whether the role has a separate managed load balancer, two machines with shared addresses. */
export const hasPair = (roles: readonly EdgeRole[], placement: EdgePlacement): boolean =>
  placement === 'separate' && roles.includes('load_balancer')

const COMBINED =
  'All roles are on one machine: when it fails, all of them do. A zone with the capability separate_edges has edges ' +
  'with a machine for each role.'

/** Why the edge is not suitable for production; undefined when it is. */
export const productionObstacle = (placement: EdgePlacement): string | undefined =>
  placement === 'combined' ? COMBINED : undefined

/** The placement of a new edge. Throws the Problem `zone_capability_missing` (409) for separate machines in a zone that
 *  has too few servers. */
export function choosePlacement(
  choice: EdgePlacement | undefined,
  { zone, hasSeparateEdges }: { readonly zone: string; readonly hasSeparateEdges: boolean },
): EdgePlacement {
  if (choice === undefined) return hasSeparateEdges ? 'separate' : 'combined'
  if (choice === 'separate' && !hasSeparateEdges) throw withoutSeparateEdges(zone)
  return choice
}

const withoutSeparateEdges = (zone: string): Problem =>
  zoneLacks(
    'separate_edges',
    `The zone ${zone} has no separate_edges: a machine for each role needs ${SEPARATE_EDGES_NODES_MINIMUM} servers ` +
      'that take guests. Ask for placement combined, or leave it out.',
  )

/** A TCP service of the network that the edge publishes. */
export interface EdgeMember {
  readonly name: string
  /** Where it is reached from outside, over IPv4 and IPv6. */
  readonly frontendPort: number
  readonly address: string
  readonly port: number
  readonly weight: number
  readonly enabled: boolean
}

export interface MemberFault {
  /** Index in the members. */
  readonly index: number
  readonly field: 'name' | 'frontendPort' | 'address'
  readonly detail: string
}

export interface EdgeSurroundings {
  readonly roles: readonly EdgeRole[]
  readonly placement: EdgePlacement
  /** Of its network. */
  readonly ipv4Cidr: string
  /** Addresses of its own machines: a member there would point back to the edge itself. */
  readonly ownAddresses: readonly string[]
}

/** Ports that other roles use where all of them share a machine. */
const PORTS_OF_ROLES: Readonly<Record<EdgeRole, readonly number[]>> = {
  bastion: [22],
  nat_gateway: [53],
  load_balancer: [],
}

/** Neither a host's address nor routed. */
const NO_HOSTS = ['::/127', 'fe80::/10', 'ff00::/8', '64:ff9b::/96', '::ffff:0:0/96'].flatMap(
  (text) => parseNetwork(text) ?? [],
)

/** Why the edge cannot have the members; undefined when it can. */
export function membersFault(
  members: readonly EdgeMember[],
  { roles, placement, ipv4Cidr, ownAddresses }: EdgeSurroundings,
): MemberFault | undefined {
  const [names, targets, ports] = [new Set<string>(), new Set<string>(), new Set<number>()]
  for (const [index, { name, frontendPort, address, port }] of members.entries()) {
    const fault = (field: MemberFault['field'], detail: string): MemberFault => ({ index, field, detail })
    if (names.has(name)) return fault('name', `${name} is the name of another member`)
    names.add(name)
    const holder =
      placement === 'combined' ? roles.find((role) => PORTS_OF_ROLES[role].includes(frontendPort)) : undefined
    if (holder !== undefined) return fault('frontendPort', `${frontendPort} is the port of the role ${holder}`)
    ports.add(frontendPort)
    if (ports.size > FRONTENDS_MAXIMUM)
      return fault('frontendPort', `is one more than the ${FRONTENDS_MAXIMUM} ports that an edge has at most`)
    const detail = addressFault(address, ipv4Cidr, ownAddresses)
    if (detail !== undefined) return fault('address', detail)
    const target = `${frontendPort} ${parseAddress(address)?.value} ${port}`
    if (targets.has(target)) return fault('address', 'is that of another member, with the same ports')
    targets.add(target)
  }
  return undefined
}

function addressFault(text: string, ipv4Cidr: string, ownAddresses: readonly string[]): string | undefined {
  const address = parseAddress(text)
  if (address === undefined) return 'must be an address'
  if (address.family === 'ipv4') {
    const { first, last } = hostRange(ipv4Cidr)
    if (address.value < first || address.value > last)
      return `must be that of a host of the network ${ipv4Cidr}, or an IPv6 address`
  } else if (NO_HOSTS.some((network) => contains(network, address.value))) return 'is no address of a host'
  return ownAddresses.some((own) => parseAddress(own)?.value === address.value)
    ? 'is an address of the edge itself'
    : undefined
}

/** The same for the same demand, and for no other. */
export const edgeFingerprint = (configuration: unknown): string =>
  createHash('sha256').update(JSON.stringify(configuration)).digest('base64url')
