/** Endpoints of load balancers. */
import { loadBalancerChanges } from '../../../changes/load-balancer.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import {
  addLoadBalancerCertificate,
  addLoadBalancerMember,
  createLoadBalancer,
  firstNumber,
  getLoadBalancer,
  getLoadBalancerMetrics,
  listLoadBalancers,
  removeLoadBalancerCertificate,
  removeLoadBalancerMember,
  setLoadBalancerConfiguration,
  toStoredBackend,
  toStoredFrontend,
  updateLoadBalancerMember,
} from '../../../resources/load-balancer/index.ts'
import { makerOf } from '../../kit/create.ts'
import { changeEndpoints } from '../../kit/rest.ts'
import { cheapestMachinePlan } from '../managed-machine/index.ts'
import { getObject, labelsOfQuery, listObjects } from '../../kit/plain/objects.ts'
import { addCertificate, removeCertificate } from './certificates.ts'
import { addMember, changeMember, configure, removeMember } from './configure.ts'
import { readMetrics } from './metrics.ts'
import type { LoadBalancerParts } from './parts.ts'

export type { LoadBalancerParts } from './parts.ts'

export const loadBalancerEndpoints = (parts: LoadBalancerParts): readonly Endpoint[] => [
  getObject(parts.loadBalancers, getLoadBalancer),
  listObjects(parts, parts.loadBalancers.summaries, listLoadBalancers, ({ zone, label }) => ({
    labels: labelsOfQuery(label),
    fields: { zone },
  })),
  customerEndpoint(createLoadBalancer, (call) => create(parts, call)),
  ...changeEndpoints(parts, loadBalancerChanges, parts.loadBalancers),
  customerEndpoint(setLoadBalancerConfiguration, (call) => configure(parts, call)),
  customerEndpoint(addLoadBalancerMember, (call) => addMember(parts, call)),
  customerEndpoint(updateLoadBalancerMember, (call) => changeMember(parts, call)),
  customerEndpoint(removeLoadBalancerMember, (call) => removeMember(parts, call)),
  customerEndpoint(addLoadBalancerCertificate, (call) => addCertificate(parts, call)),
  customerEndpoint(removeLoadBalancerCertificate, (call) => removeCertificate(parts, call)),
  customerEndpoint(getLoadBalancerMetrics, (call) => readMetrics(parts, call)),
]

async function create(parts: LoadBalancerParts, call: Call<typeof createLoadBalancer, Customer>): Promise<Answer> {
  const { zone, name, network_id: networkId, public_ipv4: publicIpv4, labels, ...body } = call.body
  const { plan = cheapestMachinePlan(parts) } = body
  const frontends = body.frontends.map(toStoredFrontend)
  const backends = body.backends.map((backend) => toStoredBackend(backend, () => newUuid(parts.random)))
  const configured = { networkId, frontends, backends, certificates: [] }
  return makerOf(
    parts,
    loadBalancerChanges,
    parts.loadBalancers,
  )(call, {
    zone,
    name,
    plan,
    publicIpv4,
    labels,
    isProtected: body.is_protected,
    ...configured,
    numbered: firstNumber(configured),
  })
}
