/** Computes the next step for a service. Pure, synchronous, total. It depends only on the service and the load
 *  balancers with its label, so that a new controller continues where a killed one stopped. */
import { isDeepStrictEqual } from 'node:util'
import type { Schemas } from '../../client/index.ts'
import { defined } from '../../domain/defined.ts'
import type { Ingress, ServiceObject } from './objects.ts'
import type { Backend, Configuration, Frontend, DesiredBalancer } from './wanted.ts'

export type Balancer = Schemas['LoadBalancer']

/** Kubernetes finalizer that keeps a service until its load balancer no longer exists. */
export const FINALIZER = 'service.kubernetes.io/load-balancer-cleanup'

export type ServiceStep =
  | { readonly is: 'done' }
  /** Check again soon. */
  | { readonly is: 'wait' }
  | { readonly is: 'refuse'; readonly faults: readonly string[] }
  /** Adds the finalizer: the service cannot be deleted without this controller from now on. */
  | { readonly is: 'hold' }
  | { readonly is: 'create'; readonly creation: DesiredBalancer['creation'] }
  | { readonly is: 'configure'; readonly id: string; readonly generation: number; readonly to: Configuration }
  | { readonly is: 'publish'; readonly ingress: readonly Ingress[] }
  /** `failure`: its fault, if it is created again; empty when the service needs none. */
  | { readonly is: 'remove'; readonly id: string; readonly failure: string }
  | { readonly is: 'release' }

export interface Situation {
  readonly service: ServiceObject
  /** The load balancers with its label. */
  readonly balancers: readonly Balancer[]
  /** Undefined when the service's settings are invalid. */
  readonly wanted: DesiredBalancer | undefined
  readonly faults: readonly string[]
}

/** A service with a class belongs to another controller. */
const needsBalancer = ({ metadata, spec }: ServiceObject): boolean =>
  metadata.deletionTimestamp === undefined && spec.type === 'LoadBalancer' && spec.loadBalancerClass === undefined
const isHeld = ({ metadata: { finalizers = [] } }: ServiceObject): boolean => finalizers.includes(FINALIZER)
/** Other services are ignored. */
export const isConcerned = (service: ServiceObject): boolean => needsBalancer(service) || isHeld(service)

const published = ({ status }: ServiceObject): readonly Ingress[] => status?.loadBalancer?.ingress ?? []

export function nextStep(situation: Situation): ServiceStep {
  const { service } = situation
  if (!needsBalancer(service)) return isHeld(service) ? lettingGo(situation) : { is: 'done' }
  const { wanted, faults } = situation
  if (wanted === undefined) return { is: 'refuse', faults }
  return isHeld(service) ? keeping(situation, wanted) : { is: 'hold' }
}

function lettingGo({ service, balancers }: Situation): ServiceStep {
  const [next] = balancers.filter(({ state }) => state !== 'deleting')
  if (next !== undefined) return { is: 'remove', id: next.id, failure: '' }
  if (balancers.length > 0) return { is: 'wait' }
  // A service that is being deleted keeps its addresses in the status until the end.
  if (published(service).length > 0 && service.metadata.deletionTimestamp === undefined)
    return { is: 'publish', ingress: [] }
  return { is: 'release' }
}

function keeping({ service, balancers }: Situation, wanted: DesiredBalancer): ServiceStep {
  const balancer = ownOf(balancers)
  if (balancer === undefined) {
    if (published(service).length > 0) return { is: 'publish', ingress: [] }
    // The name is in use until the previous one is deleted.
    return balancers.length > 0 ? { is: 'wait' } : { is: 'create', creation: wanted.creation }
  }
  const { id, state, configuration_generation: generation } = balancer
  if (state === 'error') return { is: 'remove', id, failure: balancer.health_detail || 'it could not be made' }
  if (!isDeepStrictEqual(configurationOf(balancer), wanted.configuration))
    return { is: 'configure', id, generation, to: wanted.configuration }
  if (state !== 'running') return { is: 'wait' }
  const ingress = ingressOf(balancer, wanted)
  return isDeepStrictEqual(published(service).map(addressed), ingress) ? { is: 'done' } : { is: 'publish', ingress }
}

/** The oldest one, in case people have given the label to another one. */
export const ownOf = (balancers: readonly Balancer[]): Balancer | undefined =>
  balancers
    .filter(({ state }) => state !== 'deleting')
    .toSorted((one, other) => (`${one.created_at} ${one.id}` < `${other.created_at} ${other.id}` ? -1 : 1))[0]

/** The current configuration in the form of a request. */
const configurationOf = ({ frontends, backends }: Balancer): Configuration => ({
  frontends: frontends.map((frontend): Frontend => ({ ...frontend })),
  backends: backends.map(
    ({ members, ...backend }): Backend => ({
      ...backend,
      members: members.map(({ name, address, port, weight, enabled }) => ({ name, address, port, weight, enabled })),
    }),
  ),
})

const addressed = ({ ip, ipMode = 'VIP' }: Ingress): Ingress => ({ ...defined({ ip }), ipMode })

/** Addresses for clients. If connections must start with a PROXY header, they must go through the balancer. */
function ingressOf(balancer: Balancer, { proxyProtocol }: DesiredBalancer): readonly Ingress[] {
  const outside = [balancer.public_ipv4, balancer.public_ipv6].filter((address) => address !== null)
  const inside = [balancer.private_ipv4, balancer.private_ipv6].filter((address) => address !== null)
  const ipMode = proxyProtocol === 'none' ? 'VIP' : 'Proxy'
  return (outside.length > 0 ? outside : inside).map((ip) => ({ ip, ipMode }))
}

/** Differences that need a new balancer. */
export function fixedNotes(balancer: Balancer, { creation, isInternal }: DesiredBalancer): readonly string[] {
  const again = 'make the service anew for another one'
  const isPublic = balancer.public_ipv4 !== null || balancer.public_ipv6 !== null
  return [
    ...(creation.plan === undefined || creation.plan === balancer.plan
      ? []
      : [`its load balancer keeps plan ${balancer.plan}: ${again}`]),
    ...(balancer.state !== 'running' || isPublic === !isInternal
      ? []
      : [`its load balancer ${isPublic ? 'keeps its' : 'stays without'} public addresses: ${again}`]),
  ]
}
