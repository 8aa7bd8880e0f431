/** Routers between private networks. */
import { Route } from 'lucide-react'
import { lazy } from 'react'
import { t } from '../../texts/index.ts'
import { noun } from '../noun.ts'
import { optionsOf, useZones } from '../options.ts'

export const router = noun({
  name: 'router',
  area: 'network',
  icon: Route,
  path: '/routers',
  list: 'list_routers',
  read: 'get_router',
  create: 'create_router',
  update: 'update_router',
  edit: [{ name: 'name' }, { name: 'nat_enabled' }],
  member: 'router',
  titleOf: ({ name }) => name,
  columns: ['nat_enabled', 'public_ipv4', 'health_detail', 'zone', 'created_at'],
  facts: ['nat_enabled', 'public_ipv4', 'health_detail', 'zone', 'created_at'],
  form: [
    { name: 'name' },
    { name: 'zone', as: 'cards', useOptions: useZones, isFirstChosen: true },
    { name: 'network_ids', as: 'many', useOptions: optionsOf('network') },
    { name: 'nat_enabled' },
    { name: 'labels', isMore: true },
  ],
  actions: [
    {
      operation: 'attach_router_network',
      form: [{ name: 'network_id', useOptions: optionsOf('network') }],
      isFirst: true,
    },
    {
      operation: 'delete_router',
      confirm: { type: ({ name }) => name, goes: () => [t().choices.goesForGood] },
    },
  ],
  tabs: [
    {
      id: 'networks',
      name: () => t().fields.networks,
      view: lazy(async () => ({ default: (await import('./networks.tsx')).NetworksTab })),
    },
  ],
})
