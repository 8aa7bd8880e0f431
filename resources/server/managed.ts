/** Servers as code. */
import { managed } from '../kit/managed.ts'
import { resizeStorage, updateStorage } from '../storage/index.ts'
import { getServerFirewall, setServerFirewall } from './firewall.ts'
import { attachServerNetwork, detachServerNetwork, InterfaceView, listServerInterfaces } from './interfaces.ts'
import {
  changeServerPlan,
  createServer,
  deleteServer,
  getServer,
  listServers,
  moveServer,
  rebuildServer,
  ServerView,
  setServerHaPolicy,
  setServerMetadataSetting,
  setServerMigrationPolicy,
  startServer,
  stopServer,
  updateServer,
} from './routes.ts'

/** Of an interface. */
const ADDRESSES = {
  ipv4_address: { isChosen: true, same: 'address' },
  ipv6_address: { isChosen: true, same: 'address' },
} as const

export const managedServer = managed({
  noun: 'server',
  view: ServerView,
  routes: { list: listServers, create: createServer, read: getServer, remove: deleteServer },
  names: ['hostname'],
  uniqueIn: 'zone',
  removeLeaves: ['delete_storages'],
  changes: [
    { by: updateServer, sets: ['title', 'labels', 'is_protected'] },
    { by: setServerHaPolicy, sets: ['ha_policy'] },
    { by: setServerMigrationPolicy, sets: ['migration_policy'] },
    { by: setServerMetadataSetting, sets: { metadata_enabled: 'enabled' } },
    { by: updateStorage, sets: ['backup_schedule'], on: 'boot_storage_id' },
    {
      by: changeServerPlan,
      sets: ['plan'],
      needs: { desired_power: 'stopped' },
      moves: ['cores', 'memory_mebibytes', 'storage_gibibytes', 'cpu_pool', 'hourly_price_millicents'],
    },
    { by: resizeStorage, sets: { storage_gibibytes: 'size_gibibytes' }, on: 'boot_storage_id', grows: true },
    {
      each: 'networks',
      key: 'network_id',
      list: listServerInterfaces,
      listed: 'parts.interfaces',
      add: attachServerNetwork,
      remove: detachServerNetwork,
    },
    { by: setServerFirewall, sets: { firewall: '*' }, readBy: getServerFirewall, listed: 'parts.firewall' },
    { by: startServer, when: { desired_power: 'running' } },
    { by: stopServer, when: { desired_power: 'stopped' } },
  ],
  fields: {
    desired_power: { creates: { field: 'start', values: { running: true, stopped: false } }, default: 'running' },
    public_ipv4: { shows: 'presence', as: 'public_ipv4_address' },
    zone: { changedBy: moveServer },
    template: { isOptional: true, nullWith: 'custom_image_id', changedBy: rebuildServer },
    custom_image_id: { refers: 'custom_image', changedBy: rebuildServer },
    // for the next rebuild
    ssh_keys: { shows: 'nothing', isSet: true, same: 'trimmed', isEdited: true, changedBy: rebuildServer },
    ssh_key_ids: { shows: 'nothing', isSet: true, refers: 'ssh_key', changedBy: rebuildServer },
    user_data: { shows: 'nothing', isSecret: true, changedBy: rebuildServer },
    init_script_id: { refers: 'init_script', changedBy: rebuildServer },
    server_group_id: { refers: 'server_group' },
    networks: {
      of: { network_id: { refers: 'network' }, ...ADDRESSES },
      facts: ['id', 'server_id', 'kind', 'mac_address', 'ipv6_prefix', 'index', 'created_at'],
      moments: ['floating_ip_ids'],
    },
    firewall: {
      of: { rules: { of: { remote_cidrs: { same: 'cidr' }, port_end: { follows: 'port_start' } } } },
      moments: ['generation', 'applied_generation', 'applied_at'],
    },
    // of its boot storage
    backup_schedule: { shows: 'nothing' },
  },
  facts: [
    'id',
    'region',
    'managed_by',
    'cores',
    'memory_mebibytes',
    'cpu_pool',
    'public_ipv6',
    'public_ipv6_prefix',
    'public_ipv6_is_private',
    'ssh_command',
    'mac_address',
    'boot_storage_id',
    'created_at',
    'hourly_price_millicents',
  ],
  moments: [
    'state',
    'state_detail',
    'ssh',
    'ipv6_renumber_available',
    'active_operation',
    'storage_ids',
    'interface_count',
    'firewall_enabled',
    'parts',
    'ha_status',
    'ha_status_reason',
    'network_status',
    'network_status_reason',
    'maintenance',
    'started_at',
  ],
})

/** For those who keep the networks of a server apart from it. */
export const managedServerInterface = managed({
  noun: 'server_interface',
  key: 'interface',
  view: InterfaceView,
  routes: { list: listServerInterfaces, create: attachServerNetwork, remove: detachServerNetwork },
  parent: { field: 'server_id', refers: 'server', parameter: 'id', own: 'interface_id', instead: 'networks' },
  names: ['network_id'],
  uniqueIn: 'parent',
  changes: [],
  fields: { network_id: { refers: 'network' }, ...ADDRESSES },
  facts: ['id', 'kind', 'mac_address', 'ipv6_prefix', 'index', 'created_at'],
  moments: ['floating_ip_ids'],
})
