/** The changes of a server group. */
import { badField, badRequest, conflict } from '../domain/problem.ts'
import {
  addServerGroup,
  removeServerGroup,
  renameServerGroup,
  type ServerGroup as Group,
} from '../db/server-group/index.ts'
import { Region, Zone } from '../resources/catalog/index.ts'
import * as routes from '../resources/server-group/index.ts'
import { ServerGroup, type ServerGroupSpec } from '../resources/server-group/index.ts'
import { PrintableName } from '../resources/kit/shapes.ts'
import { changesOf, fromBody, type Target } from './kit/define.ts'
import { requireReadable } from './kit/readable.ts'
import { type World, worldOf } from './kit/world.ts'
import { unknownRegion, unknownZone } from './kit/zone.ts'

const FIRST_GENERATION = 1

const groupOf = ({ accountId, id }: Target) => ({ accountId, groupId: id })

/** The location of the members. A group across zones has a region, which a request may name by a zone. Throws 400 for a
 *  location that does not exist or does not fit. */
function domainOf(
  world: World,
  { spread, zone: zoneName, region }: ServerGroupSpec,
): Pick<Group, 'spread' | 'zone' | 'region'> {
  const zone = zoneName === undefined ? undefined : world.find(Zone, { name: zoneName })
  if (zoneName !== undefined && zone === undefined) throw unknownZone(world, zoneName)
  if (spread !== 'zone') {
    if (zoneName === undefined || zone === undefined) throw badField('zone', `is required for the spread ${spread}`)
    if (region !== undefined && region !== zone.spec.region) throw badField('region', 'is not that of the zone')
    return { spread, zone: zoneName, region: zone.spec.region }
  }
  const named = region ?? zone?.spec.region
  if (named === undefined) throw badField('region', 'is required for the spread zone')
  if (world.find(Region, { name: named }) === undefined) throw unknownRegion(world, named)
  if (zone !== undefined && zone.spec.region !== named) throw badField('zone', 'is not of the region')
  return { spread, zone: null, region: named }
}

export const serverGroupChanges = changesOf(ServerGroup, {
  name: 'server_group',
  title: 'server group',
  finalizedWhen: 'the group has no servers',
  factsOf: ({ isDeleting }) => ({ isDeleting }),
  reads: [Region, Zone],
  readable: ({ name }) => requireReadable('name', PrintableName, name),
  create: {
    name: 'create',
    allow: ({ spec }, world) => void domainOf(world, spec),
    async claim(tx, { accountId, id, spec }, { caches, clock }) {
      const domain = domainOf(worldOf(caches), spec)
      const group = { id, name: spec.name, isStrict: spec.strict, generation: FIRST_GENERATION, createdAt: clock.now() }
      await addServerGroup(tx, accountId, { ...group, ...domain })
      const { zone, region } = domain
      return { spec: zone === null ? { zone: undefined, region } : { zone, region: undefined } }
    },
    release: async (tx, target) => void (await removeServerGroup(tx, groupOf(target))),
    detail: ({ name }) => ({ name }),
    by: fromBody(routes.createServerGroup, ({ name, spread, zone, region, strict, policy }): ServerGroupSpec => {
      if (strict !== undefined && policy !== undefined)
        throw badRequest('Send one of strict and policy.', [
          { field: 'policy', detail: 'is the older spelling of strict: send one of them' },
        ])
      return { name, spread, zone, region, strict: strict ?? policy === 'strict' }
    }),
  },
  changes: {
    rename: {
      sets: ['name'],
      action: 'update',
      allow({ id, facts: { isDeleting } }) {
        const resource = { type: 'server_group', id }
        if (isDeleting) throw conflict('state_not_allowed', 'The group is being deleted.', { resource })
      },
      claim: async (tx, { spec, ...target }) => void (await renameServerGroup(tx, groupOf(target), spec.name)),
      async release(tx, target, stored) {
        if (stored !== undefined) await renameServerGroup(tx, groupOf(target), stored.spec.name)
      },
      by: fromBody(routes.updateServerGroup, ({ name }) => ({ name })),
    },
  },
  remove: {
    name: 'delete',
    /** Nothing to release: if the object was not deleted, its controller claims the group again. */
    claim: async (tx, target) => void (await removeServerGroup(tx, groupOf(target))),
    detail: ({ name }) => ({ name }),
    by: { route: routes.deleteServerGroup },
  },
})
