/** Load balancers and their certificates as code. */
import { managed } from '../kit/managed.ts'
import { CertificateView } from './configuration.ts'
import {
  addLoadBalancerCertificate,
  createLoadBalancer,
  deleteLoadBalancer,
  getLoadBalancer,
  listLoadBalancers,
  LoadBalancerView,
  removeLoadBalancerCertificate,
  setLoadBalancerConfiguration,
  updateLoadBalancer,
} from './routes.ts'

export const managedLoadBalancer = managed({
  noun: 'load_balancer',
  view: LoadBalancerView,
  routes: { list: listLoadBalancers, create: createLoadBalancer, read: getLoadBalancer, remove: deleteLoadBalancer },
  names: ['name'],
  uniqueIn: 'zone',
  changes: [
    { by: updateLoadBalancer, sets: ['name', 'labels', 'is_protected'] },
    {
      by: setLoadBalancerConfiguration,
      sets: ['frontends', 'backends'],
      expects: ['configuration_generation'],
      moves: ['configuration_generation'],
    },
  ],
  fields: {
    network_id: { refers: 'network' },
    public_ipv4: { shows: 'presence', as: 'public_ipv4_address' },
    frontends: {
      of: { certificate_ids: { refers: 'load_balancer_certificate' }, allowed_cidrs: { same: 'cidr' } },
    },
    backends: {
      of: {
        health_check: { isFilled: true },
        members: { of: { address: { same: 'address' } }, facts: ['id'], moments: ['is_healthy'] },
      },
    },
  },
  facts: ['id', 'public_ipv6', 'private_ipv4', 'private_ipv6', 'configuration_generation', 'managed_by', 'created_at'],
  moments: [
    'state',
    'is_healthy',
    'health_detail',
    'nodes',
    'is_configuration_applied',
    'certificates',
    'active_operation',
  ],
})

export const managedLoadBalancerCertificate = managed({
  noun: 'load_balancer_certificate',
  key: 'certificate',
  view: CertificateView,
  routes: { create: addLoadBalancerCertificate, remove: removeLoadBalancerCertificate },
  parent: {
    field: 'load_balancer_id',
    refers: 'load_balancer',
    parameter: 'id',
    own: 'certificate_id',
    shownIn: { read: getLoadBalancer, field: 'certificates' },
  },
  names: ['name'],
  uniqueIn: 'parent',
  changes: [],
  fields: { certificate: { shows: 'nothing' }, private_key: { shows: 'nothing', isSecret: true } },
  facts: ['id', 'dns_names', 'fingerprint_sha256', 'not_before', 'not_after'],
  moments: [],
})
