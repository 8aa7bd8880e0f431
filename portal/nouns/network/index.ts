/** Private networks. */
import { Network } from 'lucide-react'
import { t } from '../../texts/index.ts'
import { noun } from '../noun.ts'
import { useZones } from '../options.ts'

export const network = noun({
  name: 'network',
  area: 'network',
  icon: Network,
  path: '/networks',
  list: 'list_networks',
  read: 'get_network',
  create: 'create_network',
  update: 'update_network',
  edit: [{ name: 'name' }, { name: 'dns_servers' }, { name: 'dhcp_enabled' }],
  member: 'network',
  titleOf: ({ name }) => name,
  columns: ['ipv4_cidr', 'server_count', 'router_id', 'zone', 'created_at'],
  facts: [
    'ipv4_cidr',
    'ipv6_prefix',
    'gateway_ipv4',
    'dhcp_enabled',
    'dns_servers',
    'router_id',
    'server_count',
    'zone',
    'created_at',
  ],
  form: [
    { name: 'name' },
    { name: 'zone', as: 'cards', useOptions: useZones, isFirstChosen: true },
    { name: 'ipv4_cidr' },
    { name: 'dns_servers', isMore: true },
    { name: 'labels', isMore: true },
  ],
  actions: [
    {
      operation: 'delete_network',
      why: ({ server_count: count }) => (count > 0 ? t().choices.hasServers(count) : undefined),
      confirm: { type: ({ name }) => name, goes: () => [t().choices.goesForGood] },
    },
  ],
})
