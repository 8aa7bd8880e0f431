/** Templates that servers are made from. */
import { Disc3 } from 'lucide-react'
import { noun } from '../../nouns/noun.ts'
import { o } from '../texts/index.ts'
import { useZonesWithNodes } from './options.ts'

const note = (): string => o().account.never

export const template = noun({
  name: 'template',
  area: 'fleet',
  icon: Disc3,
  path: '/templates',
  list: 'list_operator_templates',
  create: 'create_template',
  member: 'template',
  titleOf: ({ title }) => title,
  stateOf: ({ state }) => state,
  looks: { online: 'good', error: 'bad' },
  columns: ['os_family', 'os_version', 'zones', 'deprecated_at', 'hidden_at'],
  facts: [
    'os_family',
    'os_version',
    'default_user',
    'min_storage_gibibytes',
    'min_memory_mebibytes',
    'zones',
    'image_status',
    'deprecated_at',
    'hidden_at',
    'created_at',
  ],
  form: [
    { name: 'name' },
    { name: 'title' },
    { name: 'source_url' },
    { name: 'checksum_sha256' },
    { name: 'os_family' },
    { name: 'os_version' },
    { name: 'default_user' },
    { name: 'min_memory_mebibytes', isMore: true },
    { name: 'zones', as: 'many', useOptions: useZonesWithNodes },
  ],
  actions: [
    { operation: 'copy_template', form: [{ name: 'zone', useOptions: useZonesWithNodes }], isFirst: true },
    {
      operation: 'update_template',
      form: [
        { name: 'deprecated_at', note },
        { name: 'hidden_at', note },
      ],
      initial: ({ deprecated_at, hidden_at }) => ({ deprecated_at, hidden_at }),
    },
    { operation: 'delete_template', confirm: { type: ({ name }) => name, goes: () => [o().template.goesImage] } },
  ],
})
