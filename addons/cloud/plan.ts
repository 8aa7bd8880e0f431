/** The next step for a service: pure, synchronous, total. It follows from the service and the load balancers that carry
 *  its label alone, so that a controller that was killed goes on where another one stopped. */
import { isDeepStrictEqual } from 'node:util'
import type { Schemas } from '../../client/index.ts'
import { defined } from '../../domain/defined.ts'
import type { Ingress, ServiceObject } from './objects.ts'
import type { Backend, Configuration, Frontend, Wanted } from './wanted.ts'

export type Balancer = Schemas['LoadBalancer']

/** It keeps a service until its load balancer no longer exists, as Kubernetes names it. */
export const FINALIZER = 'service.kubernetes.io/load-balancer-cleanup'

export type Step =
  | { readonly is: 'done' }
  /** Look again soon. */
  | { readonly is: 'wait' }
  | { readonly is: 'refuse'; readonly faults: readonly string[] }
  /** The service does not go without us from now on. */
  | { readonly is: 'hold' }
  | { readonly is: 'create'; readonly creation: Wanted['creation'] }
  | { readonly is: 'configure'; readonly id: string; readonly generation: number; readonly to: Configuration }
  | { readonly is: 'publish'; readonly ingress: readonly Ingress[] }
  /** `failure`: what was wrong with it, when it is made anew; empty when the service needs none. */
  | { readonly is: 'remove'; readonly id: string; readonly failure: string }
  | { readonly is: 'release' }

export interface Situation {
  readonly service: ServiceObject
  /** Those with its label. */
  readonly balancers: readonly Balancer[]
  /** Undefined for what cannot be. */
  readonly wanted: Wanted | undefined
  readonly faults: readonly string[]
}

/** A class names another controller. */
const needsBalancer = ({ metadata, spec }: ServiceObject): boolean =>
  metadata.deletionTimestamp === undefined && spec.type === 'LoadBalancer' && spec.loadBalancerClass === undefined
const isHeld = ({ metadata: { finalizers = [] } }: ServiceObject): boolean => finalizers.includes(FINALIZER)
/** Of no concern to anybody here otherwise. */
export const isConcerned = (service: ServiceObject): boolean => needsBalancer(service) || isHeld(service)

const published = ({ status }: ServiceObject): readonly Ingress[] => status?.loadBalancer?.ingress ?? []

export function nextStep(situation: Situation): Step {
  const { service } = situation
  if (!needsBalancer(service)) return isHeld(service) ? lettingGo(situation) : { is: 'done' }
  const { wanted, faults } = situation
  if (wanted === undefined) return { is: 'refuse', faults }
  return isHeld(service) ? keeping(situation, wanted) : { is: 'hold' }
}

function lettingGo({ service, balancers }: Situation): Step {
  const [next] = balancers.filter(({ state }) => state !== 'deleting')
  if (next !== undefined) return { is: 'remove', id: next.id, failure: '' }
  if (balancers.length > 0) return { is: 'wait' }
  // One that is being deleted says what it had until it is gone.
  if (published(service).length > 0 && service.metadata.deletionTimestamp === undefined)
    return { is: 'publish', ingress: [] }
  return { is: 'release' }
}

function keeping({ service, balancers }: Situation, wanted: Wanted): Step {
  const balancer = ownOf(balancers)
  if (balancer === undefined) {
    if (published(service).length > 0) return { is: 'publish', ingress: [] }
    // Its name is taken until the former one is gone.
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

/** The oldest, should people have given its labels to another one. */
export const ownOf = (balancers: readonly Balancer[]): Balancer | undefined =>
  balancers
    .filter(({ state }) => state !== 'deleting')
    .toSorted((one, other) => (`${one.created_at} ${one.id}` < `${other.created_at} ${other.id}` ? -1 : 1))[0]

/** As it would be asked for. */
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

/** Where clients connect. Whoever must begin with a PROXY header is let in by the balancer only. */
function ingressOf(balancer: Balancer, { proxyProtocol }: Wanted): readonly Ingress[] {
  const outside = [balancer.public_ipv4, balancer.public_ipv6].filter((address) => address !== null)
  const inside = [balancer.private_ipv4, balancer.private_ipv6].filter((address) => address !== null)
  const ipMode = proxyProtocol === 'none' ? 'VIP' : 'Proxy'
  return (outside.length > 0 ? outside : inside).map((ip) => ({ ip, ipMode }))
}

/** What cannot become so without another balancer. */
export function fixedNotes(balancer: Balancer, { creation, isInternal }: Wanted): readonly string[] {
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
