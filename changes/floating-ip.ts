/** The changes of a floating IP. */
import { defined } from '../domain/defined.ts'
import { requireAssignable, requireReleasable, type FloatingIpFacts } from '../domain/floating-ip/rules.ts'
import { badField } from '../domain/problem.ts'
import { assignFloatingIp, type Assignment, claimFloatingIp, releaseFloatingIp } from '../db/floating-ip/index.ts'
import { Zone } from '../resources/catalog/index.ts'
import * as routes from '../resources/floating-ip/index.ts'
import { FloatingIp, floatingIpFactsOf, type FloatingIpSpec } from '../resources/floating-ip/index.ts'
import { type Change, changesOf, fromBody, type Patch } from './kit/define.ts'
import { ownServer } from './kit/references.ts'
import { requirePrivateNetworks } from './kit/zone.ts'

/** Its target; undefined when it is unassigned. */
export const assignmentOf = ({
  serverId,
  target = 'public',
}: Pick<FloatingIpSpec, 'serverId' | 'target'>): Assignment | undefined =>
  serverId === undefined ? undefined : { serverId, target }

/** One route for both: without a server, the floating IP is unassigned from its current server. It has no `release`:
 *  the claim is only tried when the change is accepted, and made by its operation. */
const assignment: Omit<Change<FloatingIpSpec, FloatingIpFacts>, 'when'> = {
  sets: ['serverId', 'target'],
  of: assignmentOf,
  operation: 'floating_ip.sync',
  condition: 'Assigned',
  allow: ({ facts }) => requireAssignable(facts),
  claimed: 'by operation',
  claim: (tx, { accountId, id, spec }) =>
    assignFloatingIp(tx, { accountId, floatingIpId: id, assignment: assignmentOf(spec) }),
  by: fromBody(
    routes.assignFloatingIp,
    ({ server_id, target }): Patch<FloatingIpSpec> =>
      server_id == null ? { serverId: undefined, target: undefined } : { serverId: server_id, target },
  ),
}

export const floatingIpChanges = changesOf(FloatingIp, {
  name: 'floating_ip',
  title: 'floating IP',
  finalizedWhen: 'its address is no longer forwarded',
  factsOf: floatingIpFactsOf,
  platform: ['address'],
  refers: { serverId: ownServer('creation') },
  reads: [Zone],
  readable({ serverId, target }) {
    if (serverId === undefined && target !== undefined) throw badField('target', 'cannot be given without a server')
  },
  create: {
    name: 'allocate',
    operation: 'floating_ip.sync',
    needs: 'standing',
    starts: ({ serverId }) => serverId !== undefined,
    allow: ({ spec }, world) => requirePrivateNetworks(world, spec.zone),
    async claim(tx, { accountId, id, spec }) {
      const demand = { accountId, floatingIpId: id, zone: spec.zone, assignment: assignmentOf(spec) }
      return { spec: { address: (await claimFloatingIp(tx, demand)).address } }
    },
    release: (tx, { accountId, id }) => releaseFloatingIp(tx, { accountId, floatingIpId: id }),
    detail: ({ zone, serverId }) => ({ zone, ...defined({ server_id: serverId }) }),
    by: fromBody(
      routes.allocateFloatingIp,
      ({ zone, server_id, target }): FloatingIpSpec =>
        server_id == null ? { zone } : { zone, serverId: server_id, target },
    ),
  },
  changes: {
    assign: { ...assignment, when: ({ serverId }) => serverId !== undefined },
    unassign: { ...assignment, when: ({ serverId }) => serverId === undefined },
  },
  remove: {
    name: 'release',
    operation: 'floating_ip.sync',
    allow: ({ facts }) => requireReleasable(facts),
    by: { route: routes.releaseFloatingIp },
  },
})
