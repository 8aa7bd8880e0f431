/** Server groups: servers that are placed apart. Stored shape, public shape, conversion and routes. */
import { z } from 'zod'
import { SPREADS } from '../../domain/node/placement.ts'
import { resource } from '../kit/define.ts'
import { DateTime, PrintableName, ZoneName } from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'
import { managed } from '../kit/managed.ts'
import { ObjectName, OBSERVED, StoredDisplayName } from '../kit/fields.ts'
import { AGE, READY, TITLE, ZONE } from '../kit/columns.ts'

const UNMET_SHOWN_MAXIMUM = 256

export const ServerGroup = resource({
  kind: 'ServerGroup',
  plural: 'servergroups',
  shortNames: ['sgrp'],
  scope: 'Namespaced',
  customers: 'write',
  description:
    'Keeps servers of an account apart: servers with its name in spec.serverGroupId are placed on different ' +
    'nodes, racks or zones. It cannot be deleted while it has servers.',
  spec: z
    .strictObject({
      name: StoredDisplayName.describe('Display name, unique in the account.'),
      spread: z
        .enum(SPREADS)
        .default('host')
        .describe(
          'Failure domain that members do not share: host for different nodes, rack for different racks of the ' +
            'zone, zone for different zones of the region.',
        ),
      zone: ZoneName.optional().describe('Zone of the members, for the spreads host and rack.'),
      region: z.string().min(1).max(63).optional().describe('Region of the members, for the spread zone.'),
      strict: z
        .boolean()
        .default(false)
        .describe('Whether to refuse a server rather than place it with another member.'),
    })
    .describe('The desired state of the group.'),
  status: z
    .strictObject({
      ...OBSERVED,
      region: z.string().max(63).optional().describe('Region of the members.'),
      memberCount: z.int().min(0).optional().describe('Number of servers in it.'),
      unmetMembers: z
        .array(ObjectName)
        .max(UNMET_SHOWN_MAXIMUM)
        .optional()
        .describe('Servers that share a failure domain with an older member, oldest first.'),
    })
    .describe('Observed state of the group. Written by its controller.'),
  columns: [
    TITLE,
    { name: 'Spread', type: 'string', jsonPath: '.spec.spread' },
    { name: 'Strict', type: 'boolean', jsonPath: '.spec.strict' },
    ZONE,
    { name: 'Servers', type: 'integer', jsonPath: '.status.memberCount' },
    READY,
    AGE,
  ],
  fixed: ['spread', 'zone', 'region', 'strict'],
  rules: [
    {
      rule: "(self.spec.spread == 'zone') == has(self.spec.region)",
      message: 'region is for the spread zone, and needed there',
    },
    {
      rule: "(self.spec.spread == 'zone') != has(self.spec.zone)",
      message: 'zone is for the spreads host and rack, and needed there',
    },
  ],
})
export type ServerGroupSpec = z.infer<typeof ServerGroup.spec>
export type ServerGroupStatus = z.infer<typeof ServerGroup.status>
/** Maximum that the status shows. */
export const shownUnmet = (ids: readonly string[]): string[] => ids.slice(0, UNMET_SHOWN_MAXIMUM)

export const ServerGroupView = z
  .strictObject({
    id: z.string(),
    zone: z.string().nullable(),
    region: z.string(),
    name: z.string(),
    spread: z.enum(SPREADS),
    strict: z.boolean(),
    policy: z.enum(['strict', 'soft']),
    member_count: z.int(),
    members: z.array(z.string()).optional(),
    unmet_members: z.array(z.string()).optional(),
    created_at: DateTime,
  })
  .meta({ id: 'ServerGroup' })
export type ServerGroupView = z.infer<typeof ServerGroupView>

export const CreateServerGroup = z
  .strictObject({
    name: PrintableName.describe('Unique in the account.'),
    zone: ZoneName.optional().describe(
      'Zone of the members. With spread zone, it may name a zone instead of its region.',
    ),
    region: ZoneName.optional().describe('Region of the members, for the spread zone.'),
    spread: z
      .enum(SPREADS)
      .default('host')
      .describe(
        'host for different nodes, rack for different racks of the zone, zone for different zones of the region.',
      ),
    strict: z
      .boolean()
      .optional()
      .describe('Whether to refuse a server rather than place it with another member. Defaults to false.'),
    policy: z.enum(['strict', 'soft']).optional().describe('Deprecated alternative to strict; send only one of them.'),
  })
  .meta({ id: 'CreateServerGroupRequest' })
export type CreateServerGroup = z.infer<typeof CreateServerGroup>

const verbs = verbsOf({
  path: '/v1/server-groups',
  noun: 'server_group',
  view: ServerGroupView,
})

export const listServerGroups = verbs.list('list_server_groups', {
  summary: 'List server groups',
  description: 'Newest first, without their members.',
})

export const createServerGroup = verbs.create('create_server_group', {
  summary: 'Create an empty server group',
  description: 'Servers join at creation, through server_group_id, and leave when they are deleted.',
  body: CreateServerGroup,
  example: { name: 'web', zone: 'eu-1a', spread: 'host', strict: true },
  refuses: [400, 409, 422],
})

export const getServerGroup = verbs.read('get_server_group', {
  summary: 'Get a server group with its members',
  description: 'Members are listed oldest first. unmet_members share a failure domain with an older member.',
})

export const updateServerGroup = verbs.change('update_server_group', {
  summary: 'Rename a server group',
  description: 'With If-Match only that version is changed.',
  body: z.strictObject({ name: PrintableName }),
  example: { name: 'front' },
})

export const deleteServerGroup = verbs.remove('delete_server_group', {
  summary: 'Delete a server group without servers',
})

export const SERVER_GROUP_ROUTES = [
  listServerGroups,
  createServerGroup,
  getServerGroup,
  updateServerGroup,
  deleteServerGroup,
] as const

export const managedServerGroup = managed({
  noun: 'server_group',
  view: ServerGroupView,
  routes: { list: listServerGroups, create: createServerGroup, read: getServerGroup, remove: deleteServerGroup },
  names: ['name'],
  uniqueIn: 'account',
  changes: [{ by: updateServerGroup, sets: ['name'] }],
  leaves: ['policy'],
  fields: { strict: { default: false } },
  facts: ['id', 'policy', 'created_at'],
  moments: ['member_count', 'members', 'unmet_members'],
})
