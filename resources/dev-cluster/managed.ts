/** Dev clusters as code. */
import { managed } from '../kit/managed.ts'
import { createDevCluster, deleteDevCluster, DevClusterView, getDevCluster, listDevClusters } from './routes.ts'

export const managedDevCluster = managed({
  noun: 'dev_cluster',
  view: DevClusterView,
  routes: { list: listDevClusters, create: createDevCluster, read: getDevCluster, remove: deleteDevCluster },
  ready: { field: 'state', is: 'running', failed: 'error' },
  names: ['name'],
  uniqueIn: 'account',
  changes: [],
  fields: {
    network_id: { refers: 'network' },
    ssh_keys: { shows: 'nothing', isSet: true, same: 'trimmed' },
    ssh_key_ids: { shows: 'nothing', isSet: true, refers: 'ssh_key' },
  },
  facts: [
    'id',
    'region',
    'k3s_version',
    'server_id',
    'endpoint',
    'endpoint_ipv4',
    'ipv6_address',
    'ipv4_address',
    'production_recommended',
    'production_warning',
    'created_at',
  ],
  moments: ['state', 'health', 'failure_reason', 'updated_at'],
})
