/** Managed Kubernetes clusters. */
import { ShipWheel } from 'lucide-react'
import { lazy } from 'react'
import { t } from '../../texts/index.ts'
import { noun } from '../noun.ts'
import { optionsOf, useZones, versionsOf } from '../options.ts'

const useVersions = versionsOf('list_kubernetes_versions')

export const kubernetesCluster = noun({
  name: 'kubernetes_cluster',
  area: 'services',
  icon: ShipWheel,
  path: '/kubernetes',
  list: 'list_kubernetes_clusters',
  read: 'get_kubernetes_cluster',
  create: 'create_kubernetes_cluster',
  update: 'update_kubernetes_cluster',
  edit: [{ name: 'etcd_snapshot_schedule' }],
  member: 'kubernetes_cluster',
  titleOf: ({ name }) => name,
  stateOf: ({ state }) => state,
  looks: { running: 'good', error: 'bad' },
  columns: ['version', 'network_id', 'zone', 'created_at'],
  facts: [
    'kubernetes_version',
    'available_upgrade',
    'endpoint',
    'endpoint_ipv4',
    'network_id',
    'etcd_snapshot_schedule',
    'zone',
    'created_at',
  ],
  form: [
    { name: 'name' },
    { name: 'zone', as: 'cards', useOptions: useZones, isFirstChosen: true },
    { name: 'network_id', useOptions: optionsOf('network') },
    { name: 'version', useOptions: useVersions, isMore: true },
    { name: 'public_ipv4', isMore: true },
    { name: 'private_endpoint', isMore: true },
    { name: 'labels', isMore: true },
  ],
  actions: [
    {
      operation: 'upgrade_kubernetes_cluster',
      why: ({ available_upgrade: next }) => (next === null ? t().choices.isNewest : undefined),
      form: [{ name: 'version', useOptions: useVersions }],
    },
    { operation: 'create_kubernetes_cluster_snapshot', form: [{ name: 'title' }] },
    {
      operation: 'delete_kubernetes_cluster',
      confirm: { type: ({ name }) => name, goes: () => [t().choices.goesWorkloads] },
    },
  ],
  secret: 'get_kubernetes_cluster_kubeconfig',
  reads: ['list_kubernetes_cluster_snapshots'],
  isListShort: true,
  tabs: [
    {
      id: 'pools',
      name: () => t().pools.title,
      view: lazy(async () => ({ default: (await import('./pools.tsx')).PoolsTab })),
    },
    {
      id: 'snapshots',
      name: () => t().nouns.snapshot.many,
      view: lazy(async () => ({ default: (await import('./pools.tsx')).SnapshotsTab })),
    },
    {
      id: 'platform',
      name: () => t().pools.platform,
      view: lazy(async () => ({ default: (await import('./pools.tsx')).PlatformTab })),
    },
  ],
})
