/** Edges of networks. */
import { Router as EdgeIcon } from 'lucide-react'
import { t } from '../../texts/index.ts'
import { noun } from '../noun.ts'
import { optionsOf } from '../options.ts'
import { wordOf } from '../value.tsx'

/** Roles that an edge has now and will not have. */
export const removedRoles = (before: readonly string[], after: unknown): readonly string[] =>
  Array.isArray(after) ? before.filter((role) => !after.includes(role)) : []

export const edge = noun({
  name: 'edge',
  area: 'network',
  icon: EdgeIcon,
  path: '/edges',
  list: 'list_edges',
  read: 'get_edge',
  create: 'create_edge',
  update: 'update_edge',
  edit: [{ name: 'name' }, { name: 'roles' }],
  editGoes: ({ roles }, after) =>
    removedRoles(roles, after['roles']).map((role) => t().edge.goes[role] ?? wordOf(role)),
  member: 'edge',
  titleOf: ({ name }) => name,
  stateOf: ({ state }) => state,
  looks: { running: 'good', error: 'bad' },
  columns: ['roles', 'public_ipv4', 'network_id', 'zone', 'created_at'],
  facts: ['roles', 'placement', 'public_ipv4', 'bastion_jump_host', 'plan', 'network_id', 'zone', 'created_at'],
  form: [
    { name: 'network_id', useOptions: optionsOf('network') },
    { name: 'roles' },
    { name: 'placement' },
    { name: 'name', isMore: true },
    { name: 'ssh_key_ids', as: 'many', useOptions: optionsOf('ssh_key'), isMore: true },
  ],
  actions: [{ operation: 'delete_edge', confirm: { type: ({ name }) => name, goes: () => [t().choices.goesForGood] } }],
  isListShort: true,
})
