/** Floating IPs. */
import { Waypoints } from 'lucide-react'
import { t } from '../../texts/index.ts'
import { noun } from '../noun.ts'
import { optionsOf, useZones } from '../options.ts'

export const floatingIp = noun({
  name: 'floating_ip',
  area: 'network',
  icon: Waypoints,
  path: '/floating-ips',
  list: 'list_floating_ips',
  read: 'get_floating_ip',
  create: 'allocate_floating_ip',
  member: 'floating_ip',
  titleOf: ({ address }) => address,
  columns: ['server_id', 'target', 'zone', 'created_at'],
  facts: ['address', 'server_id', 'target', 'zone', 'created_at'],
  form: [
    { name: 'zone', as: 'cards', useOptions: useZones, isFirstChosen: true },
    { name: 'server_id', useOptions: optionsOf('server') },
  ],
  actions: [
    {
      operation: 'assign_floating_ip',
      form: [{ name: 'server_id', useOptions: optionsOf('server'), note: () => t().choices.losesAddress }],
      isFirst: true,
    },
    {
      operation: 'release_floating_ip',
      why: ({ server_id: server }) => (server === null ? undefined : t().choices.assigned),
      confirm: { type: ({ address }) => address, goes: ({ address }) => [t().choices.goesAddress(address)] },
    },
  ],
})
