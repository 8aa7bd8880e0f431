/** Changes the zone in the spec of a server that has moved to another zone. The zone decides which controller process
 *  owns the server, so it changes last, in a separate reconcile: the next process takes over after the move. */
import type { MigrationProgress } from '../../../../resources/server/index.ts'
import { type Decision, type ReconcileInput, unchanged } from '../decision.ts'

/** Undefined once the spec names the zone of the server's placement. The status records the move first, because the CRD
 *  refuses another zone without that. */
export function followZone(input: ReconcileInput): Decision | undefined {
  const {
    server: { spec, status },
    observed: { claims },
  } = input
  if (claims === undefined || claims.placement.zone === spec.zone) return undefined
  const { zone, node } = claims.placement
  const decision = {
    ...unchanged(input),
    waitFor: `the server to be in zone ${zone}`,
    waitSeconds: 0,
  }
  const migration: MigrationProgress | undefined = status?.migration
  const mustRecordMove =
    migration?.targetNode === node && (migration.state !== 'switched' || migration.targetZone !== zone)
  return mustRecordMove
    ? { ...decision, status: { migration: { ...migration, state: 'switched', targetZone: zone } } }
    : { ...decision, actions: [{ do: 'change', patch: { spec: { zone } } }] }
}
