/** Networks whose addresses servers, floating IPs and edges get. */
import { Globe } from 'lucide-react'
import { noun } from '../../nouns/noun.ts'
import { o } from '../texts/index.ts'
import { useZonesWithNodes } from './options.ts'

export const publicPool = noun({
  name: 'public_pool',
  area: 'fleet',
  icon: Globe,
  path: '/public-pools',
  list: 'list_public_pools',
  read: 'get_public_pool',
  create: 'create_public_pool',
  member: 'public_pool',
  titleOf: ({ cidr }) => cidr,
  stateOf: ({ state }) => state,
  looks: { active: 'good', retired: 'off' },
  columns: ['zone', 'family', 'use', 'allocated', 'total', 'created_at'],
  facts: ['zone', 'family', 'use', 'is_private', 'allocated', 'total', 'created_at'],
  form: [
    { name: 'zone', useOptions: useZonesWithNodes, isFirstChosen: true },
    { name: 'family' },
    { name: 'cidr' },
    { name: 'use' },
    { name: 'gateway', isMore: true },
    { name: 'announce', isMore: true },
    { name: 'is_private', isMore: true },
  ],
  actions: [
    {
      operation: 'update_public_pool',
      isFirst: true,
      confirm: {},
      form: [{ name: 'state', note: () => o().pool.drainNote }, { name: 'note' }],
      initial: ({ state }) => ({ state: state === 'retired' ? undefined : state }),
    },
    {
      operation: 'delete_public_pool',
      why: ({ allocated }) => (allocated > 0 ? o().pool.inUse(allocated) : undefined),
      confirm: { type: ({ cidr }) => cidr, goes: () => [o().pool.goesAddresses] },
    },
  ],
})
