/** Nodes: the hosts that run servers. */
import { HardDrive } from 'lucide-react'
import type { Node } from '../../../../client/operator-schema.ts'
import { isReachableState } from '../../../../domain/node/rules.ts'
import { isEmpty } from '../../../nouns/form.ts'
import { type FormField, noun, type Values } from '../../../nouns/noun.ts'
import { o } from '../../texts/index.ts'
import { useZonesWithNodes } from '../options.ts'
import { NodeHead, NodeOperations } from './parts.tsx'

const isCordoned = ({ state }: Node): boolean => state === 'cordoned' || state === 'maintenance' || state === 'draining'
const ifReachable = ({ state }: Node): string | undefined =>
  isReachableState(state) ? undefined : o().node.notReachable(state)

const hasBmc = (values: Values): boolean => !isEmpty(values['bmc.protocol'])
const drainForm: readonly FormField[] = [
  { name: 'mode' },
  { name: 'notify_hours', unit: () => o().units.hours },
  { name: 'max_parallel', isMore: true },
  { name: 'deadline_minutes', unit: () => o().units.minutes, isMore: true },
]
const drained = ({ server_count: count }: Node): readonly string[] => [o().node.goesNew, o().node.goesAway(count)]

export const node = noun({
  name: 'node',
  area: 'fleet',
  icon: HardDrive,
  path: '/nodes',
  list: 'list_nodes',
  read: 'get_node',
  create: 'provision_node',
  member: 'node',
  titleOf: ({ hostname }) => hostname,
  stateOf: ({ state }) => state,
  looks: { ready: 'good', cordoned: 'off', maintenance: 'off', retired: 'off', unreachable: 'bad', fenced: 'bad' },
  columns: ['zone', 'rack', 'cpu_pool', 'server_count', 'agent_version', 'last_seen_at'],
  facts: [
    'zone',
    'rack',
    'roles',
    'cpu_pool',
    'dedicated_account_id',
    'agent_version',
    'desired_agent_version',
    'last_seen_at',
    'created_at',
  ],
  form: [
    { name: 'hostname' },
    { name: 'zone', useOptions: useZonesWithNodes },
    { name: 'rack' },
    { name: 'management_address' },
    { name: 'roles' },
    { name: 'cpu_pool', isMore: true },
    { name: 'dedicated_account_id', isMore: true },
    { name: 'bmc.protocol', isMore: true },
    { name: 'bmc.address', isMore: true, isShown: hasBmc, isNeeded: true },
    { name: 'bmc.secret_ref', isMore: true, isShown: hasBmc, isNeeded: true },
  ],
  actions: [
    {
      operation: 'cordon_node',
      isFirst: true,
      why: (item) => (isCordoned(item) ? o().node.isCordoned : undefined),
      confirm: {
        goes: () => [o().node.goesNew],
        stays: ({ server_count: count }) => [o().node.staysServers(count)],
      },
      form: [{ name: 'reason' }],
    },
    {
      operation: 'uncordon_node',
      why: (item) => (isCordoned(item) ? undefined : o().node.notCordoned),
      confirm: {},
    },
    {
      operation: 'drain_node',
      isFirst: true,
      why: ifReachable,
      confirm: { goes: drained, stays: () => [o().node.staysStuck] },
      form: drainForm,
    },
    {
      operation: 'start_node_maintenance',
      why: ifReachable,
      confirm: { goes: drained, stays: () => [o().node.staysStuck] },
      form: [{ name: 'reason' }, ...drainForm, { name: 'storage_flags', isMore: true }],
    },
    {
      operation: 'drain_node_storage',
      why: ifReachable,
      confirm: {},
      form: [{ name: 'deadline_hours', unit: () => o().units.hours }],
    },
    { operation: 'upgrade_node_agent', why: ifReachable, confirm: {}, form: [{ name: 'version' }] },
    {
      operation: 'update_node',
      form: [{ name: 'rack' }, { name: 'cpu_pool' }, { name: 'overcommit' }, { name: 'dedicated_account_id' }],
      initial: ({ rack, cpu_pool, dedicated_account_id }) => ({ rack, cpu_pool, dedicated_account_id }),
    },
    {
      operation: 'fence_node',
      // A node is lost in the middle of its drain, too.
      isAnytime: true,
      why: ({ state }) => (state === 'fenced' || state === 'fencing' ? o().node.isFenced : undefined),
      confirm: {
        type: ({ hostname }) => hostname,
        goes: ({ server_count: count, state }) => [
          o().node.goesGuests(count),
          ...(isReachableState(state) ? [o().node.goesForce] : []),
        ],
        stays: () => [o().node.staysDisks],
      },
      form: [
        { name: 'method' },
        { name: 'reason' },
        { name: 'second_approver', isShown: ({ method }) => method === 'attest', isNeeded: true },
        { name: 'force' },
      ],
    },
    {
      operation: 'remove_node',
      why: (item) =>
        item.server_count > 0
          ? o().node.hasServers(item.server_count)
          : isCordoned(item) || item.state === 'fenced'
            ? undefined
            : o().node.cordonFirst,
      confirm: { type: ({ hostname }) => hostname, goes: () => [o().node.goesAgent] },
    },
  ],
  Head: NodeHead,
  tabs: [{ id: 'operations', name: () => o().node.operations, view: NodeOperations }],
})
