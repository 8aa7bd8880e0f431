/** Servers. */
import { Server as ServerIcon } from 'lucide-react'
import { lazy } from 'react'
import type { Server } from '../../../client/schema.ts'
import { itemsOf, useList } from '../../api/cache.ts'
import { gibibytes } from '../../texts/format.ts'
import { t } from '../../texts/index.ts'
import { type FormField, noun } from '../noun.ts'
import { optionsOf, usePlans, useTemplates, useZones } from '../options.ts'
import { wordOf } from '../value.tsx'
import { ServerHead } from './head.tsx'

const notStopped = ({ state }: Server): string | undefined =>
  state === 'stopped' ? undefined : t().choices.notStopped(wordOf(state))
const notStarted = ({ state }: Server): string | undefined =>
  state === 'started' ? undefined : t().choices.notStarted(wordOf(state))

const useServerPrice = ({ plan }: { readonly plan?: unknown }) => {
  const found = itemsOf(useList('list_plans').data).find(({ name }) => name === plan)
  return found === undefined
    ? undefined
    : { monthlyCents: found.price_monthly_cents, hourlyMillicents: found.price_hourly_millicents }
}

const stopForm: readonly FormField[] = [{ name: 'stop_type' }, { name: 'timeout_seconds' }]

export const server = noun({
  name: 'server',
  area: 'compute',
  icon: ServerIcon,
  path: '/servers',
  list: 'list_servers',
  read: 'get_server',
  create: 'create_server',
  update: 'update_server',
  member: 'server',
  titleOf: ({ title, hostname }) => title || hostname,
  stateOf: ({ state }) => state,
  looks: { started: 'good', stopped: 'off', error: 'bad' },
  columns: ['public_ipv4', 'public_ipv6', 'plan', 'zone', 'created_at'],
  facts: [
    'hostname',
    'public_ipv4',
    'public_ipv6',
    'plan',
    'cores',
    'memory_mebibytes',
    'storage_gibibytes',
    'template',
    'zone',
    'server_group_id',
    'init_script_id',
    'ha_policy',
    'migration_policy',
    'metadata_enabled',
    'mac_address',
    'hourly_price_millicents',
    'created_at',
    'started_at',
  ],
  form: [
    { name: 'hostname' },
    { name: 'zone', as: 'cards', useOptions: useZones, isFirstChosen: true },
    { name: 'template', as: 'cards', useOptions: useTemplates, isFirstChosen: true, isNeeded: true },
    { name: 'plan', as: 'cards', useOptions: usePlans, isFirstChosen: true },
    { name: 'ssh_key_ids', as: 'many', useOptions: optionsOf('ssh_key'), note: () => t().choices.allKeys },
    { name: 'title', isMore: true },
    { name: 'storage_gibibytes', isMore: true },
    { name: 'public_ipv4', isMore: true },
    {
      name: 'networks',
      as: 'many',
      useOptions: optionsOf('network'),
      isMore: true,
      toBody: (ids) => (Array.isArray(ids) ? ids.map((id: unknown) => ({ network_id: id })) : undefined),
    },
    { name: 'server_group_id', useOptions: optionsOf('server_group'), isMore: true },
    { name: 'init_script_id', useOptions: optionsOf('init_script'), isMore: true },
    { name: 'ha_policy', isMore: true },
    { name: 'backup_schedule', isMore: true },
    { name: 'labels', isMore: true },
    { name: 'start', isMore: true },
  ],
  usePrice: useServerPrice,
  actions: [
    { operation: 'start_server', why: notStopped, isFirst: true },
    { operation: 'stop_server', why: notStarted, confirm: {}, form: stopForm, isFirst: true },
    { operation: 'restart_server', why: notStarted, confirm: {}, form: stopForm },
    {
      operation: 'change_server_plan',
      why: notStopped,
      confirm: {},
      form: [{ name: 'plan', as: 'cards', useOptions: usePlans }, { name: 'grow_storage' }, { name: 'start' }],
    },
    { operation: 'attach_server_network', form: [{ name: 'network_id', useOptions: optionsOf('network') }] },
    { operation: 'move_server', confirm: {} },
    {
      operation: 'set_server_ha_policy',
      form: [{ name: 'ha_policy' }],
      initial: ({ ha_policy }) => ({ ha_policy }),
    },
    {
      operation: 'set_server_migration_policy',
      form: [{ name: 'migration_policy' }],
      initial: ({ migration_policy }) => ({ migration_policy }),
    },
    {
      operation: 'set_server_metadata_setting',
      form: [{ name: 'enabled', label: () => t().fields.metadata_enabled }],
      initial: ({ metadata_enabled: enabled }) => ({ enabled }),
    },
    {
      operation: 'renumber_server_ipv6',
      why: ({ ipv6_renumber_available: isOffered }) => (isOffered ? undefined : t().choices.noNewPrefix),
      confirm: { goes: ({ public_ipv6: address }) => [t().choices.goesAddresses(address ?? '')] },
    },
    {
      operation: 'rebuild_server',
      confirm: {
        type: ({ hostname }) => hostname,
        goes: () => [t().choices.goesContent],
        stays: () => [t().choices.staysAddresses],
      },
      form: [{ name: 'template', as: 'cards', useOptions: useTemplates }, { name: 'stop' }],
    },
    {
      operation: 'delete_server',
      confirm: {
        type: ({ hostname }) => hostname,
        goes: (item) => [
          t().choices.goesBootDisk(gibibytes(item.storage_gibibytes)),
          ...addressesOf(item).map((address) => t().choices.goesAddresses(address)),
        ],
        stays: ({ storage_ids: ids }) => (ids.length > 1 ? [t().choices.staysStorages(ids.length - 1)] : []),
      },
    },
  ],
  tabs: [
    {
      id: 'console',
      name: () => t().console.title,
      view: lazy(() => import('./console.tsx').then(asDefault('ConsoleTab'))),
    },
    {
      id: 'metrics',
      name: () => t().metrics.title,
      view: lazy(() => import('./metrics.tsx').then(asDefault('MetricsTab'))),
    },
    {
      id: 'firewall',
      name: () => t().firewall.title,
      view: lazy(() => import('./firewall.tsx').then(asDefault('FirewallTab'))),
    },
    {
      id: 'networks',
      name: () => t().server.networks,
      view: lazy(() => import('./parts.tsx').then(asDefault('NetworksTab'))),
    },
    {
      id: 'storages',
      name: () => t().server.storages,
      view: lazy(() => import('./parts.tsx').then(asDefault('StoragesTab'))),
    },
  ],
  reads: ['list_server_interfaces', 'list_storages'],
  Head: ServerHead,
})

const addressesOf = ({ public_ipv4: ipv4, public_ipv6: ipv6 }: Server): readonly string[] =>
  [ipv4, ipv6].filter((address) => address !== null)

/** `lazy` wants a default, which the project does not export. */
function asDefault<Name extends string>(name: Name) {
  return <Component>(module: Readonly<Record<Name, Component>>): { default: Component } => ({ default: module[name] })
}
