/** The zone of a server is where its room is. Which process looks after a server follows from the zone that its spec
 *  names, and that is changed in a reconcile of its own: the last of the process that has moved it, so that the next
 *  one begins when the move is behind it. */
import type { MigrationProgress } from '../../../resources/server/index.ts'
import { type Decision, type ReconcileInput, unchanged } from '../decision.ts'

/** Of a server that has come to another zone; undefined once its spec says so. The kind lets the zone change only when
 *  the status has told of the move. */
export function followZone(input: ReconcileInput): Decision | undefined {
  const {
    server: { spec, status },
    observed: { claims },
  } = input
  if (claims === undefined || claims.placement.zone === spec.zone) return undefined
  const { zone, node } = claims.placement
  const decision = {
    ...unchanged(input),
    step: status?.operation?.step ?? '',
    waitFor: `the server to be in zone ${zone}`,
    waitSeconds: 0,
  }
  const migration: MigrationProgress | undefined = status?.migration
  const isToBeTold = migration?.targetNode === node && (migration.state !== 'switched' || migration.targetZone !== zone)
  return isToBeTold
    ? { ...decision, status: { migration: { ...migration, state: 'switched', targetZone: zone } } }
    : { ...decision, actions: [{ do: 'change', patch: { spec: { zone } } }] }
}
