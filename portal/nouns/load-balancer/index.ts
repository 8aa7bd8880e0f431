/** Load balancers. */
import { Split } from 'lucide-react'
import { lazy } from 'react'
import { t } from '../../texts/index.ts'
import { noun } from '../noun.ts'
import { optionsOf, useZones } from '../options.ts'

export const loadBalancer = noun({
  name: 'load_balancer',
  area: 'network',
  icon: Split,
  path: '/load-balancers',
  list: 'list_load_balancers',
  read: 'get_load_balancer',
  create: 'create_load_balancer',
  update: 'update_load_balancer',
  member: 'load_balancer',
  titleOf: ({ name }) => name,
  stateOf: ({ state }) => state,
  looks: { running: 'good', error: 'bad' },
  columns: ['public_ipv4', 'plan', 'network_id', 'zone', 'created_at'],
  facts: ['public_ipv4', 'public_ipv6', 'plan', 'network_id', 'health_detail', 'zone', 'created_at'],
  form: [
    { name: 'name' },
    { name: 'zone', as: 'cards', useOptions: useZones, isFirstChosen: true },
    { name: 'network_id', useOptions: optionsOf('network') },
    { name: 'public_ipv4' },
    { name: 'labels', isMore: true },
  ],
  actions: [
    {
      operation: 'delete_load_balancer',
      confirm: { type: ({ name }) => name, goes: () => [t().choices.goesForGood] },
    },
  ],
  isListShort: true,
  tabs: [
    {
      id: 'traffic',
      name: () => t().balancer.traffic,
      view: lazy(async () => ({ default: (await import('./parts.tsx')).TrafficTab })),
    },
    {
      id: 'metrics',
      name: () => t().metrics.title,
      view: lazy(async () => ({ default: (await import('./metrics.tsx')).MetricsTab })),
    },
    {
      id: 'certificates',
      name: () => t().balancer.certificates,
      view: lazy(async () => ({ default: (await import('./parts.tsx')).CertificatesTab })),
    },
  ],
})
