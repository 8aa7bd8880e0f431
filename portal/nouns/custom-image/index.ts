/** Images of the account. */
import { Disc3 } from 'lucide-react'
import { t } from '../../texts/index.ts'
import { noun } from '../noun.ts'
import { optionsOf, useZones } from '../options.ts'
import { wordOf } from '../value.tsx'

export const customImage = noun({
  name: 'custom_image',
  area: 'storage',
  icon: Disc3,
  path: '/images',
  list: 'list_custom_images',
  read: 'get_custom_image',
  create: 'create_custom_image',
  update: 'update_custom_image',
  member: 'custom_image',
  titleOf: ({ title, id }) => title || id,
  stateOf: ({ state }) => state,
  looks: { online: 'good', error: 'bad' },
  columns: ['size_gibibytes', 'zone', 'created_at'],
  facts: ['size_gibibytes', 'zone', 'created_at'],
  form: [
    { name: 'title' },
    { name: 'zone', as: 'cards', useOptions: useZones, isFirstChosen: true },
    { name: 'source_url' },
    { name: 'checksum_sha256' },
    { name: 'source_storage_id', useOptions: optionsOf('storage') },
    { name: 'source_snapshot_id', useOptions: optionsOf('snapshot') },
    { name: 'source_backup_id', useOptions: optionsOf('backup') },
    { name: 'labels', isMore: true },
  ],
  actions: [
    {
      operation: 'copy_custom_image',
      why: ({ state }) => (state === 'online' ? undefined : t().choices.notOnline(wordOf(state))),
      form: [{ name: 'zone', useOptions: useZones }],
    },
    {
      operation: 'delete_custom_image',
      confirm: {
        type: ({ title }) => title,
        goes: () => [t().choices.goesForGood],
        stays: () => [t().choices.staysServers],
      },
    },
  ],
})
