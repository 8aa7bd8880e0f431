/** Network edges as code. */
import { managed } from '../kit/managed.ts'
import { createEdge, deleteEdge, EdgeView, getEdge, listEdges, updateEdge } from './routes.ts'

export const managedEdge = managed({
  noun: 'edge',
  view: EdgeView,
  routes: { list: listEdges, create: createEdge, read: getEdge, remove: deleteEdge },
  names: ['name'],
  changes: [
    {
      by: updateEdge,
      sets: ['name', 'roles', 'plan', 'ssh_key_ids', 'members'],
      rolls: ['roles', 'plan'],
      moves: [
        'public_ipv4',
        'bastion_jump_host',
        'bastion_host_keys',
        'dns64_address',
        'load_balancer_id',
        'ssh_key_count',
        'configuration_generation',
      ],
    },
  ],
  fields: {
    network_id: { refers: 'network' },
    roles: { isSet: true },
    ssh_key_ids: { shows: 'nothing', isSet: true, refers: 'ssh_key' },
    members: { of: { address: { same: 'address' } }, facts: ['id'] },
  },
  facts: [
    'id',
    'zone',
    'production_recommended',
    'production_recommendation_reason',
    'public_ipv4',
    'bastion_jump_host',
    'bastion_host_keys',
    'dns64_address',
    'load_balancer_id',
    'ssh_key_count',
    'configuration_generation',
    'created_at',
  ],
  moments: ['state', 'machines', 'active_operation'],
})
