/** Floating IPs. */
import { Waypoints } from 'lucide-react'
import { t } from '../../texts/index.ts'
import { noun } from '../noun.ts'
import type { Offered, Values } from '../noun.ts'
import { optionsOf, useZones } from '../options.ts'

const useNetworks = optionsOf('network')

/** The public address of the server, or its interface in a network. */
function useTargets(values: Values, search: string): Offered {
  const { options, hasMore } = useNetworks(values, search)
  const inNetworks = options.map((option) => ({ ...option, id: `private:${option.id}` }))
  return { options: [{ id: 'public', name: t().choices.itsPublicAddress }, ...inNetworks], hasMore }
}

const TARGET = { name: 'target', useOptions: useTargets, note: () => t().choices.needsNat } as const

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
    { ...TARGET, isShown: ({ server_id: server }) => server !== undefined, isMore: true },
  ],
  actions: [
    {
      operation: 'assign_floating_ip',
      initial: ({ zone }) => ({ zone, target: 'public' }),
      form: [
        { name: 'server_id', useOptions: optionsOf('server'), isNeeded: true, note: () => t().choices.losesAddress },
        TARGET,
      ],
      isFirst: true,
    },
    {
      operation: 'assign_floating_ip',
      name: () => t().choices.unassign,
      why: ({ server_id: server }) => (server === null ? t().choices.notAssigned : undefined),
      confirm: { goes: () => [t().choices.losesAddress] },
    },
    {
      operation: 'release_floating_ip',
      why: ({ server_id: server }) => (server === null ? undefined : t().choices.assigned),
      confirm: { type: ({ address }) => address, goes: ({ address }) => [t().choices.goesAddress(address)] },
    },
  ],
})
