/** Init scripts. */
import { ScrollText } from 'lucide-react'
import { t } from '../../texts/index.ts'
import { noun } from '../noun.ts'

export const initScript = noun({
  name: 'init_script',
  area: 'compute',
  icon: ScrollText,
  path: '/init-scripts',
  list: 'list_init_scripts',
  read: 'get_init_script',
  create: 'create_init_script',
  update: 'update_init_script',
  edit: [{ name: 'name' }, { name: 'content', as: 'code' }],
  member: 'init_script',
  titleOf: ({ name }) => name,
  columns: ['updated_at', 'created_at'],
  facts: ['content', 'updated_at', 'created_at'],
  form: [{ name: 'name' }, { name: 'content', as: 'code' }],
  actions: [{ operation: 'delete_init_script', confirm: { stays: () => [t().choices.staysServers] } }],
})
