/** What runs the control planes of a region's Kubernetes clusters. */
import { Ship } from 'lucide-react'
import { noun } from '../../nouns/noun.ts'
import { useZonesWithNodes } from './options.ts'

export const kubernetesHost = noun({
  name: 'kubernetes_host',
  area: 'fleet',
  icon: Ship,
  path: '/kubernetes-hosts',
  list: 'list_kubernetes_hosts',
  read: 'get_kubernetes_host',
  create: 'bootstrap_kubernetes_host',
  member: 'kubernetes_host',
  titleOf: ({ region }) => region,
  stateOf: ({ state }) => state,
  isBusy: ({ state }) => state === 'bootstrapping',
  looks: { ready: 'good', degraded: 'bad', error: 'bad' },
  columns: ['zones', 'version', 'node_count', 'clusters_hosted', 'clusters_capacity', 'created_at'],
  facts: [
    'zones',
    'version',
    'node_count',
    'clusters_hosted',
    'clusters_capacity',
    'etcd_capacity_bytes',
    'created_at',
  ],
  form: [
    { name: 'region' },
    { name: 'zones', as: 'many', useOptions: useZonesWithNodes },
    { name: 'plan' },
    { name: 'nodes_per_zone' },
    { name: 'version' },
  ],
  actions: [],
})
