/** Dev clusters: Kubernetes on one server. */
import { FlaskConical } from 'lucide-react'
import { t } from '../../texts/index.ts'
import { noun } from '../noun.ts'
import { optionsOf, usePlans, useZones, versionsOf } from '../options.ts'
import { Warning } from './warning.tsx'

export const devCluster = noun({
  name: 'dev_cluster',
  area: 'services',
  icon: FlaskConical,
  path: '/dev-clusters',
  list: 'list_dev_clusters',
  read: 'get_dev_cluster',
  create: 'create_dev_cluster',
  member: 'dev_cluster',
  titleOf: ({ name }) => name,
  stateOf: ({ state }) => state,
  looks: { running: 'good', error: 'bad' },
  columns: ['version', 'plan', 'zone', 'created_at'],
  facts: ['k3s_version', 'plan', 'endpoint', 'endpoint_ipv4', 'server_id', 'network_id', 'zone', 'created_at'],
  form: [
    { name: 'name' },
    { name: 'zone', as: 'cards', useOptions: useZones, isFirstChosen: true },
    { name: 'plan', as: 'cards', useOptions: usePlans },
    { name: 'public_ipv4' },
    { name: 'version', useOptions: versionsOf('list_dev_cluster_versions'), isMore: true },
    { name: 'network_id', useOptions: optionsOf('network'), isMore: true },
    { name: 'ssh_key_ids', as: 'many', useOptions: optionsOf('ssh_key'), isMore: true },
    { name: 'labels', isMore: true },
  ],
  actions: [
    { operation: 'delete_dev_cluster', confirm: { type: ({ name }) => name, goes: () => [t().choices.goesWorkloads] } },
  ],
  secret: 'get_dev_cluster_kubeconfig',
  Head: Warning,
})
