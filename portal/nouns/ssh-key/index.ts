/** SSH keys of the account. */
import { KeyRound } from 'lucide-react'
import { t } from '../../texts/index.ts'
import { noun } from '../noun.ts'

export const sshKey = noun({
  name: 'ssh_key',
  area: 'compute',
  icon: KeyRound,
  path: '/ssh-keys',
  list: 'list_ssh_keys',
  read: 'get_ssh_key',
  create: 'create_ssh_key',
  update: 'update_ssh_key',
  member: 'ssh_key',
  titleOf: ({ name }) => name,
  columns: ['fingerprint', 'created_at'],
  facts: ['fingerprint', 'public_key', 'created_at'],
  form: [{ name: 'name' }, { name: 'public_key', as: 'code', note: () => t().nouns.ssh_key.empty.text }],
  actions: [{ operation: 'delete_ssh_key', confirm: { stays: () => [t().choices.staysKeyOnServers] } }],
})
