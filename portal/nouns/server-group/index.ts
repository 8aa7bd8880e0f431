/** Groups of servers that are placed apart. */
import { Group } from 'lucide-react'
import { t } from '../../texts/index.ts'
import { noun } from '../noun.ts'
import { useZones } from '../options.ts'

export const serverGroup = noun({
  name: 'server_group',
  area: 'compute',
  icon: Group,
  path: '/server-groups',
  list: 'list_server_groups',
  read: 'get_server_group',
  create: 'create_server_group',
  update: 'update_server_group',
  member: 'server_group',
  titleOf: ({ name }) => name,
  columns: ['spread', 'strict', 'member_count', 'zone', 'created_at'],
  facts: ['spread', 'strict', 'member_count', 'zone', 'region', 'created_at'],
  form: [
    { name: 'name' },
    { name: 'spread' },
    { name: 'zone', useOptions: useZones, isFirstChosen: true, isShown: ({ spread }) => spread !== 'zone' },
    { name: 'strict' },
  ],
  actions: [
    {
      operation: 'delete_server_group',
      why: ({ member_count: count }) => (count > 0 ? t().choices.hasMembers(count) : undefined),
      confirm: {},
    },
  ],
})
