/** The desired load balancer of a service. Pure. */
import { defined } from '../../domain/defined.ts'
import { CLUSTER_LABELS } from '../../domain/kubernetes-cluster/rules.ts'
import type { Schemas } from '../../client/index.ts'
import { canonicalCidr, parseNetwork } from '../../domain/network/addresses.ts'
import {
  ALLOWED_CIDRS_MAXIMUM,
  FRONTENDS_MAXIMUM,
  HEALTH_COUNT,
  HEALTH_INTERVAL_SECONDS,
  HEALTH_TIMEOUT_SECONDS,
  MEMBERS_MAXIMUM,
  MEMBERS_OF_BACKEND_MAXIMUM,
  WEIGHT,
} from '../../domain/load-balancer/rules.ts'
import { CLUSTER_LABEL } from '../platform.ts'
import { type Annotations, readAnnotations } from './annotations.ts'
import type { BalancerTarget } from './nodes.ts'
import type { ServiceObject, ServicePort } from './objects.ts'

export type Frontend = Schemas['LoadBalancerFrontend']
export type Member = Omit<Schemas['LoadBalancerMember'], 'id' | 'is_healthy'>
export type Backend = Omit<Schemas['LoadBalancerBackend'], 'members'> & { members: Member[] }
export interface Configuration {
  readonly frontends: Frontend[]
  readonly backends: Backend[]
}

/** Labels with the service of a load balancer, and its name for people. */
export const UID_LABEL = CLUSTER_LABELS.service
const NAME_LABEL = 'kubernetes-service'

export interface Surroundings {
  readonly clusterId: string
  readonly zone: string
  readonly networkId: string
  readonly targets: readonly BalancerTarget[]
}

export interface DesiredBalancer {
  /** The request to create it: without ports and members, so that it stays the same while these change. */
  readonly creation: Omit<Schemas['CreateLoadBalancer'], 'frontends' | 'backends'>
  readonly configuration: Configuration
  readonly isInternal: boolean
  readonly proxyProtocol: Annotations['proxyProtocol']
  /** Information for people that is not a fault. */
  readonly notes: readonly string[]
}

const NAME_CHARACTERS_MAXIMUM = 100
const UID_CHARACTERS = 8
/** Health checks when only nodes with pods of the service answer: pods move more often than nodes fail. */
const QUICK = { interval_seconds: 2, timeout_seconds: 2, rise: 1, fall: 2 } as const

/** Undefined with the reasons when no load balancer can serve the service. */
export function desiredBalancer(
  service: ServiceObject,
  surroundings: Surroundings,
): { readonly wanted: DesiredBalancer | undefined; readonly faults: readonly string[] } {
  const { ports = [], loadBalancerSourceRanges: ranges = [] } = service.spec
  const { annotations, faults: misread } = readAnnotations(service)
  const faults = [...misread, ...ports.flatMap(portFaults)]
  if (ports.length > FRONTENDS_MAXIMUM)
    faults.push(`it has ${ports.length} ports: a load balancer has at most ${FRONTENDS_MAXIMUM}`)
  if (ranges.length > ALLOWED_CIDRS_MAXIMUM)
    faults.push(`loadBalancerSourceRanges has more than ${ALLOWED_CIDRS_MAXIMUM} networks`)
  for (const range of ranges)
    if (parseNetwork(range.trim()) === undefined)
      faults.push(`${range} of loadBalancerSourceRanges must be a network whose address has no bits beyond its prefix`)
  if (faults.length > 0) return { wanted: undefined, faults }
  return { wanted: wantedBy(service, surroundings, annotations), faults }
}

function portFaults({ port, protocol = 'TCP', nodePort = 0 }: ServicePort): readonly string[] {
  if (protocol !== 'TCP') return [`port ${port} is ${protocol}: load balancers take TCP only`]
  return nodePort === 0 ? [`port ${port} has no node port: leave allocateLoadBalancerNodePorts true`] : []
}

function wantedBy(service: ServiceObject, surroundings: Surroundings, annotations: Annotations): DesiredBalancer {
  const { clusterId, zone, networkId: network_id, targets } = surroundings
  const { name, namespace = '', uid = '' } = service.metadata
  const { ports = [] } = service.spec
  const { isInternal, plan, proxyProtocol } = annotations
  const countMaximum = Math.min(MEMBERS_OF_BACKEND_MAXIMUM, Math.floor(MEMBERS_MAXIMUM / Math.max(1, ports.length)))
  const used = targets.slice(0, countMaximum)
  const notes = [
    ...(targets.length > used.length
      ? [`${used.length} of ${targets.length} nodes get its traffic: a load balancer has no more members`]
      : []),
    ...(targets.length === 0 ? ['no node can take its traffic'] : []),
  ]
  const end = `-${uid.slice(0, UID_CHARACTERS)}`
  return {
    creation: {
      zone,
      // Unique as long as the service exists: the platform refuses a second one with this name.
      name: `k8s-${namespace}-${name}`.slice(0, NAME_CHARACTERS_MAXIMUM - end.length) + end,
      network_id,
      ...defined({ plan }),
      public_ipv4: !isInternal,
      labels: { [CLUSTER_LABEL]: clusterId, [UID_LABEL]: uid, [NAME_LABEL]: `${namespace}/${name}` },
    },
    configuration: {
      frontends: ports.map(({ port }) => frontendOf(port, service, annotations)),
      backends: ports.map((port) => backendOf(port, service, annotations, used)),
    },
    isInternal,
    proxyProtocol,
    notes,
  }
}

const nameOf = (port: number): string => `tcp-${port}`

const frontendOf = (
  port: number,
  { spec: { loadBalancerSourceRanges: ranges = [] } }: ServiceObject,
  { idleTimeoutSeconds }: Annotations,
): Frontend => ({
  name: nameOf(port),
  port,
  mode: 'tcp',
  backend: nameOf(port),
  certificate_ids: [],
  allowed_cidrs: ranges.map((range) => canonicalCidr(range.trim())),
  inbound_proxy_protocol: false,
  idle_timeout_seconds: idleTimeoutSeconds,
})

/** With traffic policy Local, a node without pods of the service accepts no connections at its port, so the health
 *  check uses that port. */
const backendOf = (
  { port, nodePort = 0 }: ServicePort,
  { spec: { externalTrafficPolicy: policy } }: ServiceObject,
  { algorithm, proxyProtocol }: Annotations,
  targets: readonly BalancerTarget[],
): Backend => ({
  name: nameOf(port),
  algorithm,
  health_check: {
    type: 'tcp',
    path: '/',
    interval_seconds: HEALTH_INTERVAL_SECONDS.default,
    timeout_seconds: HEALTH_TIMEOUT_SECONDS.default,
    rise: HEALTH_COUNT.rise,
    fall: HEALTH_COUNT.fall,
    expected_statuses: ['200-399'],
    ...(policy === 'Local' ? QUICK : {}),
  },
  proxy_protocol: proxyProtocol,
  sticky_cookie: null,
  members: targets.map(({ name, address }) => ({
    name,
    address,
    port: nodePort,
    weight: WEIGHT.default,
    enabled: true,
  })),
})
