/** Load balancers: rules of a configuration, the same for every interface. The shapes of single fields are in
 *  `resources/load-balancer/`, built from the patterns and limits here; these rules are what shapes cannot express.
 *  Pure. */
import { createHash } from 'node:crypto'
import {
  canonicalAddress,
  canonicalCidr,
  contains,
  type Network,
  parseAddress,
  parseNetwork,
} from '../network/addresses.ts'
import { gatewayOf, hostRange } from '../network/rules.ts'
import { conflict, operationInProgress, type Problem } from '../problem.ts'

export const FRONTENDS_MAXIMUM = 50
export const BACKENDS_MAXIMUM = 50
export const MEMBERS_OF_BACKEND_MAXIMUM = 250
/** Of all backends together: the object that contains them stays far below what Kubernetes stores. */
export const MEMBERS_MAXIMUM = 1_000
export const CERTIFICATES_MAXIMUM = 20
export const CERTIFICATES_OF_FRONTEND_MAXIMUM = 20
export const ALLOWED_CIDRS_MAXIMUM = 100
export const EXPECTED_STATUSES_MAXIMUM = 10

export const WEIGHT = { least: 0, most: 255, default: 100 } as const
export const IDLE_TIMEOUT_SECONDS = { least: 1, most: 86_400, default: 60 } as const
export const HEALTH_INTERVAL_SECONDS = { least: 1, most: 300, default: 5 } as const
export const HEALTH_TIMEOUT_SECONDS = { least: 1, most: 60, default: 3 } as const
export const HEALTH_COUNT = { least: 1, most: 10, rise: 2, fall: 3 } as const
export const STICKY_SECONDS = { least: 1, most: 2_592_000 } as const

/** Names of its two machines. */
export const LOAD_BALANCER_MACHINES = ['a', 'b'] as const

/** Of frontends, backends, members and certificates: what the proxy accepts as a word. */
export const NAME_PATTERN = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
export const COOKIE_NAME_PATTERN = /^[A-Za-z0-9_-]{1,64}$/
/** Path and query by RFC 3986, without the quote. */
export const HEALTH_PATH_PATTERN = /^\/[A-Za-z0-9\-._~!$&()*+,;=:@%/?]{0,254}$/
/** One status or a range of them: `200`, `200-299`. */
export const STATUSES_PATTERN = /^[1-5][0-9]{2}(-[1-5][0-9]{2})?$/

export const FRONTEND_MODES = ['tcp', 'http', 'https'] as const
export const ALGORITHMS = ['round_robin', 'least_connections', 'source_address'] as const
export const HEALTH_CHECKS = ['tcp', 'http'] as const
export const PROXY_PROTOCOLS = ['none', 'v1', 'v2'] as const

export interface Frontend {
  readonly name: string
  readonly port: number
  readonly mode: (typeof FRONTEND_MODES)[number]
  /** Name of the backend. */
  readonly backend: string
  readonly certificateIds: readonly string[]
  readonly allowedCidrs: readonly string[]
  readonly inboundProxyProtocol: boolean
  readonly idleTimeoutSeconds: number
}

export interface HealthCheck {
  readonly type: (typeof HEALTH_CHECKS)[number]
  readonly path: string
  readonly intervalSeconds: number
  readonly timeoutSeconds: number
  readonly rise: number
  readonly fall: number
  readonly expectedStatuses: readonly string[]
}

export interface Member {
  readonly id: string
  readonly name: string
  readonly address: string
  readonly port: number
  readonly weight: number
  readonly enabled: boolean
}

export interface Backend {
  readonly name: string
  readonly algorithm: (typeof ALGORITHMS)[number]
  readonly healthCheck: HealthCheck
  readonly proxyProtocol: (typeof PROXY_PROTOCOLS)[number]
  readonly stickyCookie?: { readonly name: string; readonly ttlSeconds: number } | undefined
  readonly members: readonly Member[]
}

export interface LoadBalancerConfiguration {
  readonly frontends: readonly Frontend[]
  readonly backends: readonly Backend[]
}

/** The facts by which a configuration is judged, in addition to itself. */
export interface ConfigurationSurroundings {
  readonly ipv4Cidr: string
  readonly ipv6Prefix: string
  /** Every address of the balancer's machines, and those that they share. */
  readonly ownAddresses: readonly string[]
  readonly certificateIds: readonly string[]
}

export interface ConfigurationFault {
  /** Dotted path from the spec: `backends.0.members.3.address`. */
  readonly field: string
  readonly detail: string
}

/** The first fault of a configuration of valid shape; undefined when it can be applied. */
export function configurationFault(
  { frontends, backends }: LoadBalancerConfiguration,
  surroundings: ConfigurationSurroundings,
): ConfigurationFault | undefined {
  const known = new Map(backends.map((backend) => [backend.name, backend]))
  return (
    repeated(frontends, 'frontends', 'name', ({ name }) => name) ??
    repeated(frontends, 'frontends', 'port', ({ port }) => port) ??
    repeated(backends, 'backends', 'name', ({ name }) => name) ??
    first(frontends, (frontend, index) => frontendFault(frontend, `frontends.${index}`, { known, surroundings })) ??
    first(backends, (backend, index) => backendFault(backend, `backends.${index}`, frontends)) ??
    tooManyMembers(backends) ??
    first(backends, (backend, index) => membersFault(backend, `backends.${index}.members`, surroundings))
  )
}

function first<Item>(
  items: readonly Item[],
  faultOf: (item: Item, index: number) => ConfigurationFault | undefined,
): ConfigurationFault | undefined {
  for (const [index, item] of items.entries()) {
    const fault = faultOf(item, index)
    if (fault !== undefined) return fault
  }
  return undefined
}

function repeated<Item>(
  items: readonly Item[],
  path: string,
  field: string,
  valueOf: (item: Item) => string | number,
): ConfigurationFault | undefined {
  const values = new Set<string | number>()
  return first(items, (item, index) => {
    const value = valueOf(item)
    if (values.has(value)) return { field: `${path}.${index}.${field}`, detail: `${value} is taken by another one` }
    values.add(value)
    return undefined
  })
}

interface FrontendSurroundings {
  readonly known: ReadonlyMap<string, Backend>
  readonly surroundings: ConfigurationSurroundings
}

function frontendFault(
  frontend: Frontend,
  path: string,
  { known, surroundings }: FrontendSurroundings,
): ConfigurationFault | undefined {
  const { mode, certificateIds, allowedCidrs } = frontend
  if (!known.has(frontend.backend)) return { field: `${path}.backend`, detail: 'is the name of no backend' }
  const field = `${path}.certificateIds`
  if (mode === 'https' && certificateIds.length === 0) return { field, detail: 'https needs at least one certificate' }
  if (mode !== 'https' && certificateIds.length > 0) return { field, detail: 'only https has certificates' }
  return (
    repeated(certificateIds, `${path}.certificateIds`, 'id', (id) => id) ??
    first(certificateIds, (id, index) =>
      surroundings.certificateIds.includes(id)
        ? undefined
        : { field: `${field}.${index}`, detail: 'is the id of no certificate of the load balancer' },
    ) ??
    first(allowedCidrs, (cidr, index) =>
      parseNetwork(cidr) === undefined
        ? {
            field: `${path}.allowedCidrs.${index}`,
            detail: 'must be a network whose address has no bits beyond its prefix',
          }
        : undefined,
    )
  )
}

/** `http` for the frontends that parse requests, `tcp` for those that do not; undefined without a frontend. */
const modesOf = (backend: Backend, frontends: readonly Frontend[]): ReadonlySet<'http' | 'tcp'> =>
  new Set(frontends.filter((one) => one.backend === backend.name).map(({ mode }) => (mode === 'tcp' ? 'tcp' : 'http')))

/** How the proxy treats traffic to the backend. */
export const modeOfBackend = (backend: Backend, frontends: readonly Frontend[]): 'http' | 'tcp' =>
  modesOf(backend, frontends).has('http') || backend.stickyCookie !== undefined ? 'http' : 'tcp'

function backendFault(backend: Backend, path: string, frontends: readonly Frontend[]): ConfigurationFault | undefined {
  const modes = modesOf(backend, frontends)
  if (modes.size > 1)
    return { field: `${path}.name`, detail: 'has frontends of mode tcp and others: make a backend for each' }
  if (backend.stickyCookie !== undefined && modes.has('tcp'))
    return { field: `${path}.stickyCookie`, detail: 'a frontend of mode tcp reads no cookies' }
  return first(backend.healthCheck.expectedStatuses, (statuses, index) => {
    const [least = '', most = least] = statuses.split('-')
    return most < least
      ? { field: `${path}.healthCheck.expectedStatuses.${index}`, detail: 'must begin with the lower status' }
      : undefined
  })
}

function tooManyMembers(backends: readonly Backend[]): ConfigurationFault | undefined {
  const count = backends.reduce((sum, { members }) => sum + members.length, 0)
  return count > MEMBERS_MAXIMUM
    ? { field: 'backends', detail: `may have at most ${MEMBERS_MAXIMUM} members together` }
    : undefined
}

function membersFault(
  { members }: Backend,
  path: string,
  surroundings: ConfigurationSurroundings,
): ConfigurationFault | undefined {
  return (
    repeated(members, path, 'name', ({ name }) => name) ??
    repeated(members, path, 'id', ({ id }) => id) ??
    repeated(members, path, 'address', ({ address, port }) => `port ${port} of ${canonicalAddress(address)}`) ??
    first(members, ({ address }, index) => {
      const detail = memberAddressFault(address, surroundings)
      return detail === undefined ? undefined : { field: `${path}.${index}.address`, detail }
    })
  )
}

const networks = (...texts: readonly string[]): readonly Network[] => texts.flatMap((text) => parseNetwork(text) ?? [])
/** Possible addresses of servers: global unicast and unique local. */
const IPV6_HOSTS = networks('2000::/3', 'fc00::/7')

/** Why the address cannot be that of a member; undefined when it can. */
export function memberAddressFault(
  text: string,
  { ipv4Cidr, ipv6Prefix, ownAddresses }: Omit<ConfigurationSurroundings, 'certificateIds'>,
): string | undefined {
  const address = parseAddress(text)
  if (address === undefined) return 'must be an address'
  if (ownAddresses.some((own) => canonicalAddress(own) === canonicalAddress(text)))
    return 'is an address of the load balancer itself'
  return address.family === 'ipv4'
    ? ipv4Fault(address.value, ipv4Cidr)
    : ipv6Fault(address.value, canonicalAddress(text) === gatewayOf(ipv6Prefix))
}

function ipv4Fault(value: bigint, ipv4Cidr: string): string | undefined {
  const network = parseNetwork(ipv4Cidr)
  if (network === undefined || !contains(network, value))
    return `is outside the network of the load balancer, ${ipv4Cidr}`
  const { first: least, last } = hostRange(ipv4Cidr)
  return value < least || value > last ? 'is no host of the network' : undefined
}

function ipv6Fault(value: bigint, isGateway: boolean): string | undefined {
  if (isGateway) return 'is no host of the network'
  return IPV6_HOSTS.some((network) => contains(network, value)) ? undefined : 'is no address of a server'
}

/** With its addresses in canonical form. */
export const canonicalConfiguration = <Configuration extends LoadBalancerConfiguration>(
  configuration: Configuration,
): Configuration => ({
  ...configuration,
  frontends: configuration.frontends.map((frontend) => ({
    ...frontend,
    allowedCidrs: frontend.allowedCidrs.map(canonicalCidr),
  })),
  backends: configuration.backends.map((backend) => ({
    ...backend,
    members: backend.members.map((member) => ({ ...member, address: canonicalAddress(member.address) })),
  })),
})

const DIGEST_CHARACTERS = 22
/** Stores order the members of an object in their own way. */
const inOrder = (_key: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
    : value

/** The same for the same configuration, and for no other. */
export const configurationDigest = ({ frontends, backends }: LoadBalancerConfiguration): string =>
  createHash('sha256')
    .update(JSON.stringify([frontends, backends], inOrder))
    .digest('base64url')
    .slice(0, DIGEST_CHARACTERS)

export interface LoadBalancerFacts {
  readonly id: string
  readonly isProtected: boolean
  readonly isDeleting: boolean
  /** `edge:<id>` or `cluster:<id>` when the platform created it for another resource. */
  readonly managedBy: string | undefined
  readonly configurationGeneration: number
  /** Its current addresses, including those of its machines. */
  readonly ownAddresses: readonly string[]
  readonly activeOperation: { readonly id: string; readonly kind: string } | undefined
}

/** Throws 409 for one that belongs to another resource, and for one that is being deleted. */
export function requireConfigurable({ id, managedBy, isDeleting, activeOperation }: LoadBalancerFacts): void {
  if (managedBy !== undefined) throw managed(id, managedBy)
  if (activeOperation?.kind === 'load_balancer.delete')
    throw operationInProgress(activeOperation.id, { type: 'load_balancer', id })
  if (isDeleting) throw conflict('state_not_allowed', 'The load balancer is being deleted.')
}

/** Throws 409 when the configuration differs from the one that the change was made for. */
export function requireGeneration(facts: LoadBalancerFacts, expected: number | undefined): void {
  if (expected !== undefined && expected !== facts.configurationGeneration)
    throw conflict(
      'state_not_allowed',
      `The configuration is at generation ${facts.configurationGeneration}, not ${expected}: somebody has changed ` +
        'it. Read it, and make the change to what it is now.',
      { resource: { type: 'load_balancer', id: facts.id } },
    )
}

/** Throws 409 for a load balancer that cannot be deleted. One that is still being created can: its creation stops. */
export function requireDeletableLoadBalancer(facts: LoadBalancerFacts): void {
  const { id, managedBy, isProtected, activeOperation } = facts
  if (activeOperation?.kind === 'load_balancer.delete')
    throw operationInProgress(activeOperation.id, { type: 'load_balancer', id })
  if (isProtected)
    throw conflict('protected', 'The load balancer is protected. Lift the protection, then delete it.', {
      resource: { type: 'load_balancer', id },
    })
  if (managedBy !== undefined) throw managed(id, managedBy)
}

function managed(id: string, managedBy: string): Problem {
  const [type = '', owner = ''] = managedBy.split(':')
  return conflict('in_use', `The load balancer ${id} is of the ${type} ${owner}: change that one.`, {
    resource: { type, id: owner },
  })
}
