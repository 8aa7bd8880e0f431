/** The zone controller: whether a zone takes new servers, and which plans it has no room for. */
import { type Candidate, rankNodes } from '../domain/placement.ts'
import { listCandidates } from '../db/placement.ts'
import type { Action } from '../kit/reconcile/action.ts'
import type { KubeObject } from '../kit/kube/object.ts'
import { type Reconciler, watch } from '../kit/reconcile/reconciler.ts'
import { Node, Plan, type PlanSpec, Zone, type ZoneSpec, type ZoneStatus } from '../resources/platform.ts'
import { asked } from './database.ts'
import type { Parts } from './parts.ts'

export interface Seen {
  readonly nodes: readonly Candidate[]
  readonly plans: readonly KubeObject<PlanSpec>[]
}

/** Room changes in PostgreSQL, where nothing wakes anybody. */
const LOOK_SECONDS = 5

export function zoneReconciler({ caches, db }: Parts): Reconciler<ZoneSpec, ZoneStatus, Seen> {
  return {
    name: 'zone', type: Zone,
    watches: [watch(Node, ({ spec }) => [{ name: spec.zone }]), watch(Plan, () => caches.of(Zone).list().map(({ metadata }) => ({ name: metadata.name })))],
    observe: async (zone) => ({ nodes: await asked(listCandidates(db, zone.metadata.name)), plans: caches.of(Plan).list() }),
    plan,
  }
}

export function plan(zone: KubeObject<ZoneSpec, ZoneStatus>, { nodes, plans }: Seen): readonly Action[] {
  const name = zone.metadata.name
  const hasRoom = ({ spec: { cores, memoryMebibytes, storageGibibytes, cpuPool } }: KubeObject<PlanSpec>): boolean =>
    rankNodes({ accountId: '', zone: name, cores, memoryMebibytes, storageGibibytes, cpuPool }, nodes).length > 0
  const unavailablePlans = plans.filter((offered) => !hasRoom(offered)).map(({ metadata }) => metadata.name).sort()
  const state = zone.spec.isClosed ? 'closed' : unavailablePlans.length === plans.length ? 'full' : 'available'
  return [
    { do: 'status', status: { state, unavailablePlans }, conditions: [{ type: 'Ready', status: state === 'available' ? 'True' : 'False', reason: REASONS[state], message: '' }] },
    { do: 'wait', seconds: LOOK_SECONDS, for: 'room to change' },
  ]
}

const REASONS = { available: 'Available', full: 'Full', closed: 'Closed' } as const
